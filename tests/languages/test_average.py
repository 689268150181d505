#!/usr/bin/env python3
"""examples/average: three ranks of each language have the mean of their numbers.

usage: test_average.py DTRAIN_RUN LANGUAGE=COMMAND...
An empty command: this language was not built, and is named as left out.
SPDX-License-Identifier: Apache-2.0
"""
import re
import shlex
import subprocess
import sys

SKIPPED = 77
RANKS = 3


def main(launcher, *commands):
    missing = []
    for language, command in (text.split("=", 1) for text in commands):
        if not command:
            missing.append(language)
            continue
        done = subprocess.run([launcher, "--timeout", "100", "-n", str(RANKS), "--", *shlex.split(command)],
                              stdout=subprocess.PIPE, text=True)
        said = sorted(re.findall(r"rank (\d+) of (\d+): (\S+)", done.stdout))  # behind dtrain-run's prefix
        expected = [(rank, RANKS, 1.0) for rank in range(RANKS)]
        if done.returncode != 0 or [(int(rank), int(size), float(mean)) for rank, size, mean in said] != expected:
            return f"{language} ended with {done.returncode}:\n{done.stdout}"
        print(language)
    if missing:
        print("skipped:", ", ".join(missing))
    return SKIPPED if len(missing) == len(commands) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
