#!/usr/bin/python3
"""The machine of vm.py: it is like the caller's own, changes nothing but the repository, and ends
as it should: with the command's status, at its limit, broken, or with words where it cannot be had.
usage: test_vm.py

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

import kernel
import vm

VM = pathlib.Path(vm.__file__)
JOB = """
[ "$1" = "two  words" ] && [ "$DTRAIN_TOLD" = "a 'quoted' word" ] && [ -e vm.py ] || exit 3
[ -e /sys/class/infiniband/rxe0 ] && [ "$(ulimit -l)" = unlimited ] || exit 4
echo left >"$2/mark" || exit 5
echo spoiled >"$3" || exit 6
echo said; echo complained >&2
exit 7
"""


def run(*arguments, **environment):
    return subprocess.run([sys.executable, VM, *arguments], cwd=VM.parent, capture_output=True,
                          text=True, check=False, env=dict(os.environ, **environment))


class Machine(unittest.TestCase):
    def test_like_the_callers_own(self):
        with tempfile.TemporaryDirectory(dir=vm.CACHE) as folder, \
             tempfile.NamedTemporaryFile("w+", dir="/var/tmp") as outside:
            outside.write("mine")
            outside.flush()
            done = run("bash", "-c", JOB, "job", "two  words", folder, outside.name,
                       DTRAIN_TOLD="a 'quoted' word")
            self.assertEqual((done.returncode, done.stdout), (7, "said\ncomplained\n"), done)
            self.assertEqual((pathlib.Path(folder) / "mark").read_text(), "left\n")
            self.assertEqual(pathlib.Path(outside.name).read_text(), "mine")

    def test_limit(self):
        done = run("--limit", "1", "true")
        self.assertEqual(done.returncode, vm.TIMED_OUT, done)
        self.assertIn("time limit of 1", done.stderr)

    def test_broken(self):
        done = run("bash", "-c", "echo c >/proc/sysrq-trigger")
        self.assertEqual(done.returncode, vm.BROKEN, done)
        self.assertIn("Kernel panic", done.stderr)

    def test_one_of_two_broken(self):
        done = run("--two", "bash", "-c",
                   "[ $RDMA_MACHINE = 0 ] && sleep 100 || echo c >/proc/sysrq-trigger")
        self.assertEqual(done.returncode, vm.BROKEN, done) # not after 100 s

    def test_killed(self):
        """The emulator does not outlive who started it."""
        with tempfile.TemporaryDirectory() as folder, \
             subprocess.Popen([sys.executable, VM, "bash", "-c", "echo up; sleep 100"],
                              env=dict(os.environ, TMPDIR=folder),
                              stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"up\n")
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            emulator = os.pidfd_open(int(children))
            process.kill()
            self.assertEqual(select.select([emulator], [], [], 20)[0], [emulator])
            os.close(emulator)

    def test_no_emulator(self):
        done = run("true", PATH="/nowhere")
        self.assertEqual(done.returncode, vm.SKIPPED, done)
        self.assertIn("apt-get install", done.stdout)
        self.assertIn("qemu-system-x86", done.stdout)

    def test_no_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("apt-cache", "echo '  Depends: linux-image-9-amd64'"),
                               ("apt-get", "echo no network >&2; exit 100")):
                path = pathlib.Path(folder) / name
                path.write_text(f"#!/bin/sh\n{text}\n")
                path.chmod(0o755)
            environment = dict(os.environ)
            os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
            try:
                with self.assertRaisesRegex(kernel.Unavailable, "linux-image-9-amd64: no network"):
                    kernel.prepare(pathlib.Path(folder) / "cache")
            finally:
                os.environ.update(environment)


if __name__ == "__main__":
    system = run("--prepare")
    if system.returncode != 0:
        print(system.stdout, system.stderr)
        sys.exit(system.returncode)
    unittest.main()
