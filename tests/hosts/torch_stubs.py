#!/usr/bin/python3
"""Makes libraries that stand in for those of CUDA, so that torch of PyPI can be imported without them (3 GB): they have
the names and symbols that torch's own libraries need. Every function returns 0, so there is no GPU.
usage: torch_stubs.py FOLDER (torch's lib folder, where the loader looks first)

SPDX-License-Identifier: Apache-2.0
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

OF_CUDA = re.compile(r"lib(cu|nv|nccl)")
FUNCTION_OF_CUDA = re.compile(r"cu|nv|nccl")
NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
FILE = re.compile(r"Version: 1\s+File: (\S+)")
NAME = re.compile(r"Name: (\S+)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(path, which):
    """{name: version or ""} of the dynamic symbols of a library"""
    found = {}
    for line in output("nm", "-D", which, path).splitlines():
        kind, name = line.split()[-2:]
        if kind not in "wv":
            base, _, version = name.partition("@")
            found[base] = version.lstrip("@")
    return found


def homes_of_versions(path):
    """{version: the library that has it}"""
    found, home = {}, ""
    for line in output("readelf", "-V", path).splitlines():
        if (match := FILE.search(line)) is not None:
            home = match[1]
        elif home and (match := NAME.search(line)) is not None:
            found[match[1]] = home
    return found


def plan(folder):
    """{library: {version: symbols}} that is missing"""
    libraries = sorted(folder.glob("*.so*"))
    here, wanted, missing = {}, [], set()
    for path in libraries:
        here.update(symbols(path, "--defined-only"))
        missing.update(name for name in NEEDED.findall(output("readelf", "-d", path))
                       if OF_CUDA.match(name) and not (folder / name).exists())
    for path in libraries:
        homes = homes_of_versions(path)
        wanted += [(name, version, homes.get(version)) for name, version in symbols(path, "--undefined-only").items()]
    made = {name: collections.defaultdict(set) for name in sorted(missing)}
    first = next(iter(made), None)  # has the symbols that name no library: the loader looks everywhere
    for name, version, home in wanted:
        if home in made:
            made[home][version].add(name)
        elif not version and name not in here and FUNCTION_OF_CUDA.match(name) and first:
            made[first][""].add(name)
    return made


def build(library, versions, folder):
    with tempfile.TemporaryDirectory() as work:
        code, script = pathlib.Path(work, "stub.c"), pathlib.Path(work, "stub.map")
        names = {name for group in versions.values() for name in group}
        code.write_text("".join(f"long {name}(void) {{ return 0; }}\n" for name in sorted(names)))
        script.write_text("".join(f"{version} {{ {' '.join(f'{name};' for name in sorted(group))} }};\n"
                                  for version, group in versions.items() if version))
        versioned = [f"-Wl,--version-script,{script}"] if any(versions) else []
        subprocess.run(["gcc", "-w", "-O1", "-fno-builtin", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{library}",
                        *versioned, "-o", folder / library, code], check=True)


def main(folder):
    for library, versions in plan(folder).items():
        build(library, versions, folder)
        print(f"{library}: {sum(map(len, versions.values()))} symbols")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
