#!/usr/bin/python3
"""docs/EXTENDING.md on a function of the C API, done in copies: a declaration, a definition and a line or two for each
language; bindings/generate writes the rest. A library with it is linked, and has it.
usage: test_function.py LIBDTRAIN.A INCLUDES COMPILER

INCLUDES: folders, separated by semicolons.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/languages"), str(ROOT / "tests/abi")]
import check_abi  # noqa: E402
import test_complete  # noqa: E402

ARCHIVE, INCLUDES, COMPILER = sys.argv[1], sys.argv[2].split(";"), sys.argv[3]
NAME = "dtrain_comm_next"
LINES = [  # file, what the line before has, the line
    ("include/dtrain.h", "int32_t dtrain_comm_size(const dtrain_comm_t *comm);",
     "DTRAIN_API int32_t dtrain_comm_next(const dtrain_comm_t *comm); /* the rank after this one; -1 for NULL */"),
    ("include/dtrain/communicator.hpp", "return dtrain_comm_size(handle()); }",
     "    int next() const noexcept { return dtrain_comm_next(handle()); }"),
    ("bindings/python/dtrain/_communicator.py", "return _dtrain.dtrain_comm_size(self._handle)",
     "\n    @property\n    def next(self) -> int:\n        return _dtrain.dtrain_comm_next(self._handle)"),
    ("bindings/java/src/main/java/org/dtrain/Communicator.java", "        return sizeOfGroup();\n    }",
     "    public int next() {\n        return Native.dtrain_comm_next(handle.address);\n    }"),
    ("bindings/go/comm.go", "\trank, size int\n}",
     "\nfunc (c *Comm) Next() int { return int(capi.Comm_next(c.object.handle)) }"),
]


def copy(folder):
    patterns = ["include/**/*.h*", "lib/dtrain.map", *(pattern for some in test_complete.SOURCES.values() for pattern in some)]
    for file in {file for pattern in patterns for file in ROOT.glob(pattern)}:
        there = folder / file.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)
    # The build makes it of the header's first part.
    (folder / "include/dtrain_basics.h").write_text('#include "dtrain.h"\n')


def add(folder, path, before, line):
    text = (folder / path).read_text()
    if text.count(before) != 1:
        sys.exit(f"{path} does not have once: {before}")
    end = text.index("\n", text.index(before) + len(before))
    (folder / path).write_text(f"{text[:end]}\n{line}{text[end:]}")


def missing(folder):
    test_complete.ROOT, test_complete.HEADER = folder, folder / "include/dtrain.h"
    return [name for language in test_complete.SOURCES
            for name in test_complete.missing(language, test_complete.source_of(language))]


def linked(folder):
    """A library of all objects, and the new function."""
    source, library = HERE / "comm_next.cpp", folder / "libdtrain.so.0"
    flags = [f"-I{include}" for include in (folder / "include", *INCLUDES)]
    subprocess.run([COMPILER, "-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", *flags, "-shared", str(source),
                    "-Wl,--whole-archive", ARCHIVE, "-Wl,--no-whole-archive", "-static-libstdc++", "-l:libsodium.a",
                    "-Wl,-soname,libdtrain.so.0", "-Wl,--strip-debug", f"-Wl,--version-script={folder}/lib/dtrain.map", "-o", str(library)],
                   check=True)
    return library


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy(folder)
        add(folder, *LINES[0])
        if missing(folder) != [NAME] * len(test_complete.SOURCES):
            sys.exit(f"languages miss {missing(folder)}")
        for line in LINES[1:]:
            add(folder, *line)
        if missing(folder):
            sys.exit(f"languages miss {missing(folder)}, although they have it")
        subprocess.run([ROOT / "bindings/generate", "--root", folder], check=True)
        library = linked(folder)
        exported = {symbol.split()[0] for symbol in check_abi.library_symbols(library)}
        declared = set(check_abi.header.declarations(folder / "include/dtrain.h"))
        if exported != declared or NAME not in exported:
            sys.exit(f"the library and the header differ: {exported ^ declared}")
        if f" {NAME}@" not in check_abi.debian_symbols(folder / "lib/dtrain.map"):
            sys.exit("Debian's list does not have it")
        function = getattr(ctypes.CDLL(str(library)), NAME)
        if function(None) != -1:
            sys.exit(f"{NAME}(NULL) is {function(None)}")
    print(f"{NAME} is in the library, its map, and {len(LINES) - 1} languages")


if __name__ == "__main__":
    main()
