#!/usr/bin/python3
"""Plants breaks of the binary interface and expects check_abi.py to see each of them, and to accept
what is allowed. The libraries here are stubs of the header as it is today.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import tempfile
import unittest

import check_abi

RECORD = check_abi.HERE / "v0.1"
SYMBOLS = (RECORD / "symbols.txt").read_text().splitlines()


class PlantedBreaks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.headers = self.folder / "include"
        shutil.copytree(check_abi.ROOT / "include", self.headers)
        self.map = shutil.copy(check_abi.ROOT / "lib" / "dtrain.map", self.folder)

    def edit(self, file, old, new):
        text = pathlib.Path(file).read_text()
        self.assertEqual(text.count(old), 1, f"{old!r} is not once in {file}")
        pathlib.Path(file).write_text(text.replace(old, new))

    def edit_header(self, old, new):
        self.edit(self.headers / "dtrain.h", old, new)

    def check(self, name, symbols=tuple(SYMBOLS)):
        library = self.folder / "libdtrain.so.0"
        check_abi.make_stub(self.headers, symbols, library, "-g")
        args = check_abi.arguments([name, "--library", str(library), "--headers",
                                    str(self.headers), "--map", str(self.map)])
        try:
            return "\n".join(check_abi.CHECKS[name](args))
        except check_abi.Skipped as reason:
            self.skipTest(reason)

    def test_nothing_changed(self):
        for name in ("symbols", "debian_symbols", "constants", "layout", "abidiff"):
            self.assertEqual(self.check(name), "")

    def test_symbol_missing_in_the_library(self):
        text = self.check("symbols", [line for line in SYMBOLS if "dtrain_send " not in line])
        self.assertEqual(text, "library: missing: dtrain_send DTRAIN_0.1")

    def test_symbol_of_another_version(self):
        text = self.check("symbols", [line.replace("dtrain_send DTRAIN_0.1",
                                                   "dtrain_send DTRAIN_0.2") for line in SYMBOLS])
        self.assertIn("library: missing: dtrain_send DTRAIN_0.1", text)

    def test_symbol_missing_in_the_map(self):
        self.edit(self.map, "dtrain_send;", "")
        self.assertIn("version map: missing: dtrain_send", self.check("symbols"))

    def test_extra_symbol(self):
        self.edit_header("/* ---- options:", "DTRAIN_API void dtrain_extra(void);\n/*")
        text = self.check("symbols", [*SYMBOLS, "dtrain_extra DTRAIN_0.1"])
        self.assertIn("library: not expected: dtrain_extra", text)
        self.assertIn("dtrain.h: not expected: dtrain_extra", text)

    def test_renumbered_constant(self):
        self.edit_header("X(ERR_BUSY, -6,", "X(ERR_BUSY, -14,")
        text = self.check("constants")
        self.assertIn("missing: DTRAIN_ERR_BUSY -6", text)
        self.assertIn("not expected: DTRAIN_ERR_BUSY -14", text)

    def test_renumbered_constant_of_transports(self):
        self.edit(self.headers / "dtrain_transport.h", "#define DTRAIN_TP_ABI 1u",
                  "#define DTRAIN_TP_ABI 2u")
        self.assertIn("DTRAIN_TP_ABI 2", self.check("constants"))

    def test_field_in_the_middle(self):
        self.edit_header("    dtrain_cq_t *cq; ", "    uint64_t inserted;\n    dtrain_cq_t *cq; ")
        self.assertIn("dtrain_op_params.cq is elsewhere", self.check("layout"))
        self.assertIn("inserted", self.check("abidiff"))

    def test_field_of_another_type(self):
        self.edit_header("    double initial; ", "    uint64_t initial; ")
        self.assertIn("dtrain_table_params.initial is elsewhere or of another type",
                      self.check("layout"))

    def test_shrunk_struct(self):
        self.edit_header("uint64_t reserved[3];", "uint64_t reserved[2];")
        self.assertIn("dtrain_event has another size", self.check("layout"))
        self.assertIn("dtrain_event", self.check("abidiff"))

    def test_shrunk_parameters(self):
        self.edit_header("    uint64_t max_record; ", "    /* gone */")
        self.assertIn("dtrain_reader_params has shrunk", self.check("layout"))

    def test_moved_operation_of_transports(self):
        self.edit(self.headers / "dtrain_transport.h", "    void (*close)(dtrain_tp_dev_t *dev);",
                  "    void (*pause)(dtrain_tp_dev_t *dev);\n    void (*close)(dtrain_tp_dev_t *dev);")
        self.assertIn("dtrain_tp_ops.close is elsewhere", self.check("layout"))

    def test_field_at_the_tail_is_allowed(self):
        self.edit_header("    uint64_t min_version;", "    uint64_t min_version;\n    uint64_t added;")
        self.assertEqual(self.check("layout"), "")
        self.assertEqual(self.check("abidiff"), "")

    def test_changed_argument(self):
        self.edit_header("dtrain_dtype_size(uint32_t dtype)", "dtrain_dtype_size(uint64_t dtype)")
        self.assertIn("dtrain_dtype_size", self.check("abidiff"))

    def test_changed_operation_of_transports(self):
        self.edit(self.headers / "dtrain_transport.h", "int32_t (*event_fd)(dtrain_tp_dev_t *dev);",
                  "int64_t (*event_fd)(dtrain_tp_dev_t *dev);")
        self.assertIn("dtrain_tp_ops *)0)->event_fd is no int32_t", self.check("layout"))

    def test_changed_call_of_functions(self):
        self.edit(self.headers / "dtrain_function.h", "(*dtrain_function_fn)(void *user,",
                  "(*dtrain_function_fn)(void *user, int32_t count,")
        self.assertIn("(dtrain_function_fn)0 is no", self.check("layout"))

    def test_operation_at_the_tail_is_allowed(self):
        self.edit(self.headers / "dtrain_transport.h", "} dtrain_tp_ops_t;",
                  "    void (*pause)(dtrain_tp_dev_t *dev);\n} dtrain_tp_ops_t;")
        self.assertEqual(self.check("layout"), "")

    def test_symbols_file_of_debian(self):
        self.edit_header("/* ---- options:", "DTRAIN_API void dtrain_extra(void);\n/*")
        text = self.check("debian_symbols", [*SYMBOLS, "dtrain_extra DTRAIN_0.1"])
        self.assertIn("+ dtrain_extra@DTRAIN_0.1", text)
        text = self.check("debian_symbols", [line for line in SYMBOLS if "dtrain_send " not in line])
        self.assertIn("dtrain_send@DTRAIN_0.1", text)
        self.edit(self.map, "dtrain_send;", "")
        self.assertIn("libdtrain0.symbols: not expected:  dtrain_send@DTRAIN_0.1 0.1.0",
                      self.check("debian_symbols"))

    def test_old_program_without_its_symbol(self):
        text = self.check("old_program", [line for line in SYMBOLS if "dtrain_barrier " not in line])
        self.assertIn("dtrain_barrier", text)


if __name__ == "__main__":
    unittest.main()
