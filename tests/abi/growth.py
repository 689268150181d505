"""The public headers as an older and as a newer release might have them: each struct that may grow
is a field shorter or longer. Programs and plugins built with them stand for those of that release.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re

GROWABLE = re.compile(r"(struct (dtrain_\w+) \{)(\s*uint32_t struct_size\b[^}]*)\}", re.DOTALL)
# Their last fields are of the first release, and needed.
COMPLETE = {"dtrain_dv_host", "dtrain_dv_plugin", "dtrain_tp_plugin", "dtrain_function_batch"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def growable(headers):
    """The names of the structs that begin with struct_size."""
    return {name for file in sorted(headers.glob("*.h"))
            for _, name, _ in GROWABLE.findall(without_comments(file.read_text()))}


def longer(name, fields):
    del name
    return fields + "uint64_t added;\n"


def shorter(name, fields):
    return fields if name in COMPLETE else fields[:fields.rstrip()[:-1].rindex(";") + 1]


def write(headers, how, folder):
    """Copies the headers into folder, changed by `how`: shorter or longer."""
    folder.mkdir()
    for file in headers.glob("*.h"):
        text = GROWABLE.sub(lambda found: found[1] + how(found[2], found[3]) + "}",
                            without_comments(file.read_text()))
        pathlib.Path(folder, file.name).write_text(text)
    return folder
