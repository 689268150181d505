#!/usr/bin/python3
"""Programs, update rules and transports of older and newer releases with today's library, and its
transports and plugins for accelerators with older and newer cores. What is of another release is built
with headers that growth.py has changed, or with the recorded ones.
usage: test_growth.py LIBRARY PLUGIN[:OPTION=VALUE] ...

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import check_abi
import growth

LIBRARY = pathlib.Path(sys.argv[1])
GIVEN = [(pathlib.Path(words[0]), words[1:]) for words in (argument.split(":") for argument in sys.argv[2:])]
PLUGINS = [plugin for plugin in GIVEN if "_transport_" in plugin[0].name]
DEVICES = [plugin for plugin, _ in GIVEN if "_device_" in plugin.name]
del sys.argv[1:]
HERE, ROOT, RECORD = check_abi.HERE, check_abi.ROOT, check_abi.HERE / "v0.1"
SOURCES = HERE / "growth"
TRANSPORT = ROOT / "examples" / "transport_plugin" / "queue.c"
DEVICE = ROOT / "examples" / "device_plugin" / "plain.c"
FUNCTION = ROOT / "examples" / "server_function" / "clipped_adagrad.c"


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.headers = {"recorded": RECORD, "today": ROOT / "include"}
        for how in (growth.shorter, growth.longer):
            name = how.__name__
            cls.headers[name] = growth.write(ROOT / "include", how, cls.folder / name)

    def build(self, source, headers, *flags, name=None):
        out = self.folder / "built" / headers / (name or source.stem)
        out.parent.mkdir(parents=True, exist_ok=True)
        if headers == "longer":
            flags = ("-DADDED", *flags)
        check_abi.must_run("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I",
                           self.headers[headers], source, "-o", out, *flags)
        return out

    def program(self, source, headers):
        return self.build(source, headers, "-pthread", LIBRARY, "-Wl,-z,now")

    def shared_object(self, source, headers, name):
        return self.build(source, headers, "-shared", "-fPIC", "-lm", name=name)

    def run_in(self, *command, **environment):
        return check_abi.run(*command, timeout=60, cwd=self.folder, env={
            **{key: value for key, value in os.environ.items() if not key.startswith("DTRAIN_")},
            "LD_LIBRARY_PATH": str(LIBRARY.parent), **environment})

    def must_run(self, *command, **environment):
        result = self.run_in(*command, **environment)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stdout}{result.stderr}")


class Programs(Growth):
    def test_every_struct_has_its_case(self):
        """Those of programs in params.c; those that plugins and cores exchange in core.c, or,
        what a plugin makes, in the job of test_older_and_newer_plugins()."""
        cases = "".join((SOURCES / file).read_text() for file in ("params.c", "core.c", "device_core.c"))
        self.assertEqual({name for name in growth.growable(ROOT / "include")
                          if not re.search(rf"\b{name}_t\b", cases)}, set())

    def test_older_and_newer_programs(self):
        for headers in ("recorded", "shorter", "longer"):
            with self.subTest(headers):
                self.must_run(self.program(RECORD / "program.c", headers))
                self.must_run(self.program(SOURCES / "params.c", headers),
                              tempfile.mkdtemp(dir=self.folder))

    def test_planted_cut(self):
        """A library that cuts what it does not know, unseen."""
        shim = self.folder / "shim.c"
        shim.write_text("""
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <dtrain.h>
            dtrain_status_t dtrain_reader_open(const char *const *paths, uint32_t count,
                    const dtrain_reader_params_t *params, dtrain_reader_t **reader_p) {
                __typeof__(&dtrain_reader_open) real;
                *(void **)&real = dlsym(RTLD_NEXT, "dtrain_reader_open");
                dtrain_reader_params_t cut = *params;
                cut.struct_size = sizeof cut;
                return real(paths, count, &cut, reader_p);
            }""")
        preloaded = self.build(shim, "today", "-shared", "-fPIC", name="shim.so")
        result = self.run_in(self.program(SOURCES / "params.c", "longer"),
                             tempfile.mkdtemp(dir=self.folder), LD_PRELOAD=str(preloaded))
        self.assertEqual(result.returncode, 1)
        self.assertIn("dtrain_reader_open", result.stderr)


class Plugins(Growth):
    def job(self, headers):
        transport = self.shared_object(TRANSPORT, headers, "libdtrain_transport_queue.so")
        function = self.shared_object(FUNCTION, headers, "libclipped_adagrad.so")
        return self.run_in(
            self.program(SOURCES / "job.c", "today"), f"file://{tempfile.mkdtemp(dir=self.folder)}/j",
            DTRAIN_TRANSPORTS="queue", DTRAIN_PLUGIN_PATH=str(transport.parent),
            DTRAIN_PS_FUNCTIONS=str(function))

    def test_older_and_newer_plugins(self):
        for headers in ("recorded", "shorter", "longer"):
            with self.subTest(headers):
                result = self.job(headers)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_another_transport_abi(self):
        """A copy of each plugin that says it was built for ABI 9."""
        for plugin, _ in PLUGINS:
            with self.subTest(plugin.name):
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                copy = folder / plugin.name
                copy.write_bytes(with_abi(plugin, 9))
                name = re.fullmatch(r"libdtrain_transport_(\w+)\.so", plugin.name)[1]
                result = self.run_in(self.program(SOURCES / "job.c", "today"), "file:///nowhere",
                                     DTRAIN_TRANSPORTS=name, DTRAIN_PLUGIN_PATH=str(folder))
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{copy} has transport ABI 9, this library serves 1", result.stderr)


def with_abi(plugin, abi):
    """The plugin's bytes with another number after the struct_size of its table."""
    name = plugin.stem.replace("libdtrain_transport_", "dtrain_tp_plugin_")
    symbol = re.search(rf"^(\w+) \w {name}$", check_abi.must_run("nm", plugin), re.MULTILINE)
    address = int(symbol[1], 16)
    for line in check_abi.must_run("readelf", "-SW", plugin).splitlines():
        section = re.search(r"PROGBITS\s+(\w+)\s+(\w+)\s+(\w+)", line)
        if section:
            start, offset, size = (int(number, 16) for number in section.groups())
            if 0 < start <= address < start + size:  # 0: not loaded
                at = offset + address - start
    content = bytearray(plugin.read_bytes())
    assert struct.unpack_from("=II", content, at) == (32, 1)
    struct.pack_into("=I", content, at + 4, abi)
    return content


