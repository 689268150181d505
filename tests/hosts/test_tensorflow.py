"""dtrain.tensorflow under TensorFlow of PyPI, which `./dev hosts` installs: collectives, training by Keras, tables, a
rank that dies, the job of TF_CONFIG. usage: test_tensorflow.py PACKAGES PROGRAMS (the folders of the package dtrain,
and of dtrain-run)

SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from ports import free_ports  # noqa: E402

SKIPPED = 77
PACKAGES, PROGRAMS = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples/migration"
RAN = re.compile(r"^\[(\d+)\] Ran (\d+) tests? in", re.M)
JOINS = """
import dtrain.tensorflow as dt
if dt.serve():
    print("served")
else:
    table = dt.init().table("t", length=1)
    dt.tables.push(table, [1.0])
    dt.barrier()
    print("rank", dt.rank(), "of", int(dt.tables.pull(table, [1])[0]))
"""


def environment(**more):
    """One thread for each kind of work of TensorFlow: the machine may be busy."""
    return {**os.environ, "PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3",
            "DTRAIN_OP_TIMEOUT": "120s", "TF_NUM_INTEROP_THREADS": "2", "TF_NUM_INTRAOP_THREADS": "1", **more}


def run(script, ranks, servers=0, *arguments, options=()):
    command = [f"{PROGRAMS}/dtrain-run", "--timeout", "280", *options, "-n", str(ranks), "-s", str(servers), "--",
               sys.executable, "-W", "ignore", str(script), *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


class TensorFlow(unittest.TestCase):
    def passed(self, least, script, ranks, servers=0):
        """At least so many tests ran on each rank, and passed."""
        code, output = run(HERE / f"tensorflow_{script}.py", ranks, servers)
        self.assertEqual(code, 0, output[-20000:])
        counts = {rank: int(count) for rank, count in RAN.findall(output)}
        self.assertEqual(len(counts), ranks, output[-2000:])
        self.assertGreaterEqual(min(counts.values()), least, output[-2000:])

    def test_collectives(self):
        self.passed(36, "collectives", 2)
        self.passed(36, "collectives", 3)

    def test_keras(self):
        self.passed(11, "keras", 2)

    def test_strategy(self):
        self.passed(4, "strategy", 2)
        self.passed(7, "mirrored", 2)

    def test_tables(self):
        self.passed(10, "tables", 2, 2)

    def test_migration(self):
        """The programs of docs/FROM_TENSORFLOW.md."""
        with tempfile.TemporaryDirectory() as folder:
            for name, ranks, servers, *arguments in (
                    ("mirrored", 2, 0), ("servers", 2, 2), ("servers", 3, 1, "--aggregate", "2"),
                    ("session", 2, 0, "--directory", f"{folder}/session", "--steps", "50"),
                    ("session", 2, 0, "--directory", f"{folder}/session", "--steps", "150"),
                    ("estimator", 2, 0, "--records", f"{folder}/records")):
                with self.subTest(name=name, arguments=arguments):
                    code, output = run(EXAMPLES / f"tensorflow_{name}.py", ranks, servers, *arguments)
                    self.assertEqual((code, output.count("right: ")), (0, ranks), output[-20000:])
                    if "150" in arguments:
                        self.assertIn("begins at step 50", output)

    def test_rank_that_dies(self):
        code, output = run(HERE / "tensorflow_faults.py", 3, options=["--keep-going"])
        self.assertEqual((code, output.count("went on")), (128 + 9, 2), output[-20000:])

    def test_quorum_without_some(self):
        code, output = run(HERE / "tensorflow_quorum.py", 4, 1, options=["--keep-going"])
        self.assertEqual((code, output.count("went on")), (128 + 9, 3), output[-20000:])

    def test_job_of_tf_config(self):
        """A chief, a worker and a server, as TensorFlow's own programs are started."""
        kinds = ("chief", "worker", "ps")
        cluster = {kind: [f"127.0.0.1:{port}"] for kind, port in zip(kinds, free_ports(len(kinds) + 1))}
        processes = [subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", JOINS], stdout=subprocess.PIPE, text=True,
            env=environment(TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})))
            for kind in kinds]
        self.assertEqual([process.communicate(timeout=200)[0].strip() for process in processes],
                         ["rank 0 of 2", "rank 1 of 2", "served"])


if __name__ == "__main__":
    if importlib.util.find_spec("tensorflow") is None:
        print("skipped: ./dev hosts could not install TensorFlow of PyPI")
        sys.exit(SKIPPED)
    unittest.main()
