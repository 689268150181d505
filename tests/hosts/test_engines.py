"""The examples of examples/engines that need nothing special: local, mpirun (Open MPI, MPICH), torchrun. torchrun
is a stand-in that sets the variables of the real one, whose package has half a gigabyte. The other examples run in the
tests of their engines.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

LIMIT = 300  # seconds
os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # the shells' python3
ENGINES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines"
TORCHRUN = """#!{python}
import os, subprocess, sys
count = int(sys.argv[1].partition("=")[2])
processes = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={{
    **os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "{port}"}}) for rank in range(count)]
sys.exit(max(process.wait() for process in processes))
"""


def run(*command, **variables):
    done = subprocess.run([str(part) for part in command], env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    return done.returncode, done.stdout


class Examples(unittest.TestCase):
    def check(self, said, *command, **variables):
        status, text = run(*command, **variables)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, said)

    def test_local(self):
        self.check("(?s)local: 2 workers, 9.*local, with a server: 2 workers, 9", sys.executable, ENGINES / "local_digits.py")

    def test_elastic(self):
        self.check("(?s)elastic: 2 workers, 9.*replaced: killed by signal 9", sys.executable, ENGINES / "elastic_digits.py")

    def test_mpirun(self):
        for program, options in (("mpirun.openmpi", ["--oversubscribe", "--allow-run-as-root"]), ("mpiexec.hydra", [])):
            with self.subTest(program):
                self.assertIsNotNone(shutil.which(program))
                self.check("2 workers, train_by_allreduce: 9", ENGINES / "mpirun.sh", *options, MPIRUN=program)

    def test_torchrun(self):
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as store:
            program = pathlib.Path(folder, "torchrun")
            program.write_text(TORCHRUN.format(python=sys.executable, port=store.getsockname()[1]))
            program.chmod(0o755)
            self.check("2 workers, train_by_allreduce: 9", ENGINES / "torchrun.sh", PATH=f"{folder}:{os.environ['PATH']}")

    def test_the_index_has_every_file(self):
        listed = set(re.findall(r"\]\(([\w.]+)\)", (ENGINES / "README.md").read_text()))
        files = {path.name for path in ENGINES.iterdir() if path.is_file() and path.name != "README.md"}
        self.assertEqual(files - listed, set())


if __name__ == "__main__":
    unittest.main()
