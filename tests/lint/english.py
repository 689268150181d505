#!/usr/bin/python3
"""Words and turns that docs/STYLE.md does not want, in sources, headers and documents.
usage: english.py [FOLDER]

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("bench", "devices", "docs", "examples", "include", "lib", "plugins", "tests", "tools", "transports", "README.md",
           "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bindings/python/README.md", "bindings/java/README.md",
           "bindings/go/README.md")
SUFFIXES = (".c", ".cpp", ".cu", ".h", ".hpp", ".md")
EXEMPT = ("docs/STYLE.md", "tests/abi/v0.1")  # the page that shows them; a record
TICS = {  # what: what to write instead
    r"neighbour|behaviour|favour|colour\b|honour": "US spelling: -or",
    r"\w*(?:optimis|quantis|initialis|recognis|serialis|vectoris|synchronis|normalis|organis|decentralis)"
    r"(?:e|ed|es|er|ing|ation)\b": "US spelling: -ize",
    r"\bfor ever\b": "forever, or the bound",
    r"\bin vain\b": "say what fails",
    r"\b(?:gives?|gave|given) back\b": "returns, frees, releases",
    r"\bwho waits\b": "say which thread, process or operation",
    r"^\s*(?://|\*) (?:Of which|Who|Whose)\b": "begin with the subject",
    r"[\w).,] SPDX-License-Identifier": "the SPDX line stands alone",
}


def check_text(name, text):
    return [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: \"{match.group().strip()}\": {advice}"
            for tic, advice in TICS.items() for match in re.finditer(tic, text, re.MULTILINE)]


def sources(root):
    for folder in FOLDERS:
        path = root / folder
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = str(file.relative_to(root))
            if file.suffix in SUFFIXES and file.is_file() and not name.startswith(EXEMPT):
                yield name, file


def main(root):
    found = [(name, file.read_text()) for name, file in sources(root)]
    complaints = [complaint for name, text in found for complaint in check_text(name, text)]
    print("\n".join(complaints) or f"{len(found)} files: plain English, as far as that can be matched")
    return 1 if complaints or not found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
