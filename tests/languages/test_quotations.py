#!/usr/bin/env python3
"""What documents quote of programs in examples/ are the lines that tests run.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
LOST = "when a rank dies"  # what is quoted stands between two marks with this name
QUOTATIONS = [  # document, language of the block, program, the mark; without one, all of it but the first line
    ("README.md", "c", "average/average.c", None),
    ("README.md", "python", "average/average.py", None),
    ("docs/site/start.md", "c", "average/average.c", None),
    ("docs/site/start.md", "cpp", "average/average.cpp", None),
    ("docs/site/start.md", "python", "average/average.py", None),
    ("docs/site/start.md", "java", "average/Average.java", None),
    ("docs/site/start.md", "go", "average/main.go", None),
    ("docs/site/index.md", "c", "average/average.c", None),
    ("docs/site/index.md", "cpp", "average/average.cpp", None),
    ("docs/site/index.md", "python", "average/average.py", None),
    ("docs/site/index.md", "java", "average/Average.java", None),
    ("docs/site/index.md", "go", "average/main.go", None),
    ("docs/RELIABILITY.md", "c", "lost_rank/lost_rank.c", LOST),
    ("bindings/python/README.md", "python", "lost_rank/lost_rank.py", LOST),
    ("bindings/java/README.md", "java", "lost_rank/LostRank.java", LOST),
    ("bindings/go/README.md", "go", "lost_rank/main.go", LOST),
]


def quotable(source, mark):
    """As far left as it can be."""
    if mark is None:
        return source.split("\n", 1)[1]
    found = re.findall(rf"^[^\n]*quoted: {mark}[^\n]*\n(.*?\n)[^\n]*quoted so far", source, re.M | re.S)
    if len(found) != 1:
        sys.exit(f"{len(found)} parts marked \"{mark}\", not one, in\n{source}")
    return textwrap.dedent(found[0])


def quotes(document, language, lines):
    return f"\n```{language}\n{lines}```\n" in document


for path, language, program, mark in QUOTATIONS:
    document, lines = (ROOT / path).read_text(), quotable((EXAMPLES / program).read_text(), mark)
    if not quotes(document, language, lines):
        sys.exit(f"{path} does not quote these lines of {program}:\n{lines}")
    for i, line in enumerate(lines.splitlines()):  # each of them counts
        if quotes(document, language, lines.replace(line, line + " ", 1)):
            sys.exit(f"line {i + 1} of {program} may change, and nobody sees it")
print(", ".join(sorted({path for path, *_ in QUOTATIONS})))
