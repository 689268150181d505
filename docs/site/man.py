#!/usr/bin/env python3
"""Writes man pages: of the C API from dtrain.h (section 3), of a program from its --help (section 1).

usage: man.py FOLDER HEADER PROGRAM...
SPDX-License-Identifier: Apache-2.0
"""
import gzip
import pathlib
import re
import subprocess
import sys

from header import is_table, paragraphs, parse, plain_code

SUMMARIES = {
    "dtrain-run": "start a job of dtrain, here or on several hosts",
    "dtrain-server": "serve parameter tables of dtrain",
    "dtrain-info": "tell what dtrain can do here",
    "dtrain-bench": "measure or tune operations of dtrain",
    "dtrain-trace": "join timelines of dtrain",
}


def escape(line: str) -> str:
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def literal(lines) -> list:
    return [".Bd -literal", *(escape(line) for line in lines), ".Ed"]


def save(path: pathlib.Path, text: str) -> None:
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def write(path: pathlib.Path, body: list) -> None:
    name, section = path.stem, path.suffix[1:]
    head = ['.\\" Written by docs/site/man.py.', ".Dd $Mdocdate$", f".Dt {name.upper()} {section}", ".Os"]
    save(path, "\n".join([*head, *body, ""]))


def references(names) -> list:
    names = sorted(names)
    return [f".Xr {name}" + (" ," if name != names[-1] else "") for name in names]


def sentences(paragraph: list) -> list:
    """Each on a line of its own, as mdoc wants them."""
    return re.split(r"(?<=[\w)\]\"'][.!?]) ", " ".join(paragraph))


def described(comment: str) -> list:
    lines = []
    for paragraph in paragraphs(comment):
        if is_table(paragraph):
            lines += literal(paragraph)
        else:
            lines += [".Pp", *(escape(line) for line in sentences(paragraph))]
    return lines


def page_name(section) -> str:
    return f"dtrain_{section.name}"


def api_page(section, others) -> list:
    names = [page_name(section), *section.functions]
    body = [".Sh NAME", *(f".Nm {name}" + (" ," if name != names[-1] else "") for name in names),
            f".Nd {escape(section.title.split(':')[0].split(' (')[0])}", ".Sh LIBRARY", "dtrain, all\\-reduce and a parameter server",
             "(libdtrain, \\-ldtrain)", ".Sh SYNOPSIS", ".In dtrain.h"]
    body.append(".Sh DESCRIPTION")
    for item in section.items:
        if item.code:
            body += literal(plain_code(item.code).split("\n"))
        body += described(item.comment)
    body += [".Sh RETURN VALUES", "Functions of type", ".Vt dtrain_status_t",
             "return 0 (DTRAIN_OK), a positive number for what has not finished,",
             "or a negative one for what failed, whose text", ".Fn dtrain_last_error", "gives."]
    return body + [".Sh SEE ALSO", *references(f"{page_name(other)} 3" for other in others if other is not section)]


def tool_page(program: pathlib.Path) -> list:
    name = program.name
    text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    usage, *rest = text.rstrip("\n").split("\n")
    arguments = re.sub(r"^usage: \S+ ?", "", usage)
    body = [".Sh NAME", f".Nm {name}", f".Nd {escape(SUMMARIES[name])}", ".Sh SYNOPSIS", f".Nm {name}",
            escape(arguments), ".Sh DESCRIPTION"]
    return body + literal(rest) + [
        ".Sh EXIT STATUS", "0 when all went well, 2 for wrong arguments,",
        "another number when something failed, which standard error tells.", ".Sh SEE ALSO",
        *references(f"{other} 1" for other in SUMMARIES if other != name)]


def main() -> None:
    folder, header = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for section in "1", "3":
        (folder / f"man{section}").mkdir(parents=True, exist_ok=True)
    sections = [section for section in parse(header.read_text()) if section.functions]
    for section in sections:
        write(folder / "man3" / f"{page_name(section)}.3", api_page(section, sections))
        for name in section.functions:
            save(folder / "man3" / f"{name}.3", f".so man3/{page_name(section)}.3\n")
    for program in map(pathlib.Path, sys.argv[3:]):
        write(folder / "man1" / f"{program.name}.1", tool_page(program))


if __name__ == "__main__":
    main()
