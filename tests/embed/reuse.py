#!/usr/bin/python3 -ISE
"""A compiler launcher that takes objects of the library's sources from another build of them, but for one file of each
folder, which is compiled with the very command: whether a whole library can be built is then known in seconds. Where that
build has compiled several sources together, the first of them gets what they have become, and the others get nothing.
REUSED: that build's folder; EMPTY: an object of nothing. usage: reuse.py COMPILER ARGUMENT ...

SPDX-License-Identifier: Apache-2.0
"""
import glob
import os
import sys


def object_of(source):
    """Of <anywhere>/lib/<layer>/[<part>/]<file>.cpp, <anywhere>/transports/<name>/<file>.cpp or devices/<name>/<file>.cpp;
    "": there is none."""
    words = source.split("/")
    for top, prefix, suffix in (("lib", "dtrain_layer_", ""), ("transports", "dtrain_transport_", "_objects"),
                                ("devices", "dtrain_device_", "")):
        if top in words[-4:-2]:
            *folders, file = words[len(words) - words[::-1].index(top):]
            target = f"{os.environ['REUSED']}/{top}/CMakeFiles/{prefix}{'_'.join(folders)}{suffix}.dir"
            path = "/".join([*folders, file])
            own = f"{target}/{path}.o"
            # The newest: a build that has grouped its sources in another way before still has those objects.
            candidates = [(own, own), *joined_objects(target, f"{top}/{path}")]
            found = [(os.stat(built).st_mtime_ns, object) for built, object in candidates if os.path.exists(built)]
            return max(found)[1] if found else ""
    return ""


def joined_objects(target, path):
    """Pairs: what was built of several sources, among them this one; what this source gets of it."""
    for joined in glob.glob(f"{target}/Unity/unity_*_cxx.cxx"):
        with open(joined, encoding="utf-8") as lines:
            sources = [line.split('"')[1] for line in lines if line.startswith("#include")]
        for number, source in enumerate(sources):
            if source.endswith("/" + path):
                yield f"{joined}.o", os.environ["EMPTY"] if number > 0 else f"{joined}.o"


def is_smallest(source):
    others = os.scandir(os.path.dirname(source))
    return min((file.stat().st_size, file.path) for file in others if file.name.endswith(".cpp"))[1] == source


def main(command):
    source = command[command.index("-c") + 1] if "-c" in command else ""
    reused = object_of(source)
    if not reused or is_smallest(source):
        status = os.spawnvp(os.P_WAIT, "env", ["env", *(["ccache"] if os.path.exists("/usr/bin/ccache") else []), *command])
        if status != 0 or os.path.basename(reused) == os.path.basename(source) + ".o" or not reused:
            sys.exit(status)
    result = command[command.index("-o") + 1]
    if "-MF" in command:
        with open(command[command.index("-MF") + 1], "w", encoding="utf-8") as depends:
            depends.write(f"{result}: {source}\n")
    with open(reused, "rb") as kept, open(result, "wb") as copy:
        copy.write(kept.read())


if __name__ == "__main__":
    main(sys.argv[1:])
