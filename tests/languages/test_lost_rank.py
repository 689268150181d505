#!/usr/bin/env python3
"""examples/lost_rank: a rank kills itself, and the others name it and do all steps without it; over shared memory and
over TCP.

usage: test_lost_rank.py [--rounds N] LANGUAGE=COMMAND...
One language: three ranks of it. Several: a rank of each, and each dies once. An empty command: this language was not
built, and is named as left out.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
STEPS, BEFORE = 100, 50  # steps, and those of the rank that dies
BOUND_S = 100


def start(command, folder, rank, size, transports):
    # A process that ends is seen at once; one that a busy machine keeps waiting is not to count as lost.
    environment = dict(os.environ, DTRAIN_RENDEZVOUS=f"file://{folder}/job", DTRAIN_RANK=str(rank),
                       DTRAIN_SIZE=str(size), DTRAIN_TRANSPORTS=transports, DTRAIN_HEARTBEAT_TIMEOUT="30s",
                       DTRAIN_JOIN_TIMEOUT="60s", DTRAIN_OP_TIMEOUT="60s")
    return subprocess.Popen(shlex.split(command), env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def run(commands, transports):
    """[(exit code, what it said)] by rank."""
    with tempfile.TemporaryDirectory() as folder:
        job = [start(command, folder, rank, len(commands), transports) for rank, command in enumerate(commands)]
        deadline = time.monotonic() + BOUND_S
        try:
            said = [process.communicate(timeout=max(0, deadline - time.monotonic()))[0] for process in job]
        finally:
            for process in job:
                process.kill()
                process.wait()
    return [(process.returncode, text) for process, text in zip(job, said)]


def complaint(results):
    """What is wrong with how a job ended; None: nothing."""
    size = len(results)
    dead, everybody = size - 1, size * (size + 1) // 2
    left = everybody - size
    # Its last step may have failed on all others, who saw its end before its data. They did it again without it.
    possible = {f"{shared * everybody + (STEPS - shared) * left}.0" for shared in (BEFORE, BEFORE - 1)}
    weights = set()
    for rank, (code, text) in enumerate(results):
        if rank == dead:
            if code != -signal.SIGKILL:
                return f"rank {rank} ended with {code}"
            continue
        if code != 0:
            return f"rank {rank} ended with {code}"
        lost = re.findall(r"^rank (\d+) is lost: (.*)$", text, re.M)
        if len(lost) != 1 or int(lost[0][0]) != dead or f"rank {dead}" not in lost[0][1]:
            return f"rank {rank} does not name rank {dead}"
        end = re.search(rf"^rank {rank} of {size - 1}: {STEPS} steps, weight (\S+)$", text, re.M)
        if not end or end[1] not in possible:
            return f"rank {rank} has not {STEPS} steps with one of the weights {sorted(possible)}"
        weights.add(end[1])
    return None if len(weights) == 1 else f"the weights differ: {sorted(weights)}"


def check(members, transports):
    names = ", ".join(language for language, _ in members)
    results = run([command for _, command in members], transports)
    wrong = complaint(results)
    if wrong:
        said = "".join(f"-- rank {rank}: exit code {code}\n{text}" for rank, (code, text) in enumerate(results))
        sys.exit(f"{names} over {transports}: {wrong}\n{said}")
    print(f"{names} over {transports}: {results[0][1].splitlines()[-1]}")


def jobs(built):
    """[(members, transports)]: one language over both, or several, each of which is the last rank once."""
    if len(built) == 1:
        return [(built * 3, "shm"), (built * 3, "tcp")]
    some = built if len(built) > 2 else built * 2
    return [(some[first:] + some[:first], ("shm", "tcp")[first % 2]) for first in range(len(built))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("commands", nargs="+", type=lambda argument: argument.split("=", 1))
    arguments = parser.parse_args()
    built = [(language, command) for language, command in arguments.commands if command]
    missing = [language for language, command in arguments.commands if not command]
    if missing:
        print("skipped:", ", ".join(missing))
    if not built or len(built) == 1 < len(arguments.commands):
        sys.exit(SKIPPED)
    for members, transports in jobs(built) * arguments.rounds:
        check(members, transports)


if __name__ == "__main__":
    main()
