#!/usr/bin/python3
"""What devices/cuda declares of NVIDIA's driver is what cuda.h declares, where it is (tests/device/cuda_header.cpp).

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = (os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include", "/usr/include")


def main():
    folder = next((folder for folder in FOLDERS if pathlib.Path(folder, "cuda.h").exists()), None)
    if folder is None:
        print("skipped: there is no cuda.h")
        return 77
    source = ROOT / "tests" / "device" / "cuda_header.cpp"
    return subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-isystem", folder, "-I", ROOT, source],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
