"""dtrain.torch under torch of PyPI, which `./dev hosts` installs: the tests of the package, torch's own tests of backends,
torchrun, the entry point of the wheel, Lightning, Accelerate and Ray Train. Debian's older torch has torch's own tests, too.
usage: test_torch.py PACKAGES (the folder that holds the package dtrain)

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from ports import free_port  # noqa: E402

SKIPPED = 77
PACKAGES = os.path.abspath(sys.argv.pop())
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TESTS, EXAMPLES = ROOT / "bindings/python/tests", ROOT / "examples/torch"
DEBIAN = "/usr/bin/python3"
RAN = re.compile(r"Ran (\d+) tests? in .*\n\nOK(?: \(skipped=(\d+)\))?")
PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("dtrain")
tensor = torch.ones(1)
dist.all_reduce(tensor)
assert tensor.item() == dist.get_world_size() == 2
dist.destroy_process_group()
print("good")
"""


def run(*command, **more):
    environment = {**os.environ, "PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", **more}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, timeout=500,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def torchrun(*arguments, **more):
    return run(sys.executable, "-W", "ignore", "-m", "torch.distributed.run", *arguments, **more)


@contextlib.contextmanager
def installed():
    """A folder for PYTHONPATH that makes the package look like an installed wheel."""
    with tempfile.TemporaryDirectory() as folder:
        about = pathlib.Path(folder, "dtrain-0.dist-info")
        about.mkdir()
        about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: dtrain\nVersion: 0\n")
        declared = (ROOT / "pyproject.toml").read_text()
        section = re.search(r'entry-points."torch.backends"\]\n(\w+) = "(.*)"', declared)
        about.joinpath("entry_points.txt").write_text(f"[torch.backends]\n{section[1]} = {section[2]}\n")
        yield folder


class Torch(unittest.TestCase):
    def passed(self, least, *command):
        """At least so many tests ran and passed."""
        code, output = run(*command)
        self.assertEqual(code, 0, output[-20000:])
        found = RAN.search(output)
        self.assertIsNotNone(found, output[-2000:])
        self.assertGreaterEqual(int(found[1]) - int(found[2] or 0), least, output[-2000:])

    def test_package(self):
        for name in ("torch_collectives", "torch_groups", "torch_faults", "torch_ddp", "torch_sharding", "torch_hooks",
                     "horovod_operations", "horovod_names", "horovod_optimizer", "horovod_job"):
            with self.subTest(name=name):
                self.passed(1, sys.executable, "-W", "ignore", TESTS / f"test_{name}.py")

    def own_tests(self, python):
        script = HERE / "torch_own_tests.py"
        self.passed(70, python, "-W", "ignore", script, 2, "gloo")
        self.passed(15, python, "-W", "ignore", script, 3, "mpi", "-k", "all_to_all", "-k", "barrier", "-k", "scatter")

    def test_own_tests(self):
        self.own_tests(sys.executable)

    @unittest.skipUnless(os.path.exists("/usr/lib/python3/dist-packages/torch"), "Debian's python3-torch is missing")
    def test_own_tests_of_debian(self):
        self.own_tests(DEBIAN)

    def test_torchrun_and_entry_point(self):
        """The program does not import dtrain: torch finds the entry point that the wheel declares."""
        with installed() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(PROGRAM)
            code, output = torchrun("--standalone", "--nproc-per-node", 2, program, PYTHONPATH=f"{folder}:{PACKAGES}")
        self.assertEqual((code, output.count("good")), (0, 2), output)

    def test_lightning(self):
        code, output = torchrun("--standalone", "--nproc-per-node", 2, EXAMPLES / "digits_lightning.py")
        self.assertEqual((code, output.count(" of 2, 9")), (0, 2), output)
        self.assertIn("distributed_backend=dtrain", output)

    def test_accelerate(self):
        code, output = torchrun("--standalone", "--nproc-per-node", 2, EXAMPLES / "digits_accelerate.py")
        self.assertEqual((code, output.count(" of 2, 9")), (0, 2), output)

    def test_ray_train(self):
        with installed() as folder:
            code, output = run(sys.executable, "-W", "ignore", EXAMPLES / "digits_ray.py", 2, RAY_AUTH_MODE="disabled",
                               RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=f"{folder}:{PACKAGES}")
        self.assertEqual(code, 0, output)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 over dtrain, 9", output)

    def restarted(self, meet, *arguments):
        """torchrun starts the ranks again after each attempt in which one of them was killed."""
        with tempfile.TemporaryDirectory() as folder:
            code, output = torchrun(*arguments, "--nproc-per-node", 3, "--max-restarts", 2, HERE / "torch_restarted.py",
                                    meet, FOLDER=folder)
        self.assertEqual((code, output.count("this attempt is good")), (0, 3), output[-20000:])
        self.assertIn("exitcode: -9", output)  # torchrun's report of an attempt that failed

    def test_restarts(self):
        self.restarted("env", "--standalone")

    def test_restarts_over_one_store(self):
        """The store has keys of the attempts before."""
        self.restarted("file", "--nnodes", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0")

    def test_restarts_of_two_hosts(self):
        """An agent counts the failures of its own host only, so the counts differ."""
        port = free_port()
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as threads:
            hosts = [threads.submit(torchrun, "--nnodes", 2, "--nproc-per-node", 1, "--max-restarts", 2, "--rdzv-backend",
                                    "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1",
                                    "--rdzv-conf", f"is_host={host}", HERE / "torch_restarted.py", "env", FOLDER=folder)
                     for host in (1, 0)]
            outcomes = [host.result() for host in hosts]
        for code, output in outcomes:
            self.assertEqual((code, output.count("this attempt is good")), (0, 1), output[-20000:])


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: ./dev hosts could not install torch of PyPI")
        sys.exit(SKIPPED)
    unittest.main()
