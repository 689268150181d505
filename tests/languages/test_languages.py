#!/usr/bin/env python3
"""Ranks in several languages all-reduce together and share a table, with and without servers.

usage: test_languages.py DTRAIN_RUN LANGUAGE=COMMAND...
An empty command: this language was not built, and is named as left out.
SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

LAUNCHER = sys.argv[1]
COMMANDS = dict(argument.split("=", 1) for argument in sys.argv[2:])
MEMBERS = {language: command for language, command in COMMANDS.items() if command}
ONE_EACH = "case $DTRAIN_RANK in {} esac"


def launch(members, servers, **variables):
    """A job with one rank of each language."""
    choice = " ".join(f"{rank}) exec {command};;" for rank, command in enumerate(members.values()))
    job = [LAUNCHER, "--timeout", "60", "-n", str(len(members)), "-s", str(servers), "--", "sh", "-c",
           ONE_EACH.format(choice)]
    return job, subprocess.run(job, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=70,
                               check=False, env={**os.environ, **variables})


def run(members, servers, **variables):
    """The lines of such a job, by language."""
    job, done = launch(members, servers, **variables)
    if done.returncode:
        sys.exit(f"{' '.join(map(shlex.quote, job))}: exit code {done.returncode}\n{done.stdout}")
    found = re.findall(r"^\[(\d+)\] (\S+) rank \1 of (\d+): (sum \S+ pulled \S+)$", done.stdout, re.M)
    return {language: (int(rank), int(size), numbers) for rank, language, size, numbers in found}


def restricted(expected):
    """The table is one for which a token is needed; then it is one that the token does not open."""
    with tempfile.TemporaryDirectory() as name:
        access, tokens = pathlib.Path(name, "access"), pathlib.Path(name, "tokens")
        for file in access, tokens:
            file.touch(0o600)
        tokens.write_text("the-token-of-everybody\n", encoding="ascii")
        variables = {"DTRAIN_PS_ACCESS": str(access), "DTRAIN_PS_TOKEN_FILE": str(tokens)}
        access.write_text("* all the-token-of-everybody\n", encoding="ascii")
        found = run(MEMBERS, 1, **variables)
        if found != expected:
            sys.exit(f"with a token: {found}, not {expected}")
        access.write_text("* all the-token-of-nobody\n", encoding="ascii")
        _, done = launch(MEMBERS, 1, **variables)
        if done.returncode == 0 or "may not open it" not in done.stdout or "the-token" in done.stdout:
            sys.exit(f"without the token: exit code {done.returncode}\n{done.stdout}")
    print("and with a token for the table")


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
    restricted(expected)
    for language in COMMANDS.keys() - MEMBERS.keys():
        print(f"skipped: {language}")


if __name__ == "__main__":
    main()
