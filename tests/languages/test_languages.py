#!/usr/bin/env python3
"""Ranks in several languages all-reduce together and share a table, with and without servers.

usage: test_languages.py DTRAIN_RUN LANGUAGE=COMMAND...
An empty command: this language was not built, and is named as left out.
SPDX-License-Identifier: Apache-2.0
"""
import re
import shlex
import subprocess
import sys

LAUNCHER = sys.argv[1]
COMMANDS = dict(argument.split("=", 1) for argument in sys.argv[2:])
MEMBERS = {language: command for language, command in COMMANDS.items() if command}
ONE_EACH = "case $DTRAIN_RANK in {} esac"


def run(members, servers):
    """The lines of a job with one rank of each language, by language."""
    choice = " ".join(f"{rank}) exec {command};;" for rank, command in enumerate(members.values()))
    job = [LAUNCHER, "--timeout", "60", "-n", str(len(members)), "-s", str(servers), "--", "sh", "-c",
           ONE_EACH.format(choice)]
    done = subprocess.run(job, stdout=subprocess.PIPE, text=True, timeout=70)
    if done.returncode:
        sys.exit(f"{' '.join(map(shlex.quote, job))}: exit code {done.returncode}\n{done.stdout}")
    found = re.findall(r"^\[(\d+)\] (\S+) rank \1 of (\d+): (sum \S+ pulled \S+)$", done.stdout, re.M)
    return {language: (int(rank), int(size), numbers) for rank, language, size, numbers in found}


def main():
    if len(MEMBERS) < 2:
        print("skipped: all, there is but one language")
        sys.exit(77)
    size = len(MEMBERS)
    ranks = size * (size + 1) // 2
    expected = {language: (rank, size, f"sum {ranks + 10 * size}.0 pulled {ranks}.0")
                for rank, language in enumerate(MEMBERS)}
    for servers in (0, 1):
        found = run(MEMBERS, servers)
        if found != expected:
            sys.exit(f"{servers} servers: {found}, not {expected}")
        print(f"{', '.join(MEMBERS)} with {servers} servers: {expected[next(iter(MEMBERS))][2]}")
    for language in COMMANDS.keys() - MEMBERS.keys():
        print(f"skipped: {language}")


if __name__ == "__main__":
    main()
