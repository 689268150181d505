#!/usr/bin/python3
"""Whether the programs that `./dev part tsan` builds are targets of this build, under names that it makes of its tests'.
usage: parts.py BUILD_FOLDER (a preset's, by Ninja)

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check_programs(build, programs):
    if not programs:
        return ["./dev part programs names no program"]
    done = subprocess.run(["ninja", "-C", build, "-t", "query", *programs], capture_output=True, text=True)
    return [] if done.returncode == 0 else [done.stderr.strip()]


def programs_of(build):
    command = [ROOT / "dev", "part", "programs", pathlib.Path(build).name]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]).resolve()
    if folder.parent != ROOT / "build" or not (folder / "build.ninja").exists():
        print("skipped: no build folder of a preset")
        sys.exit(77)
    problems = check_programs(folder, programs_of(folder))
    print("\n".join(problems))
    sys.exit(bool(problems))
