#!/usr/bin/python3
"""Installs a build into a folder of its own and uses it from outside: pkg-config, find_package(),
the tools, the plugins. usage: test_install.py BUILD_FOLDER LIBDIR

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, LIBDIR = sys.argv[1:]
del sys.argv[1:]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = HERE / "program"
LIMIT = 120  # seconds; nothing here takes so long


def clean_environment(**more):
    """Nothing of the tests' own surroundings decides what is found or joined."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("DTRAIN_") and key not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
    return {**kept, **{key: str(value) for key, value in more.items()}}


def run(*command, **environment):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=LIMIT, check=False, env=clean_environment(**environment))
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}:\n"
                             f"{result.stdout}{result.stderr}")
    return result.stdout


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        run("cmake", "--install", BUILD, "--prefix", cls.folder / "first")
        # What is installed must not know where it was installed.
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)
        manifest = pathlib.Path(BUILD, "install_manifest.txt").read_text()
        (cls.folder / "install_manifest.txt").write_text(manifest.replace(f"{cls.folder}/first/", f"{cls.prefix}/"))
        cls.libraries = cls.prefix / LIBDIR

    def pkg_config(self, *words):
        return run("pkg-config", *words, "dtrain",
                   PKG_CONFIG_PATH=self.libraries / "pkgconfig").split()

    def compile(self, name, *flags):
        program = self.folder / name
        run("cc", "-o", program, PROGRAM / "one_rank.c", *flags)
        return program

    def configure(self, version="0.1", components="tcp;shm", *more):
        build = self.folder / "cmake"
        run("cmake", "--fresh", "-S", PROGRAM, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DVERSION={version}", f"-DCOMPONENTS={components}", *more)
        return build

    def find_package(self, *arguments):
        build = self.configure(*arguments)
        run("cmake", "--build", build)
        return build

    def build_plugin(self):
        source, build = self.folder / "plugin", self.folder / "plugin_build"
        shutil.copytree(ROOT / "examples" / "transport_plugin", source)
        run("cmake", "-S", source, "-B", build, PKG_CONFIG_PATH=self.libraries / "pkgconfig")
        run("cmake", "--build", build)
        return build

    def assert_works(self, program, **environment):
        output = run(program, **environment)
        self.assertIn(f"{self.pkg_config('--modversion')[0]}\n", output)
        self.assertIn('"transports"', output)
        return output


class Installed(Tree):
    def test_pkg_config_shared(self):
        program = self.compile("pc_shared", *self.pkg_config("--cflags", "--libs"))
        self.assert_works(program, LD_LIBRARY_PATH=self.libraries)
        self.assertNotIn("sodium", " ".join(self.pkg_config("--libs")))

    def test_pkg_config_static(self):
        flags = self.pkg_config("--static", "--cflags", "--libs")
        self.assert_works(self.compile("pc_static", "-static", *flags))

    def test_find_package(self):
        build = self.find_package()
        self.assert_works(build / "shared")
        self.assert_works(build / "static")
        self.assertNotIn("libdtrain", run("ldd", build / "static"))

    def test_cpp(self):
        source = ROOT / "examples" / "allreduce.cpp"
        build = self.find_package("0.1", "tcp", f"-DCXX={source}")
        self.assertIn("y = 2.000 x + 1.000", run(self.prefix / "bin/dtrain-run", "-n", "2", "--", build / "cpp"))
        program = self.folder / "pc_cpp"
        flags = self.pkg_config("--static", "--cflags", "--libs")
        own = ["-l:libdtrain.a" if flag == "-ldtrain" else flag for flag in flags]  # that, and nothing else
        for words in (["-static", *flags], own):
            run("c++", "-std=c++17", "-o", program, source, *words)
            self.assertIn("y = 2.000 x + 1.000", run(program))
            self.assertNotIn("libdtrain", subprocess.run(["ldd", program], capture_output=True, text=True).stdout)

    def test_versions_and_components(self):
        for version in ("0.1...0.2", "0.1.0", "0.1...<0.2", "0.0.5...0.1.0", "0"):
            with self.subTest(version):
                self.configure(version)
        for version in ("0.2", "0.0", "0.2...0.3", "0.0...<0.1.0", "1"):
            with self.subTest(version), self.assertRaisesRegex(AssertionError, "0.1.0"):
                self.configure(version)
        with self.assertRaisesRegex(AssertionError, "the transport pigeon\\s+is\\s+not\\s+in"):
            self.configure("0.1", "tcp;pigeon")
        (self.libraries / "dtrain" / "libdtrain_transport_ofi.so").unlink(missing_ok=True)
        with self.assertRaisesRegex(AssertionError, "dtrain-transport-ofi"):
            self.configure("0.1", "ofi")

    def test_tools(self):
        tools = self.prefix / "bin"
        self.assertIn("plugin.path", run(tools / "dtrain-info"))
        run(tools / "dtrain-run", "-n", "2", "--", tools / "dtrain-bench", "--sizes", "8",
            "--iterations", "1")

    def test_installed_plugins(self):
        program = self.compile("plugins", *self.pkg_config("--cflags", "--libs"))
        folder = self.libraries / "dtrain"
        # Those of libraries that are here.
        optional = {name for name in ("libdtrain_transport_ofi.so", "libdtrain_transport_ucx.so",
                                      "libdtrain_device_cuda.so")
                    if (pathlib.Path(BUILD) / "plugins" / name).exists()}
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"libdtrain_transport_tcp.so", "libdtrain_transport_shm.so"} | optional)
        for name in ("tcp", "shm"):
            trace = self.folder / f"trace_{name}"
            output = self.assert_works(program, LD_LIBRARY_PATH=self.libraries,
                                       DTRAIN_PLUGIN_PATH=folder, DTRAIN_TRANSPORTS=name,
                                       LD_DEBUG="files", LD_DEBUG_OUTPUT=trace)
            self.assertIn(f'{{"name": "{name}"', output)
            log = "".join(path.read_text() for path in self.folder.glob(f"trace_{name}.*"))
            self.assertIn(f"{folder}/libdtrain_transport_{name}.so", log)

    @unittest.skipUnless(pathlib.Path(BUILD, "plugins/hosts/libnccl-net-dtrain.so").exists(), "it is not built")
    def test_plugin_of_nccl(self):
        """It is found by its name, as NCCL looks for it."""
        script = ("import ctypes; table = ctypes.c_char_p.in_dll(ctypes.CDLL('libnccl-net-dtrain.so'), "
                  "'ncclNetPlugin_v11'); print(table.value.decode())")
        self.assertEqual("dtrain\n", run(sys.executable, "-c", script, LD_LIBRARY_PATH=self.libraries))

    @unittest.skipUnless(pathlib.Path(BUILD, "plugins/hosts/libdtrain_tensorflow.so").exists(), "it is not built")
    def test_ops_of_tensorflow(self):
        """Without TensorFlow in the process they say what is missing, and nothing else happens."""
        script = ("import ctypes; ops = ctypes.CDLL('libdtrain_tensorflow.so'); "
                  "ops.dtrain_tensorflow_problem.restype = ctypes.c_char_p; print(ops.dtrain_tensorflow_problem().decode())")
        self.assertIn("TensorFlow 2.13 or later is needed",
                      run(sys.executable, "-c", script, LD_LIBRARY_PATH=self.libraries))

    def test_plugin_of_a_user(self):
        build = self.build_plugin()
        program = self.compile("user", *self.pkg_config("--cflags", "--libs"))
        output = self.assert_works(program, LD_LIBRARY_PATH=self.libraries,
                                   DTRAIN_PLUGIN_PATH=build, DTRAIN_TRANSPORTS="queue")
        self.assertIn('{"name": "queue"', output)

    def test_folders_of_debian(self):
        """The library's folder may be deeper than one level."""
        build = self.folder / "deep"
        run("cmake", "-S", ROOT, "-B", build, "-DDTRAIN_TESTS=OFF",
            "-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu")
        pc_folder = self.folder / "deep_prefix/lib/x86_64-linux-gnu/pkgconfig"
        pc_folder.mkdir(parents=True)
        shutil.copy(build / "pkgconfig/dtrain.pc", pc_folder)
        for variable, inside in (("prefix", "."), ("libdir", "lib/x86_64-linux-gnu"),
                                 ("includedir", "include")):
            path = run("pkg-config", f"--variable={variable}", "dtrain", PKG_CONFIG_PATH=pc_folder)
            self.assertEqual(pathlib.Path(path.strip()).resolve(),
                             (self.folder / "deep_prefix" / inside).resolve())


