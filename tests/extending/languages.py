#!/usr/bin/python3
"""A constant that a copy of dtrain.h has got comes to the languages by bindings/generate alone.
usage: languages.py FOLDER NAME PAGE
FOLDER has the copy as include/dtrain.h, and as PAGE a document that another test has written.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/languages"), str(ROOT / "tests/abi")]
import test_complete  # noqa: E402

FOLDER, NAME, PAGE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def missing():
    return {language: test_complete.missing(language, test_complete.source_of(language))
            for language in test_complete.SOURCES}


def copy(pattern):
    for file in ROOT.glob(pattern):
        there = FOLDER / file.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)


for patterns in test_complete.SOURCES.values():
    for pattern in patterns:
        copy(pattern)
copy("lib/dtrain.map")
generate = [str(ROOT / "bindings/generate"), "--root", str(FOLDER)]
test_complete.ROOT, test_complete.HEADER = FOLDER, FOLDER / "include/dtrain.h"
before = missing()
stale = subprocess.run([*generate, "--check"], capture_output=True, text=True)
if not all(len(names) == 1 and names[0].endswith(NAME) for names in before.values()) or "./dev generate" not in stale.stderr:
    sys.exit(f"it is not seen that {NAME} is missing: {before}, {stale.stderr}")
subprocess.run(generate, check=True)
after = missing()
if any(after.values()):
    sys.exit(f"missing: {after}")
if not re.search(rf"^\| `{NAME}` \|", (FOLDER / PAGE).read_text(), re.MULTILINE):
    sys.exit(f"{PAGE} does not have {NAME}")
print(f"{NAME} is in {', '.join(after)} and in {PAGE}")
