#!/usr/bin/python3
"""What the built libdtrain.so and plugins need, export and weigh.
usage: library.py LIBRARY BUILD_TYPE PLUGIN ...

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from layers import OPTIONAL

NEEDED = re.compile(r"(libc|libgcc_s|libm|libpthread|libdl)\.so\.\d|ld-linux.*\.so\.\d")
MORE = {"libdtrain_transport_ofi": ("libfabric.so.1",), "libdtrain_transport_ucx": ("libucp.so.0", "libucs.so.0"),
        "libdtrain_tensorflow": ("libdtrain.so.0",)}  # what plugins need besides
MAX_STRIPPED = 15 << 18  # with the C++ runtime, and kernels for four instruction sets


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def check_needed(library, more=()):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))
    return [f"needs {name}" for name in needed if not NEEDED.fullmatch(name) and not name.startswith(more)]


def check_imports(library):
    imported = (line.split()[-1] for line in
                output("nm", "-D", "--undefined-only", library).splitlines())
    return [f"imports {name}" for name in imported if OPTIONAL.match(name)]


EXPORTED = {"libdtrain_device_cuda.so": "dtrain_device_query",
            "libnccl-net-dtrain.so": r"ncclNetPlugin_v\d+",  # of other plugins: dtrain_transport_query
            "libdtrain_tensorflow.so": r"dtrain_tensorflow_(put|drop|problem)"}


def check_plugin(plugin):
    exported = {line.split()[-1] for line in
                output("nm", "-D", "--defined-only", plugin).splitlines()}
    allowed = EXPORTED.get(pathlib.Path(plugin).name, "dtrain_transport_query")
    wrong = not exported or not all(re.fullmatch(allowed, name) for name in exported)
    others = next((more for name, more in MORE.items() if name in str(plugin)), ())
    return check_needed(plugin, others) + ([f"exports {sorted(exported)}"] if wrong else [])


def stripped_size(library):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "stripped")
        output("strip", "-o", copy, library)
        return copy.stat().st_size


def check_size(library, limit=MAX_STRIPPED):
    size = stripped_size(library)
    return [f"{size} bytes stripped, more than {limit}"] if size > limit else []


def main(library, build_type, *plugins):
    complaints = check_needed(library) + check_imports(library)
    complaints += [f"{plugin} {text}" for plugin in plugins for text in check_plugin(plugin)]
    if build_type in ("Release", "RelWithDebInfo", "MinSizeRel"):
        complaints += check_size(library)
    print("\n".join(complaints) or f"{library}: {stripped_size(library)} bytes stripped")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