class Cores(Growth):
    def core(self, headers):
        return self.build(SOURCES / "core.c", headers, "-ldl")

    def test_older_and_newer_cores(self):
        for headers in ("recorded", "shorter", "longer"):
            for plugin, options in PLUGINS:
                with self.subTest(f"{headers}, {plugin.name}"):
                    self.must_run(self.core(headers), plugin, *options)

    def test_planted_overrun(self):
        """A plugin that fills its whole struct of attributes, whatever there is room for."""
        spoiled = self.folder / "spoiled.c"
        text = TRANSPORT.read_text()
        limit = "attr->struct_size < sizeof full ? attr->struct_size : sizeof full"
        self.assertIn(limit, text)
        spoiled.write_text(text.replace(limit, "sizeof full"))
        plugin = self.shared_object(spoiled, "today", "spoiled.so")
        result = self.run_in(self.core("shorter"), plugin)
        self.assertIn("query() wrote too much", result.stderr)


class Devices(Growth):
    def core(self, headers):
        return self.build(SOURCES / "device_core.c", headers, "-ldl")

    def test_older_and_newer_cores(self):
        for headers in ("recorded", "shorter", "longer"):
            for plugin in DEVICES:
                with self.subTest(f"{headers}, {plugin.name}"):
                    self.must_run(self.core(headers), plugin,
                                  LD_LIBRARY_PATH=str(LIBRARY.parent.parent / "fakecuda"))

    def test_older_and_newer_plugins(self):
        for headers in ("recorded", "shorter", "longer"):
            with self.subTest(headers):
                plugin = self.shared_object(DEVICE, headers, f"plain_{headers}.so")
                self.must_run(self.core("today"), plugin)

    def test_planted_overrun(self):
        """A plugin that fills its whole struct of attributes, whatever there is room for."""
        spoiled = self.folder / "spoiled_device.c"
        text = DEVICE.read_text()
        limit = "attr->struct_size < sizeof full ? attr->struct_size : sizeof full"
        self.assertIn(limit, text)
        spoiled.write_text(text.replace(limit, "sizeof full"))
        plugin = self.shared_object(spoiled, "today", "spoiled_device.so")
        result = self.run_in(self.core("shorter"), plugin)
        self.assertIn("query() wrote too much", result.stderr)


if __name__ == "__main__":
    unittest.main()
