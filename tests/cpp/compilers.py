#!/usr/bin/python3
"""The C++ header, and programs that use it, compile without a warning as C++17 and C++20, by every compiler that is here;
each header also alone. usage: compilers.py FLAGS ROOT SOURCE ...

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import subprocess
import sys

COMPILERS = ("g++", "clang++", "clang++-14")


def main(flags, root, *sources):
    headers = sorted(pathlib.Path(root, "include").glob("dtrain/*.hpp"))
    complaints = []
    compilers = {pathlib.Path(shutil.which(name)).resolve(): name for name in COMPILERS if shutil.which(name)}
    for compiler in compilers.values():
        for standard in ("c++17", "c++20"):
            result = subprocess.run([compiler, *flags.split(";"), f"-std={standard}", "-fsyntax-only", f"-I{root}/include",
                                     f"-I{root}/tests", "-x", "c++", *map(str, sources)],
                                    capture_output=True, text=True, check=False)
            complaints += [f"{compiler} -std={standard}: {result.stderr}"] if result.returncode else []
        for path in headers:
            result = subprocess.run([compiler, *flags.split(";"), "-std=c++17", "-fsyntax-only", "-x", "c++", "-"],
                                    input=f'#include "{path}"\n', capture_output=True, text=True, check=False)
            complaints += [f"{compiler}: {path} alone: {result.stderr}"] if result.returncode else []
    print("\n".join(complaints) or f"without a warning: {', '.join(compilers.values())}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
