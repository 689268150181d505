#!/usr/bin/python3
"""dtrain-bench tune, and jobs that use what it wrote. usage: test_tune.py FOLDER_OF_PROGRAMS

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = sys.argv.pop(1)
LIMIT = 200  # seconds
BENCH = f"{PROGRAMS}/dtrain-bench"


def run(ranks, *arguments, **environment):
    return subprocess.run([f"{PROGRAMS}/dtrain-run", "-n", str(ranks), "--", *map(str, arguments)],
                          env=dict(os.environ, DTRAIN_HEARTBEAT_TIMEOUT="30s", **environment),
                          capture_output=True, text=True, timeout=LIMIT, check=False)


def all_reduce(ranks, path, **environment):
    return run(ranks, BENCH, "--sizes", "100K", "--iterations", "2", DTRAIN_TUNING_FILE=str(path),
               DTRAIN_EXPLAIN="1", **environment)


class Tuning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name, "machine")
        result = run(2, BENCH, "tune", "--out", cls.path, DTRAIN_TRANSPORTS="tcp")
        assert result.returncode == 0, result.stderr
        cls.text = cls.path.read_text()
        cls.said = result.stdout

    def changed(self, before, after):
        self.assertIn(before, self.text)
        path = pathlib.Path(self.folder.name, "changed")
        path.write_text(self.text.replace(before, after, 1))
        return path

    def warning(self, path, ranks=2, **environment):
        """The one warning of a job that goes on with the built-in model."""
        result = all_reduce(ranks, path, **dict({"DTRAIN_TRANSPORTS": "tcp"}, **environment))
        self.assertEqual(result.returncode, 0, result.stderr)
        said = [line for line in result.stderr.splitlines() if "tuning file" in line]
        self.assertEqual(len(said), 1, result.stderr)
        self.assertIn("the built-in cost model is used", said[0])
        return said[0]

    def test_writes_and_shows_a_model(self):
        self.assertTrue(self.text.startswith("dtrain-tuning 2\ncpu = "), self.text)
        self.assertIn("\ntransports = tcp\n", self.text)
        for line in self.text.splitlines():
            self.assertIn(line, self.said)

    def test_is_used(self):
        result = all_reduce(2, self.path, DTRAIN_TRANSPORTS="tcp")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("tuning file", result.stderr)
        built_in = all_reduce(2, "", DTRAIN_TRANSPORTS="tcp")
        predictions = [[line.partition("predicted ")[2].partition(",")[0]
                        for line in text.splitlines() if "of 102400 bytes" in line]
                       for text in (result.stderr, built_in.stderr)]
        self.assertEqual([len(found) for found in predictions], [1, 1])
        self.assertNotEqual(*predictions)

    def test_of_another_job(self):
        said = self.warning(self.path, ranks=3)
        self.assertIn('ranks "2" there, "3" here', said)
        said = self.warning(self.path, DTRAIN_TRANSPORTS="shm,tcp")
        self.assertIn('transports "tcp" there, "shm" here', said)

    def test_broken_files(self):
        self.assertIn("checksum is wrong", self.warning(self.changed("ranks = 2", "ranks = 3")))
        self.assertIn("not a tuning file", self.warning(self.changed("dtrain-tuning", "tuning")))
        self.assertIn("its end is missing", self.warning(self.changed("crc32c", "")))
        self.assertIn("No such file", self.warning(pathlib.Path(self.folder.name, "none")))
        self.assertIn("not a tuning file", self.warning("/dev/zero"))

    def test_cannot_be_written(self):
        result = run(2, BENCH, "tune", "--out", f"{self.folder.name}/none/file",
                     DTRAIN_TRANSPORTS="tcp")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("No such file or directory", result.stderr)
        self.assertEqual(run(2, BENCH, "tune", "x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