class Uninstalled(Tree):
    def test_uninstall(self):
        kept = self.libraries / "of_another.so"
        kept.touch()
        hidden = self.libraries / "dtrain" / ".of_the_user"
        hidden.touch()
        script = ROOT / "pkgconfig" / "uninstall.cmake"
        run("cmake", f"-DBUILD={self.folder}", "-P", script)
        self.assertEqual([path for path in self.prefix.rglob("*") if not path.is_dir()], [kept, hidden])
        self.assertEqual([path for path in self.prefix.rglob("*dtrain*")], [hidden.parent])
        with self.assertRaisesRegex(AssertionError, "nothing was installed from"):
            run("cmake", f"-DBUILD={self.folder}", "-P", script)


class PlantedBreaks(Tree):
    """Each breaks something else of one installed tree; all must be seen."""

    def test_wrong_prefix(self):
        file = self.libraries / "pkgconfig" / "dtrain.pc"
        file.write_text(file.read_text().replace("prefix=${pcfiledir}", "prefix=/nowhere"))
        with self.assertRaisesRegex(AssertionError, "dtrain.h"):
            self.compile("wrong_prefix", *self.pkg_config("--cflags", "--libs"))

    def test_missing_plugin(self):
        (self.libraries / "dtrain" / "libdtrain_transport_tcp.so").unlink()
        with self.assertRaisesRegex(AssertionError, "the transport tcp is not in"):
            self.find_package()

    def test_missing_header(self):
        (self.prefix / "include" / "dtrain_transport.h").unlink()
        with self.assertRaisesRegex(AssertionError, "dtrain_transport.h"):
            self.build_plugin()

    def test_tools_without_the_library(self):
        (self.libraries / "libdtrain.so.0").unlink()
        with self.assertRaisesRegex(AssertionError, "libdtrain.so.0"):
            run(self.prefix / "bin" / "dtrain-info")


if __name__ == "__main__":
    unittest.main()
