#!/usr/bin/python3
"""Plants a break of each rule and expects the lint to see it. usage: test_lint.py LAYERS.json LIBRARY BUILD_FOLDER

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import descriptors
import english
import headers
import layers
import library
import parts
import sizes

LAYERS, LIBRARY, BUILD = sys.argv[1:]
del sys.argv[1:]


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.layers = layers.load(LAYERS)

    def layer(self, name):
        return next(layer for layer in self.layers if layer["name"] == name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def compile(self, name, text, *flags):
        source, result = self.write(name + ".c", text), self.folder / name
        subprocess.run(["cc", "-o", result, source, *flags], check=True)
        return str(result)

    def plant_object(self, layer, text):
        self.layer(layer)["objects"].append(self.compile("planted.o", text, "-c"))
        return "\n".join(layers.check_symbols(self.layers))


class Layers(Planted):
    def test_symbol_of_an_upper_layer(self):
        text = self.plant_object("base", "int dtrain_barrier(); int f() { return dtrain_barrier(); }")
        self.assertEqual(text, "base/planted.o uses dtrain_barrier of api, which is not below")

    def test_collectives_use_the_parameter_server(self):
        defined, _ = layers.symbols(self.layer("ps/server")["objects"])
        below, _ = layers.symbols(self.layer("cluster/session")["objects"])
        symbol = min(name for name in defined - below if "dtrain2ps" in name)
        text = self.plant_object("collectives/call", f"int {symbol}(); int f() {{ return {symbol}(); }}")
        self.assertEqual(text, f"collectives/call/planted.o uses {symbol} of ps/server, which is not below")

    def test_transport_uses_the_core(self):
        text = self.plant_object("transport_tcp", "int dtrain_barrier();"
                                 "int f() { return dtrain_barrier(); }")
        self.assertIn("transport_tcp/planted.o uses dtrain_barrier", text)

    def test_what_a_library_must_not_call(self):
        for call in ("abort();", "exit(1);", "puts(\"\");", "signal(2, 0);", "cudaMalloc();"):
            self.layers = layers.load(LAYERS)
            source = f"int f() {{ {call} }}"
            with self.subTest(call):
                self.compile("planted.o", source, "-c", "-w", "-fno-builtin")
                self.layer("engine")["objects"].append(str(self.folder / "planted.o"))
                name = call.split("(")[0]
                self.assertEqual(layers.check_symbols(self.layers),
                                 [f"engine/planted.o uses {name}, which no part of the library may"])

    def test_declaration(self):
        self.layer("ps/server")["below"].append("collectives/call")
        self.assertEqual(layers.check_declaration(self.layers),
                         ["ps/server and collectives/call must not see each other"])
        self.layers = layers.load(LAYERS)
        self.layer("base")["below"].append("engine")
        self.assertEqual(layers.check_declaration(self.layers),
                         ["base is declared before engine, on which it is built"])

    def test_folders_that_the_readme_has_not(self):
        text = (layers.LIB / "README.md").read_text()
        self.assertEqual(layers.check_readme(self.layers, text), [])
        self.assertEqual(layers.check_readme(self.layers, text.replace("| `ps/client` |", "| `ps/klient` |")),
                         ["lib/README.md does not list ps/client",
                          "lib/README.md lists ps/klient, which is not there"])
        lines = text.split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith("| `wire` |"))
        lines[at], lines[at + 2] = lines[at + 2], lines[at]
        self.assertTrue(layers.check_readme(self.layers, "\n".join(lines)))

    def test_upper_layer_on_the_include_path(self):
        self.layer("base")["includes"] += self.layer("protection")["includes"]
        self.layer("ps/storage")["includes"] += self.layer("ps/client")["includes"]
        self.assertEqual(layers.check_includes(self.layers)[:2],
                         ["base can include files of protection, which is not below",
                          "ps/storage can include files of ps/checkpoint, which is not below"])

    def test_upward_include_does_not_compile(self):
        for header, works in (("base/status.h", True), ("engine/agent.h", False)):
            source = self.write("planted.cpp", f'#include "{header}"\n')
            result = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", source] +
                                    [f"-I{i}" for i in self.layer("memory")["includes"]],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode == 0, works, result.stderr)


class Library(Planted):
    def make(self, text, *flags):
        return self.compile("libplanted.so", text, "-w", "-shared", "-fPIC", *flags)

    def test_needs_another_library(self):
        other = self.compile("libcuda.so.1", "int cuInit() { return 0; }", "-shared", "-fPIC")
        planted = self.make("int f() { return cuInit(); }", "-Wl,--no-as-needed", other)
        self.assertEqual(library.check_needed(planted), [f"needs {other}"])
        self.assertEqual(library.check_imports(planted), ["imports cuInit"])

    def test_plugin_exports_more(self):
        planted = self.make("void dtrain_transport_query() {} void helper() {}")
        self.assertEqual(library.check_plugin(planted),
                         ["exports ['dtrain_transport_query', 'helper']"])

    def test_too_big(self):
        planted = self.make("const char data[4 << 20] = {1};")
        self.assertNotEqual(library.check_size(planted), [])

    def test_limit_counts_the_real_library(self):
        self.assertNotEqual(library.check_size(LIBRARY, limit=100000), [])


class Sources(Planted):
    def test_long_file(self):
        self.write("long.cpp", "\n" * 601)
        self.write("fits.cpp", "\n" * 600)
        self.assertEqual(sizes.check_sizes(self.folder), ["long.cpp: 601 lines, more than 600"])

    def test_turns_that_the_style_page_does_not_want(self):
        for text in ("// its neighbours", "// Who waits here", " * Whose it is", "it optimises", "waits for ever",
                     "// What it is. SPDX-License-Identifier: Apache-2.0", "who waits in vain"):
            with self.subTest(text):
                self.assertTrue(english.check_text("planted.h", text))
        self.assertEqual(english.check_text("fine.h", "// The neighbors optimize.\n// SPDX-License-Identifier: Apache-2.0"), [])

    def test_diagrams_that_are_not_as_their_source(self):
        draw = pathlib.Path(__file__).parent.parent.parent / "docs/diagrams/draw"
        for name in ("push.dot", "push.svg"):
            (self.folder / name).write_bytes((draw.parent / name).read_bytes())
        check = [draw, "--check", self.folder]
        self.assertEqual(subprocess.run(check).returncode, 0)
        with open(self.folder / "push.dot", "a") as source:
            source.write("// another line\n")
        done = subprocess.run(check, stderr=subprocess.PIPE, text=True)
        self.assertTrue(done.returncode != 0 and "push.dot" in done.stderr, done.stderr)

    def test_descriptors_that_are_not_owned(self):
        for bad in ("int fd = socket(AF_INET, SOCK_STREAM, 0);", "fd_ = ::open(path, O_RDONLY);",
                    "Fd fd;\nfd_ = accept4(l, nullptr, nullptr, 0);", "fcntl(fd, F_DUPFD_CLOEXEC, 0);",
                    "int fd = int(syscall(SYS_pidfd_open, pid, 0));", "fopen(path, \"re\");"):
            with self.subTest(bad):
                self.assertEqual(len(descriptors.check_text("planted", bad)), 1)
        for good in ("Fd fd(socket(AF_INET, SOCK_STREAM, 0));", "const Fd fd(::open(path, O_RDONLY));",
                     "x = Fd(int(syscall(SYS_pidfd_open, pid, 0)));", "file.open(path);",
                     "// fopen()", "Descriptors::own(\n ::open(path, O_RDONLY))"):
            with self.subTest(good):
                self.assertEqual(descriptors.check_text("planted", good), [])

    def test_headers_that_do_not_stand_alone(self):
        for text in ("uint32_t f(void);", "struct s { char a; int b; };",
                     "void f(int class);", "static int unused(void) { return 0; }"):
            with self.subTest(text):
                self.write("planted.h", text)
                self.assertNotEqual(headers.check_headers(self.folder), [])

    @unittest.skipUnless(pathlib.Path(BUILD, "build.ninja").exists(), "not built by Ninja")
    def test_programs_of_no_target(self):
        self.assertEqual(parts.check_programs(BUILD, ["lib/all", "transports/all"]), [])
        unknown, = parts.check_programs(BUILD, ["lib/all", "contract_test_planted.far"])
        self.assertIn("contract_test_planted.far", unknown)
        self.assertNotEqual(parts.check_programs(BUILD, []), [])


if __name__ == "__main__":
    unittest.main()
