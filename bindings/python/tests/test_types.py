"""mypy --strict and pyright find nothing wrong with a program that uses all of the API, nor with the package,
and a setting that is misspelt. usage: test_types.py PACKAGES (the folder that holds the package)

SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
PACKAGES = os.path.abspath(sys.argv.pop())
PROGRAM = pathlib.Path(__file__).with_name("typed_program.py")
MISSPELT = 'import dtrain\n\nwith dtrain.Context() as context:\n    context.world.table("x", lenght=1)\n'


def run(*command, folder):
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": PACKAGES}, timeout=110, check=False)
    return done.returncode, done.stdout + done.stderr


class Checked(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        shutil.copy(PROGRAM, f"{self.folder}/good.py")
        pathlib.Path(f"{self.folder}/bad.py").write_text(MISSPELT)

    def test_mypy(self):
        mypy = ("mypy", "--strict", "--cache-dir", f"{self.folder}/cache")
        for what in (["good.py"], ["-p", "dtrain"]):
            code, output = run(*mypy, *what, folder=self.folder)
            self.assertEqual(code, 0, output)
        code, output = run(*mypy, "bad.py", folder=self.folder)
        self.assertEqual(code, 1, output)
        self.assertIn("lenght", output)

    def test_pyright(self):
        for name, found in (("good.py", 0), ("bad.py", 1)):
            pathlib.Path(f"{self.folder}/pyrightconfig.json").write_text(
                json.dumps({"include": [name], "extraPaths": [PACKAGES]}))
            code, output = run("pyright", "-p", ".", folder=self.folder)
            self.assertEqual(code, found, output)


if __name__ == "__main__":
    missing = [name for name in ("mypy", "pyright") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} of PyPI could not be installed by ./dev venv")
        sys.exit(SKIPPED)
    unittest.main()
