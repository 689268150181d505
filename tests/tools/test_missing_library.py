#!/usr/bin/python3
"""A transport whose plugin is here, and whose library is not: all say which one is missing, and
nobody goes on without it unseen. usage: test_missing_library.py FOLDER_OF_PROGRAMS PLUGIN

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, PLUGIN = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
TRANSPORT = re.fullmatch(r"libdtrain_transport_(\w+)\.so", PLUGIN.name)[1]
LIBRARY = {"ofi": b"libfabric.so.1", "ucx": b"libucp.so.0"}[TRANSPORT]
MISSING = LIBRARY.replace(b"lib", b"no_")


class MissingLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        content = PLUGIN.read_bytes()
        assert LIBRARY in content
        cls.plugin = pathlib.Path(folder.name, PLUGIN.name)
        cls.plugin.write_bytes(content.replace(LIBRARY, MISSING))

    def run_with(self, transports, *command):
        environment = dict(os.environ, DTRAIN_PLUGIN_PATH=str(self.plugin.parent),
                           DTRAIN_TRANSPORTS=transports)
        return subprocess.run([f"{PROGRAMS}/{command[0]}", *command[1:]], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)

    def check_text(self, text):
        self.assertIn(str(self.plugin), text)
        self.assertIn(MISSING.decode(), text)
        self.assertIn("install it, or do without", text)

    def test_info_names_it(self):
        self.check_text(self.run_with(TRANSPORT, "dtrain-info").stderr)

    def test_a_context_names_it(self):
        result = self.run_with(TRANSPORT, "dtrain-bench", "--threads", "2", "--sizes", "8")
        self.assertNotEqual(result.returncode, 0)
        self.check_text(result.stderr)

    def test_another_transport_is_no_silent_fallback(self):
        result = self.run_with(f"shm,tcp,{TRANSPORT}", "dtrain-bench", "--threads", "2",
                               "--sizes", "8")
        self.assertNotEqual(result.returncode, 0)
        self.check_text(result.stderr)

    def test_without_it_all_is_well(self):
        result = self.run_with("shm,tcp", "dtrain-bench", "--threads", "2", "--sizes", "8")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
