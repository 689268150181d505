#!/usr/bin/env python3
"""What documents quote of examples/lost_rank are the lines that test_lost_rank.py runs.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "examples/lost_rank"
QUOTATIONS = {  # document: language of the block, program
    "README.md": ("c", "lost_rank.c"),
    "bindings/python/README.md": ("python", "lost_rank.py"),
    "bindings/java/README.md": ("java", "LostRank.java"),
    "bindings/go/README.md": ("go", "main.go"),
}


def marked(source):
    """The lines between the two marks, as far left as they can be."""
    found = re.findall(r"^[^\n]*quoted: when a rank dies[^\n]*\n(.*?\n)[^\n]*quoted so far", source, re.M | re.S)
    if len(found) != 1:
        sys.exit(f"{len(found)} marked parts, not one, in\n{source}")
    return textwrap.dedent(found[0])


def quotes(document, language, lines):
    return f"\n```{language}\n{lines}```\n" in document


for path, (language, program) in QUOTATIONS.items():
    document, lines = (ROOT / path).read_text(), marked((PROGRAMS / program).read_text())
    if not quotes(document, language, lines):
        sys.exit(f"{path} does not quote these lines of {program}:\n{lines}")
    for i, line in enumerate(lines.splitlines()):  # each of them counts
        if quotes(document, language, lines.replace(line, line + " ", 1)):
            sys.exit(f"line {i + 1} of {program} may change, and nobody sees it")
print(", ".join(QUOTATIONS))
