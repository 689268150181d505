#!/usr/bin/python3
"""Each public header compiles alone, as every C and C++ that programs use, without a warning.
usage: headers.py FOLDER_OF_HEADERS

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import subprocess
import sys

COMPILERS = ("gcc", "clang", "clang-14")
STANDARDS = ("c99", "c11", "c17", "c++11", "c++17", "c++20")
FLAGS = ("-pedantic", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-fsyntax-only")


def check_header(header, compiler, standard):
    language = "c++" if "+" in standard else "c"
    result = subprocess.run([compiler, *FLAGS, f"-std={standard}", "-x", language, "-I",
                             header.parent, "-"], input=f"#include <{header.name}>\n",
                            capture_output=True, text=True, check=False)
    return [] if result.returncode == 0 else [f"{compiler} -std={standard}: {result.stderr}"]


def check_headers(folder):
    compilers = [name for name in COMPILERS if shutil.which(name)]
    print(f"with {', '.join(compilers)}")
    return [complaint for header in sorted(folder.glob("*.h")) for compiler in compilers
            for standard in STANDARDS for complaint in check_header(header, compiler, standard)]


if __name__ == "__main__":
    failures = check_headers(pathlib.Path(sys.argv[1]))
    print("\n".join(failures) or "every header, every standard: no warning")
    sys.exit(1 if failures else 0)
