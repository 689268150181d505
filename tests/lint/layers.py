#!/usr/bin/python3
"""Each layer, or part of one, uses itself and what is declared below it, by include path and by symbol, and none
calls what a library must not call. usage: layers.py LAYERS.json (written by CMake: for each layer
its name, the layers below, its objects and its include path)

SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import re
import subprocess
import sys

LIB = pathlib.Path(__file__).resolve().parent.parent.parent / "lib"
APART = [("collectives", "ps")]  # neither is built on the other
# A library does not end the process, print to stdout or change how signals are handled.
NEVER = {"exit", "_exit", "_Exit", "quick_exit", "abort", "raise", "signal", "sigaction", "sigset",
         "stdout", "printf", "vprintf", "puts", "putchar", "__printf_chk", "__vprintf_chk",
         "_ZSt4cout", "system"}
# Puts back how signals are handled when libraries that a plugin needs have changed it.
PERMITTED = {("shared_object.cpp.o", "sigaction")}
# operator new and delete, which every object wants and whoever links chooses
REPLACEABLE = re.compile(r"_Z(n[wa]|d[la])")
OPTIONAL = re.compile(r"(cuda|cu[A-Z]|nccl|fi_|ibv_|ucp_|uct_|ucs_)")  # loaded at run time or not


def load(path):
    layers = json.loads(pathlib.Path(path).read_text())
    return [{key: value if key == "name" else [item for item in value.split(";") if item]
             for key, value in layer.items()} for layer in layers]


def symbols(objects):
    """(defined names, {undefined name: object that wants it})"""
    objects = [path for path in objects if not path.endswith(".gch")]  # a precompiled header
    listing = subprocess.run(["nm", "-A", "-g", "-P", *objects], check=True, capture_output=True,
                             text=True).stdout
    defined, wanted = set(), {}
    for line in listing.splitlines():
        path, name, kind = line.split()[:3]
        file = pathlib.Path(path.rstrip(":")).name
        if kind in "Uwv":
            if (file, name) not in PERMITTED:
                wanted[name] = file
        elif not REPLACEABLE.match(name):
            defined.add(name)
    return defined, wanted


def layer_of(part):
    return part.split("/")[0]


def check_declaration(layers):
    complaints, seen = [], set()
    for layer in layers:
        complaints += [f"{layer['name']} is declared before {lower}, on which it is built"
                       for lower in layer["below"] if lower not in seen]
        seen.add(layer["name"])
        complaints += [f"{layer['name']} and {lower} must not see each other"
                       for pair in APART if layer_of(layer["name"]) in pair
                       for lower in layer["below"]
                       if layer_of(lower) in pair and layer_of(lower) != layer_of(layer["name"])]
    return complaints


def check_symbols(layers):
    tables = {layer["name"]: symbols(layer["objects"]) for layer in layers}
    complaints = []
    for layer in layers:
        name = layer["name"]
        wanted = tables[name][1]
        visible = set().union(*(tables[lower][0] for lower in [name, *layer["below"]]))
        for other, (defined, _) in tables.items():
            complaints += [f"{name}/{wanted[symbol]} uses {symbol} of {other}, which is not below"
                           for symbol in sorted(defined & wanted.keys() - visible)]
        complaints += [f"{name}/{file} uses {symbol}, which no part of the library may"
                       for symbol, file in sorted(wanted.items())
                       if symbol in NEVER or OPTIONAL.match(symbol)]
    return complaints


def visible_layers(compiler, includes, folders):
    """Of these folders of lib/ those from which an include works."""
    probes = "\n".join(f'#if __has_include("{folder}/{header}")\nvisible {folder}\n#endif'
                       for folder, header in folders.items())
    text = subprocess.run([compiler, "-E", "-P", "-x", "c++", "-", *(f"-I{i}" for i in includes)],
                          input=probes, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"visible (\S+)", text))


def check_includes(layers, compiler="c++"):
    folders = {layer["name"]: min(path.name for path in (LIB / layer["name"]).glob("*.h"))
               for layer in layers if any((LIB / layer["name"]).glob("*.h"))}
    complaints = []
    for layer in layers:
        expected = {layer["name"], *layer["below"]} & folders.keys()
        got = visible_layers(compiler, layer["includes"], folders)
        complaints += [f"{layer['name']} can include files of {other}, which is not below"
                       for other in sorted(got - expected)]
        complaints += [f"{layer['name']} cannot include files of {other}, which is below"
                       for other in sorted(expected - got)]
    return complaints


def check_readme(layers, text):
    """Its table names each folder, from the top, and no other."""
    listed = re.findall(r"^\| `([\w/]+)` \|", text, re.MULTILINE)
    names = {layer["name"] for layer in layers if not layer["name"].startswith("transport_")}
    names |= {layer_of(name) for name in names}
    order = [layer["name"] for layer in layers]
    seen = [name for name in listed if name in order]
    return ([f"lib/README.md does not list {name}" for name in sorted(names - set(listed))]
            + [f"lib/README.md lists {name}, which is not there" for name in sorted(set(listed) - names)]
            + [f"lib/README.md lists {upper} above {lower}, which is built on it"
               for upper, lower in zip(seen, seen[1:])
               if upper in next(layer for layer in layers if layer["name"] == lower)["below"]])


def main(path):
    layers = load(path)
    complaints = check_declaration(layers) + check_symbols(layers) + check_includes(layers)
    complaints += check_readme(layers, (LIB / "README.md").read_text())
    objects = sum(len(layer["objects"]) for layer in layers)
    print("\n".join(complaints) or f"{len(layers)} layers, {objects} objects: as declared")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
