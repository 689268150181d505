"""The public headers as sections of (comment, code), for the man pages and the site.

Their form is simple: a line "/* ---- title ---- */" begins a section, a comment at the beginning of
a line is about the code up to the next one, and what is indented in a comment is a table.
SPDX-License-Identifier: Apache-2.0
"""
import re
from typing import List, NamedTuple

SECTION = re.compile(r"/\* ---- (.*?) -+\s*(?:\*/)?$")
NAME = re.compile(r"\b(?:dtrain_\w+(?:\(\))?|DTRAIN_\w+)")
HIDDEN = re.compile(r"^(#ifndef DTRAIN_\w*H|#define DTRAIN_\w*H$|#endif|#ifdef __cplusplus|extern \"C\"|\}$|#ifndef DTRAIN_API$|"
                    r"#define DTRAIN_API __|#include)")


class Item(NamedTuple):
    comment: str  # without its marks; "" for none
    code: str     # "" for none

    @property
    def functions(self) -> List[str]:
        return re.findall(r"DTRAIN_API[^;]*?\b(dtrain_\w+)\(", self.code)


class Section(NamedTuple):
    title: str  # "" before the first
    items: List[Item]

    @property
    def name(self) -> str:
        """For a file: its title up to a colon, as one word."""
        return re.sub(r"\W+", "_", re.split(r"[:(]", self.title)[0].strip()).lower()

    @property
    def functions(self) -> List[str]:
        return [name for item in self.items for name in item.functions]


def bare(comment: List[str]) -> str:
    """The text of a comment's lines."""
    text = "\n".join(comment)
    text = text[text.index("/*") + 2:text.rindex("*/")]
    return "\n".join(re.sub(r"^ \*? ?", "", line).rstrip() for line in text.split("\n")).strip("\n ")


def parse(text: str) -> List[Section]:
    sections = [Section("", [])]
    comment: List[str] = []
    code: List[str] = []

    def end_item() -> None:
        shown = "\n".join(line for line in code if not HIDDEN.match(line)).strip("\n")
        if shown or comment:
            sections[-1].items.append(Item(bare(comment) if comment else "", shown))
        comment.clear()
        code.clear()

    lines = iter(text.split("\n"))
    for line in lines:
        title = SECTION.match(line)
        if title:
            end_item()
            sections.append(Section(title[1].strip(), []))
            if "*/" not in line:
                next(lines)
        elif line.startswith("/*"):
            end_item()
            comment.append(line)
            while "*/" not in comment[-1]:
                comment.append(next(lines))
        else:
            code.append(line)
    end_item()
    return [section for section in sections if section.items]


def plain_code(code: str) -> str:
    """Without what exports functions, and what their next lines are moved by for it."""
    mark = "DTRAIN_API "
    lines = []
    moved = False
    for line in code.split("\n"):
        if line.startswith(mark):
            line, moved = line[len(mark):], True
        elif moved and line.startswith(" " * (len(mark) + 4)):
            line = line[len(mark):]
        else:
            moved = False
        lines.append(line)
    return "\n".join(lines)


def paragraphs(comment: str) -> List[List[str]]:
    """Each one's lines; those of a table keep what indents them."""
    found: List[List[str]] = []
    table = False
    for line in comment.split("\n"):
        indented = line.startswith("  ")
        if not line:
            found.append([])
        elif not found or not found[-1] or indented != table:
            found.append([line])
        else:
            found[-1].append(line)
        table = indented
    return [lines for lines in found if lines]


def is_table(lines: List[str]) -> bool:
    return lines[0].startswith("  ")
