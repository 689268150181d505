#!/usr/bin/python3
"""Makes a text and pairs of words from Debian's packages dict-gcide and wordnet-base.

usage: prepare.py FOLDER [WORDS]

FOLDER/text: the GNU Collaborative International Dictionary of English without its notes on
pronunciation and sources, or the first WORDS of it. FOLDER/pairs: words that WordNet gives as
synonyms, two in a line, in random order; only those that the text has often enough to know them,
and that do not begin alike, so that spelling alone does not tell.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import gzip
import itertools
import pathlib
import random
import re
import sys

DICTIONARY = pathlib.Path("/usr/share/dictd/gcide.dict.dz")
WORDNET = pathlib.Path("/usr/share/wordnet")
OFTEN = 20  # times in the text
ALIKE = 4   # letters at the beginning


def words_of_dictionary():
    with gzip.open(DICTIONARY, "rt", encoding="utf-8", errors="replace") as file:
        text = file.read()
    text = re.sub(r"\\[^\\\n]*\\", " ", text)                # \Ac*cre"tion\
    text = re.sub(r"\[[^\]\n]{0,40}\]", " ", text)           # [1913 Webster]
    text = re.sub(r'\((?=[^)\s]*[\[`"*])[^)]*\)', " ", text)  # ([a^]k*kr[=e]"sh[u^]n)
    return re.findall("[a-z]+", text.lower())


def synonyms():
    """Lists of words: wndb(5WN)."""
    for kind in "noun", "verb", "adj", "adv":
        for line in (WORDNET / f"data.{kind}").read_text("ascii").splitlines():
            if line.startswith(" "):
                continue  # the licence
            fields = line.split()
            names = fields[4:4 + 2 * int(fields[3], 16):2]
            yield [re.sub(r"\(.*", "", name).lower() for name in names]


def pairs_of(words):
    count = collections.Counter(words)
    pairs = {pair for names in synonyms() for pair in itertools.permutations(names, 2)
             if min(map(count.__getitem__, pair)) >= OFTEN and pair[0][:ALIKE] != pair[1][:ALIKE]}
    pairs = sorted(pairs)
    random.Random(1).shuffle(pairs)
    return pairs


def prepare(folder, limit=None):
    """Both files' paths."""
    missing = [package for package, file in (("dict-gcide", DICTIONARY), ("wordnet-base", WORDNET))
               if not file.exists()]
    if missing:
        print("this needs Debian's packages: apt-get install " + " ".join(missing), file=sys.stderr)
        sys.exit(77)  # to be left out, as tests say it
    folder.mkdir(parents=True, exist_ok=True)
    words = words_of_dictionary()[:limit]
    text, pairs = folder / "text", folder / "pairs"
    text.write_text(" ".join(words) + "\n", "ascii")
    pairs.write_text("".join(f"{a} {b}\n" for a, b in pairs_of(words)), "ascii")
    return text, pairs


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.splitlines()[2])
    prepare(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else None)
