"""What tests of dtrain.launch have in common.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import tempfile
import textwrap
import time
import unittest

import dtrain
from dtrain import launch

LIMIT = 60  # seconds; nothing here takes so long


def quietly(**more):
    return {"output": False, "progress": False, **more}


def lives(pid):
    """Whether the process is there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_death(pid):
    end = time.monotonic() + LIMIT
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not lives(pid)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def launch(self, n, what=None, **settings):
        job = launch.launch_workers(n, what, **quietly(logs=self.folder / "logs", **settings))
        self.addCleanup(job.stop)
        return job

    def wait_for(self, job, text, *indices):
        """Until these workers have written it."""
        end = time.monotonic() + LIMIT
        while not all(len(job) > i and text in "\n".join(job[i].tail(200)) for i in indices):
            outcome = launch.await_workers(job, timeout_seconds=0.05)
            self.assertTrue(outcome.running or outcome.pending, said_by(job))
            self.assertLess(time.monotonic(), end, said_by(job))

    def failure(self, job, kind):
        """The error of a job that fails."""
        outcome = launch.await_workers(job, timeout_seconds=LIMIT)
        with self.assertRaises(kind) as caught:
            outcome.check()
        self.assertIsInstance(caught.exception, launch.LaunchError)
        self.assertIsInstance(caught.exception, dtrain.Error)
        self.assertFalse(outcome)
        self.assertFalse(outcome.running or outcome.pending)
        return caught.exception


def said_by(job):
    """What the job's processes and the launcher have written, for the text of a failed test."""
    return "\n".join(f"[{path.stem}] {line}" for path in sorted(job.logs.iterdir())
                     for line in path.read_text(errors="replace").splitlines()[-20:])
