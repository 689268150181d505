#!/usr/bin/python3
"""No source file is longer than 600 lines, but for the API, which is one file by design; those of
more than 300 are listed.
usage: sizes.py [FOLDER]

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAP, LONG = 600, 300
WHOLE = ("include/dtrain.h", "tests/abi/v0.1/dtrain.h",
         "bindings/go/internal/capi/dtrain_wrap.c")  # by SWIG


def lengths(root):
    """{path: lines} of the sources, without what was built"""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        for path in (pathlib.Path(folder, name) for name in files):
            if path.suffix in (".c", ".cpp", ".cu", ".h", ".hpp", ".py"):
                found[path.relative_to(root)] = path.read_text().count("\n")
    return found


def check_sizes(root):
    return [f"{path}: {lines} lines, more than {CAP}"
            for path, lines in sorted(lengths(root).items()) if lines > CAP and str(path) not in WHOLE]


def main(root):
    found = lengths(root)
    for path, lines in sorted(found.items(), key=lambda item: -item[1]):
        if lines > LONG:
            print(f"long: {path}: {lines} lines")
    print(f"{len(found)} files, median {statistics.median(found.values()):.0f} lines")
    complaints = check_sizes(root)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
