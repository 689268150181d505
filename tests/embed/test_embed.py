#!/usr/bin/python3
"""dtrain's source as a part of other projects: add_subdirectory() and FetchContent, from C and C++14 to C++20, with
Ninja and Makefiles. usage: test_embed.py BUILD_FOLDER

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = HERE.parent / "install" / "program" / "one_rank.c"
NEEDED = ("CMakeLists.txt", "cmake", "devices", "include", "lib", "pkgconfig", "plugins", "tools", "transports")  # of the source
CACHE = {"CCACHE_BASEDIR": tempfile.gettempdir(), "CCACHE_NOHASHDIR": "1"}
OF_CMAKE = {"all", "edit_cache", "install", "list_install_components", "rebuild_cache", "test"}
EMPTY = BUILD / "embed_nothing.o"  # for reuse.py
LIMIT = 900  # seconds: on a busy machine, without a compiler cache


def run(*command, **environment):
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("DTRAIN_") and key not in ("LD_LIBRARY_PATH", "CMAKE_GENERATOR")}
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT,
                            check=False, env={**kept, "REUSED": str(BUILD), "EMPTY": str(EMPTY), **CACHE, **environment})
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Embedded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run("cc", "-x", "c", "-c", os.devnull, "-o", EMPTY)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"

    def configure(self, way, standard, generator, source=ROOT, *more):
        reuse = HERE / "reuse.py"
        return run("cmake", "-S", HERE / "parent", "-B", self.build, "-G", generator, f"-DWAY={way}",
                   f"-DSTANDARD={standard}", f"-DDTRAIN={source}", f"-DPROGRAM={PROGRAM}",
                   f"-DCMAKE_CXX_COMPILER_LAUNCHER={reuse}", *more)

    def builds(self, *arguments):
        self.configure(*arguments)
        run("cmake", "--build", self.build, "-j", "2")
        programs = {kind: next(path for path in self.build.rglob(kind) if path.is_file())
                    for kind in ("shared", "static")}
        for program in programs.values():
            self.assertIn('"transports"', run(program))
        self.assertIn("libdtrain.so.0", run("ldd", programs["shared"]))
        self.assertNotIn("libdtrain", run("ldd", programs["static"]))
        return programs

    def plugin_is_found(self, program):
        """By the library, which lies somewhere in the build tree, without an option."""
        if not (BUILD / "plugins" / "libdtrain_transport_ofi.so").exists():
            return
        output = run(program, DTRAIN_TRANSPORTS="ofi", DTRAIN_OFI_PROVIDER="net")
        self.assertIn('{"name": "ofi"', output)

    def test_add_subdirectory_in_c_with_makefiles(self):
        programs = self.builds("add_subdirectory", "c", "Unix Makefiles")
        self.plugin_is_found(programs["shared"])

    def test_add_subdirectory_in_cpp14_with_ninja(self):
        programs = self.builds("add_subdirectory", "14", "Ninja")
        self.plugin_is_found(programs["shared"])
        self.assertEqual(programs["shared"], self.build / "out" / "bin" / "shared")
        self.assertTrue((self.build / "out" / "lib" / "libdtrain.so.0").exists())
        self.brings_nothing_along()

    def brings_nothing_along(self):
        self.assertIn("Total Tests: 0", run("ctest", "--test-dir", self.build, "-N"))
        targets = run("ninja", "-C", self.build, "-t", "targets", "all")
        names = set(re.findall(r"^dtrain/(?:devices|lib|transports)/(\w+): phony$", targets, re.MULTILINE)) - OF_CMAKE
        self.assertIn("dtrain_layer_api", names)
        self.assertEqual({name for name in names if not name.startswith("dtrain_")}, set())
        run("cmake", "--install", self.build, "--prefix", self.folder / "installed")
        files = {path.name for path in (self.folder / "installed").rglob("*") if path.is_file()}
        self.assertEqual(files, {"shared"})

    def test_fetch_content_of_a_folder(self):
        """As find_package(dtrain), which then need not be installed."""
        self.configure("source_dir", "17", "Ninja")
        run("ninja", "-C", self.build, "shared")

    def test_fetch_content_of_a_repository(self):
        repository = self.folder / "repository"
        repository.mkdir()
        for name in NEEDED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, repository / name)
        git = ("git", "-C", repository, "-c", "user.name=dtrain", "-c", "user.email=dtrain@localhost")
        run(*git, "init", "--quiet", "--initial-branch=main")
        run(*git, "add", "--all")
        run(*git, "commit", "--quiet", "--message=all")
        self.configure("git", "20", "Ninja", repository)
        run("ninja", "-C", self.build, "shared")
        self.assertIn('"transports"', run(self.build / "out" / "bin" / "shared"))

    def test_install_and_tools_on_request(self):
        self.configure("add_subdirectory", "17", "Ninja", ROOT, "-DDTRAIN_INSTALL=ON", "-DDTRAIN_TOOLS=ON",
                       "-DDTRAIN_OFI=OFF", "-DDTRAIN_UCX=OFF")
        run("cmake", "--build", self.build, "-j", "2")
        prefix = self.folder / "installed"
        run("cmake", "--install", self.build, "--prefix", prefix)
        self.assertIn('"tcp"', run(prefix / "bin" / "dtrain-info", "--json"))
        self.assertFalse(list(prefix.rglob("libdtrain_transport_ofi.so")))
        self.assertTrue(list(prefix.rglob("dtrain-config.cmake")))


if __name__ == "__main__":
    unittest.main()
