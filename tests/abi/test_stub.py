#!/usr/bin/python3
"""A program is linked with the stub and runs with the library. usage: test_stub.py STUB LIBRARY

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys
import tempfile
import unittest

import check_abi

STUB, LIBRARY = (pathlib.Path(word) for word in sys.argv[1:])
del sys.argv[1:]
INCLUDE = check_abi.ROOT / "include"


class Stub(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def link(self, source):
        program = self.folder / "program"
        result = check_abi.run("gcc", "-I", INCLUDE, source, "-o", program, "-L", STUB.parent,
                               "-ldtrain", "-lm", "-Wl,-z,now")
        return program, result

    def run_with(self, program, library):
        return check_abi.run(program, timeout=60, env={"LD_LIBRARY_PATH": str(library.parent)})

    def test_same_symbols(self):
        self.assertEqual(check_abi.library_symbols(STUB), check_abi.library_symbols(LIBRARY))

    def test_example(self):
        program, result = self.link(check_abi.ROOT / "examples" / "gradient_queue.c")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_with(program, LIBRARY)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rank 0", result.stdout)
        result = self.run_with(program, STUB)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("is the stub", result.stderr)

    def test_planted_function_that_is_not_there(self):
        source = self.folder / "program.c"
        source.write_text("#include <dtrain.h>\nvoid dtrain_nothing(void);\n"
                          "int main(void) { dtrain_nothing(); }\n")
        _, result = self.link(source)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("dtrain_nothing", result.stderr)


if __name__ == "__main__":
    unittest.main()
