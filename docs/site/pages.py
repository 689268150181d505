#!/usr/bin/env python3
"""Writes the reference of the public headers in Markdown, one page per section, for the site.

usage: pages.py FOLDER HEADER...
SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

from header import NAME, Item, Section, is_table, paragraphs, parse, plain_code


def prose(lines: list) -> str:
    """With names as code and nothing else marked."""
    text = " ".join(lines)
    parts, end = [], 0
    for name in NAME.finditer(text):
        parts += [re.sub(r"([\\*_<>`\[\]#|~$])", r"\\\1", text[end:name.start()]), f"`{name[0]}`"]
        end = name.end()
    return "".join(parts) + re.sub(r"([\\*_<>`\[\]#|~$])", r"\\\1", text[end:])


def block(language: str, lines: list) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def item_text(item: Item) -> str:
    parts = [block("c", plain_code(item.code).split("\n"))] if item.code else []
    for lines in paragraphs(item.comment):
        parts.append(block("text", lines) if is_table(lines) else prose(lines))
    return "\n\n".join(parts)


def page(section: Section, header: str) -> str:
    items = "\n\n".join(item_text(item) for item in section.items)
    return f"# {prose([section.title]) or header}\n\n`#include <{header}>`\n\n{items}\n"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for header in map(pathlib.Path, sys.argv[2:]):
        sections = parse(header.read_text())
        names = [section.name or "about" for section in sections]
        for name, section in zip(names, sections):
            (folder / f"{header.stem}-{name}.md").write_text(page(section, header.name))
        pages = "\n".join(f"{header.stem}-{name}" for name in names)
        (folder / f"{header.stem}.md").write_text(
            f"# {header.name}\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n")


if __name__ == "__main__":
    main()
