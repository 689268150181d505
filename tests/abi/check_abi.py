#!/usr/bin/python3
"""The binary interface against its record in tests/abi/v<release>/.

usage: check_abi.py CHECK --library FILE [--headers DIR] [--map FILE] [--record DIR]
CHECK: symbols, debian_symbols, constants, layout, abidiff, old_program; or record, which writes the
record anew (before a release only; after it, additions go into a folder of their own).

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import header

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEBIAN_SYMBOLS = ROOT / "packaging" / "debian" / "libdtrain0.symbols"
HEADERS = ("dtrain.h", "dtrain_device.h", "dtrain_function.h", "dtrain_transport.h")
SKIPPED = 77


class Skipped(Exception):
    pass


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **more)


def must_run(*command, **more):
    result = run(*command, **more)
    if result.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def differences(what, expected, got):
    return ([f"{what}: missing: {item}" for item in sorted(expected - got)] +
            [f"{what}: not expected: {item}" for item in sorted(got - expected)])


# ---- symbols.txt: one "function version-node" per line


def library_symbols(library):
    listing = must_run("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    found = (line.split() for line in listing.splitlines())
    return {words[2].replace("@@", " ") for words in found if words[1] != "A"}


def map_symbols(version_map):
    text = re.sub(r"/\*.*?\*/", "", version_map.read_text(), flags=re.DOTALL)
    nodes = re.findall(r"([\w.]+)\s*\{(.*?)\}", text, re.DOTALL)
    return {f"{name} {node}" for node, body in nodes for name in re.findall(r"(\w+);", body)}


def check_symbols(args):
    recorded = set((args.record / "symbols.txt").read_text().splitlines())
    functions = set(header.declarations(args.headers / "dtrain.h"))
    return (differences("library", recorded, library_symbols(args.library)) +
            differences("version map", recorded, map_symbols(args.map)) +
            differences("dtrain.h", {line.split()[0] for line in recorded}, functions))


# ---- Debian's symbols file: from which version on the library has a function


def debian_symbols(version_map):
    symbols = map_symbols(version_map)
    nodes = {line.split()[1] for line in symbols}
    lines = sorted(line.split() for line in symbols | {f"{node} {node}" for node in nodes})
    return "".join(["libdtrain.so.0 libdtrain0 #MINVER#\n",
                    "* Build-Depends-Package: libdtrain-dev\n"] +
                   [f" {name}@{node} {node.removeprefix('DTRAIN_')}.0\n" for name, node in lines])


def check_debian_symbols(args):
    expected = debian_symbols(args.map)
    complaints = differences(args.debian_symbols.name, set(expected.splitlines()),
                             set(args.debian_symbols.read_text().splitlines()))
    if shutil.which("dpkg-gensymbols") is None:
        raise Skipped("dpkg-gensymbols is not here (Debian package dpkg-dev)")
    # It overlooks that a symbol is gone in the very version that it came with, so: in a later one.
    result = run("dpkg-gensymbols", "-plibdtrain0", "-v9999", f"-I{args.debian_symbols}",
                 f"-e{args.library}", "-P/nonexistent", "-c4", "-O/dev/null")
    return complaints + ((result.stdout + result.stderr).splitlines()
                         if result.returncode != 0 else [])


# ---- constants.txt: one "NAME value" per line


def constants(headers):
    names = sorted({name for file in HEADERS for name in header.constant_names(headers / file)})
    lines = [f'#include "{file}"' for file in HEADERS] + ["#include <stdio.h>", "int main(void) {"]
    lines += [f'printf("{name} %lld\\n", (long long){name});' for name in names] + ["}"]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "constants")
        must_run(header.COMPILER, "-I", headers, "-x", "c", "-", "-o", program,
                 input="\n".join(lines))
        return must_run(program)


def check_constants(args):
    recorded = (args.record / "constants.txt").read_text()
    return differences("constants", set(recorded.splitlines()),
                       set(constants(args.headers).splitlines()))


# ---- layout.c: offsets and sizes as assertions


def layout(headers):
    """A struct that begins with struct_size may grow at its tail; the others are frozen."""
    fields = {name: names for file in HEADERS
              for name, names in header.structs(headers / file).items()}
    lines = [f'#include "{file}"' for file in HEADERS] + [
        "#include <stdio.h>", "int main(void) {",
        'const char *kinds[] = {[1] = "INTEGER", [5] = "POINTER", [8] = "REAL"};']
    for name, names in fields.items():
        rule = "AT_LEAST" if names[0] == "struct_size" else "EXACTLY"
        lines.append(f'printf("{rule}({name}, %zu)\\n", sizeof(struct {name}));')
        lines += [f'printf("FIELD({name}, {field}, %zu, %zu, %s)\\n",'
                  f' offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}),'
                  f' kinds[__builtin_classify_type(((struct {name} *)0)->{field})]);'
                  for field in names]
    signatures = {where: signature for file in HEADERS
                  for where, signature in header.signatures(headers / file).items()}
    lines += [f'puts("SIGNATURE({where}, {signature})");'
              for where, signature in signatures.items()]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "layout")
        must_run(header.COMPILER, "-I", headers, "-x", "c", "-", "-o", program,
                 input="\n".join([*lines, "}"]))
        return must_run(program)


def check_layout(args):
    result = run(header.COMPILER, "-std=c11", "-fsyntax-only", "-I", args.headers,
                 args.record / "layout.c")
    return [line for line in result.stderr.splitlines() if "error" in line] \
        if result.returncode != 0 else []


# ---- dtrain.abi: the types, as libabigail reads them from debug information


def describe_types(library, headers):
    """Without this machine's paths, and without what is behind the opaque handles."""
    text = must_run("abidw", "--headers-dir", headers, "--drop-private-types",
                    "--drop-undefined-syms", "--exported-interfaces-only", "--no-show-locs",
                    "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed",
                    "--no-parameter-names", "--type-id-style", "hash", library)
    return re.sub(r"(<abi-instr [^>]*)path='[^']*/", r"\1path='", text)


