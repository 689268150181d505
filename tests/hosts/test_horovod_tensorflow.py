"""dtrain.horovod.tensorflow, .tensorflow.keras and .keras under TensorFlow of PyPI, which `./dev hosts` installs.
usage: test_horovod_tensorflow.py PACKAGES PROGRAMS (the folders of the package dtrain, and of dtrain-run)

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
PACKAGES, PROGRAMS = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
OLD = "tensorflow_old" in sys.executable
RAN = re.compile(r"^\[(\d+)\] Ran (\d+) tests? in", re.M)


def run(*arguments):
    """One thread for each kind of work of TensorFlow: the machine may be busy."""
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{HERE}", "PYTHONDONTWRITEBYTECODE": "1",
                   "TF_CPP_MIN_LOG_LEVEL": "3", "DTRAIN_OP_TIMEOUT": "120s", "TF_NUM_INTEROP_THREADS": "2",
                   "TF_NUM_INTRAOP_THREADS": "1"}
    done = subprocess.run([f"{PROGRAMS}/dtrain-run", "--timeout", "280", *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def python(*arguments):
    return "--", sys.executable, "-W", "ignore", *arguments


class Horovod(unittest.TestCase):
    def test_operations_and_training(self):
        """In one job, as importing TensorFlow takes longer than many of the tests."""
        code, output = run("-n", 2, *python("-m", "unittest", "horovod_tensorflow_ops", "horovod_tensorflow_keras"))
        self.assertEqual(code, 0, output[-20000:])
        counts = {rank: int(count) for rank, count in RAN.findall(output)}
        self.assertEqual(sorted(counts), ["0", "1"], output[-2000:])
        self.assertGreaterEqual(min(counts.values()), 35, output[-2000:])

    def test_process_sets(self):
        for ranks in (2, 3):
            code, output = run("-n", ranks, *python("-m", "unittest", "horovod_tensorflow_sets"))
            self.assertEqual(code, 0, output[-20000:])
            self.assertEqual(sorted(RAN.findall(output)), [(str(rank), "4") for rank in range(ranks)], output[-2000:])

    def test_data_service(self):
        """Two jobs: of the service, which the training ends, and of the training."""
        for side, dispatchers in (("compute", 1), ("training", 2)):
            with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
                path = os.path.join(folder, "compute.json")
                service = pool.submit(run, "-n", 2, *python(
                    "-m", "dtrain.horovod.tensorflow.data.compute_worker", path, "--dispatcher-side", side,
                    "--dispatchers", dispatchers))
                code, output = run("-n", 2, *python(HERE / "horovod_tensorflow_data.py", path))
                self.assertEqual((code, output.count("good")), (0, 2), output[-20000:])
                code, output = service.result()
                self.assertEqual(code, 0, output[-20000:])

    def test_join(self):
        code, output = run("-n", 3, *python("-m", "unittest", "horovod_tensorflow_join"))
        self.assertEqual(code, 0, output[-20000:])
        self.assertEqual(sorted(RAN.findall(output)), [(str(rank), "5") for rank in range(3)], output[-2000:])

    @unittest.skipIf(OLD, "with the newest TensorFlow alone, to save time")
    def test_elastic_job(self):
        code, output = run("--elastic", "2:2", "-n", 2, *python(HERE / "horovod_tensorflow_elastic.py"))
        self.assertEqual(code, 0, output[-20000:])
        for text in ("begins at epoch 0 with 2 workers", "begins at epoch 1 with 2 workers", "good: 2 workers"):
            self.assertEqual(output.count(text), 2, output[-20000:])

    @unittest.skipIf(OLD, "with the newest TensorFlow alone, to save time")
    def test_migration(self):
        """The program of docs/FROM_HOROVOD.md."""
        code, output = run("-n", 2, *python(PROJECT / "examples/migration/horovod_keras.py"))
        self.assertEqual(code, 0, output[-20000:])
        self.assertIn("2 ranks, 9", output)


if __name__ == "__main__":
    if importlib.util.find_spec("tensorflow") is None:
        print("skipped: ./dev hosts could not install TensorFlow of PyPI")
        sys.exit(SKIPPED)
    unittest.main()
