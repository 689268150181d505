"""What a public header declares: functions, constants, structs. By the preprocessor and small
patterns; dtrain's headers are plain enough for that.

SPDX-License-Identifier: Apache-2.0
"""
import re
import subprocess

COMPILER = "gcc"
MARK = "EXPORTED_HERE"


def preprocess(header, *flags):
    command = [COMPILER, "-E", "-P", f"-DDTRAIN_API={MARK}", "-I", str(header.parent), *flags,
               str(header)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declarations(header):
    """{function: its declaration without the mark and the semicolon}"""
    found = re.findall(MARK + r"\s+([^;{]*?\b(dtrain_\w+)\s*\([^;]*\))\s*;", preprocess(header))
    return {name: " ".join(text.split()) for text, name in found}


def constant_names(header):
    """Every DTRAIN_ enumerator and every object-like DTRAIN_ macro that has a value."""
    names = re.findall(r"\b(DTRAIN_[A-Z0-9_]+)\s*=", preprocess(header))
    macros = re.findall(r"^#define (DTRAIN_\w+) \S", preprocess(header, "-dM"), re.MULTILINE)
    return sorted({*names, *macros} - {"DTRAIN_API"})


def field_names(body):
    names = []
    for declaration in body.split(";"):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)  # to a function
        if pointer:
            names.append(pointer[1])
        elif declaration.strip():
            names += [re.search(r"(\w+)\s*(\[\w+\])?\s*$", part)[1]
                      for part in declaration.split(",")]
    return names


def signatures(header):
    """{what has it, as an expression: its type}, of callbacks: members of structs, and typedefs"""
    text = " ".join(preprocess(header).split())
    function = r"(\w[\w *]*?) ?\( ?\* ?(\w+) ?\)( ?\([^()]*\));"
    members = {f"((struct {name} *)0)->{field}": f"{result} (*){arguments}"
               for name, body in re.findall(r"struct (dtrain_\w+) \{(.*?)\}", text)
               for result, field, arguments in re.findall(function, body)}
    types = {f"({name})0": f"{result} (*){arguments}" for result, name, arguments in
             re.findall(r"\btypedef " + function, text) if name.startswith("dtrain_")}
    return {**members, **types}


def structs(header):
    """{struct: its fields in order}, of complete dtrain structs"""
    found = re.findall(r"struct (dtrain_\w+)\s*\{(.*?)\}", preprocess(header), re.DOTALL)
    return {name: field_names(body) for name, body in found}