def check_abidiff(args):
    if shutil.which("abidiff") is None:
        raise Skipped("abidiff is not here (Debian package abigail-tools)")
    if ".debug_info" not in must_run("readelf", "-SW", args.library):
        raise Skipped(f"{args.library} has no debug information")
    with tempfile.TemporaryDirectory() as folder:
        now = pathlib.Path(folder, "now.abi")
        now.write_text(describe_types(args.library, args.headers))
        result = run("abidiff", "--no-added-syms", "--suppressions", HERE / "tail_growth.suppr",
                     args.record / "dtrain.abi", now)
    return (result.stdout + result.stderr).splitlines() if result.returncode != 0 else []


# ---- old_program: built with the recorded header and a stub of the recorded symbols


def make_stub(headers, symbols, library, *flags):
    """A library with these functions, which do nothing; symbols: lines of symbols.txt."""
    folder = library.parent
    source = [f'#include "{headers / "dtrain.h"}"'] + [
        f"DTRAIN_API {text} {{ __builtin_trap(); }}"
        for text in header.declarations(headers / "dtrain.h").values()]
    nodes = {}
    for line in sorted(symbols):
        name, node = line.split()
        nodes.setdefault(node, []).append(name)
    version_map = "".join(f"{node} {{ global: {'; '.join(names)}; local: *; }};\n"
                          for node, names in nodes.items())
    (folder / "stub.c").write_text("\n".join(source) + "\n")
    (folder / "stub.map").write_text(version_map)
    must_run(header.COMPILER, "-shared", "-fPIC", "-o", library, folder / "stub.c",
             "-Wl,-soname,libdtrain.so.0", f"-Wl,--version-script={folder}/stub.map", *flags)


def check_old_program(args):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "program"
        symbols = (args.record / "symbols.txt").read_text().splitlines()
        make_stub(args.record, symbols, folder / "libdtrain.so")
        must_run(header.COMPILER, "-I", args.record, args.record / "program.c", "-o", program,
                 "-L", folder, "-ldtrain", "-Wl,-z,now")
        result = run(program, cwd=folder, timeout=60,
                     env={**os.environ, "LD_LIBRARY_PATH": str(args.library.parent)})
    return (result.stdout + result.stderr + f"exit status {result.returncode}").splitlines() \
        if result.returncode != 0 else []


# ----


def record(args):
    symbols = "\n".join(sorted(map_symbols(args.map))) + "\n"
    assertions = "".join(f"{line};\n" for line in layout(args.headers).splitlines())
    for file in HEADERS:
        shutil.copy(args.headers / file, args.record / file)
    (args.record / "symbols.txt").write_text(symbols)
    (args.record / "constants.txt").write_text(constants(args.headers))
    (args.record / "layout.c").write_text((HERE / "layout.c.in").read_text() + assertions)
    (args.record / "dtrain.abi").write_text(describe_types(args.library, args.headers))
    args.debian_symbols.write_text(debian_symbols(args.map))
    return []


CHECKS = {"symbols": check_symbols, "debian_symbols": check_debian_symbols, "constants": check_constants, "layout": check_layout,
          "abidiff": check_abidiff, "old_program": check_old_program, "record": record}


def arguments(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--headers", type=pathlib.Path, default=ROOT / "include")
    parser.add_argument("--map", type=pathlib.Path, default=ROOT / "lib" / "dtrain.map")
    parser.add_argument("--record", type=pathlib.Path, default=HERE / "v0.1")
    parser.add_argument("--debian-symbols", type=pathlib.Path, default=DEBIAN_SYMBOLS)
    return parser.parse_args(words)


def main(words):
    args = arguments(words)
    try:
        complaints = CHECKS[args.check](args)
    except Skipped as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    print("\n".join(complaints) or f"{args.check}: as recorded")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
