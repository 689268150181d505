#!/usr/bin/env python3
"""An elastic job in each language, and of several: two workers find that they are too few, take a newcomer in, lose one
of them, go on without it, and one leaves.

usage: test_reform.py LANGUAGE=COMMAND...
An empty command: this language was not built, and is named as left out.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
BOUND_S = 100
OPTIONS = {"DTRAIN_ELASTIC": "yes", "DTRAIN_SIZE": "2", "DTRAIN_HEARTBEAT_TIMEOUT": "30s", "DTRAIN_JOIN_TIMEOUT": "60s",
           "DTRAIN_OP_TIMEOUT": "60s"}


class Failed(Exception):
    pass


class Process:
    def __init__(self, folder, command, rank):
        self.path = pathlib.Path(folder, rank)
        environment = {**os.environ, **OPTIONS, "DTRAIN_RENDEZVOUS": f"file://{folder}/job", "DTRAIN_RANK": rank}
        with open(self.path, "wb") as out:
            self.child = subprocess.Popen(shlex.split(command), env=environment, stdout=out, stderr=subprocess.STDOUT)

    def lines(self):
        return self.path.read_text(errors="replace").splitlines()

    def wait_for(self, start, end):
        while not any(line.startswith(start) for line in self.lines()):
            if time.monotonic() > end or self.child.poll() is not None:
                raise Failed(f"{self.path.name} has not said {start!r}")
            time.sleep(0.01)

    def wait(self, end):
        try:
            status = self.child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.path.name} has not ended") from None
        if status != 0:
            raise Failed(f"{self.path.name} has ended with {status}")

    def changes(self):
        return [json.loads(line.partition(" ")[2]) for line in self.lines() if line.startswith("changes ")]


def expect(expected, found):
    if found != expected:
        raise Failed(f"{found} instead of {expected}")


def check(first, second, newcomer):
    """What the processes have said: the second was killed."""
    for process in (first, second):
        if not any("too few" in line and "reform" in line for line in process.lines()):
            raise Failed(f"{process.path.name} was not told that they are too few")
    grown, shrunk, alone = first.changes()
    expect([3, [0, 1, None], 1, 0], [grown["size"], grown["ranks"], len(grown["came"]), len(grown["went"])])
    expect([2, [0, 2], 0, 1], [shrunk["size"], shrunk["ranks"], len(shrunk["came"]), len(shrunk["went"])])
    if "rank 1" not in shrunk["went"][0] or "lost" not in shrunk["went"][0]:
        raise Failed(f"{shrunk['went'][0]!r} does not say that rank 1 was lost")
    expect([1, [0]], [alone["size"], alone["ranks"]])
    expect([1, 2, 3], [one["generation"] for one in (grown, shrunk, alone)])
    expect([shrunk], newcomer.changes())
    expect([["sum 3 of 3", "sum 1 of 2", "alone"], ["sum 3 of 3", "sum 1 of 2", "left"]],
           [[line for line in process.lines() if line.startswith(("sum", "alone", "left"))] for process in (first, newcomer)])


def run(commands):
    """Of the first worker, the second, and the newcomer. What is wrong; None: nothing."""
    processes = []
    end = time.monotonic() + BOUND_S
    with tempfile.TemporaryDirectory() as folder:
        try:
            processes += [Process(folder, command, rank) for command, rank in zip(commands, "01")]
            for process in processes:
                process.wait_for("too few", end)
            processes.append(Process(folder, commands[2], "new"))
            for process in processes:
                process.wait_for("sum 3 of 3", end)
            processes[1].child.kill()
            processes[0].wait(end)
            processes[2].wait(end)
            check(*processes)
        except Failed as error:
            return "\n".join([str(error), *(f"[{one.path.name}] {line}" for one in processes for line in one.lines())])
        finally:
            for process in processes:
                process.child.kill()
                process.child.wait()
    return None


def main(*given):
    commands = dict(one.split("=", 1) for one in given)
    built = [name for name, command in commands.items() if command]
    if len(built) < len(commands):
        print("left out, since not built:", ", ".join(name for name in commands if name not in built))
    if not built:
        return SKIPPED
    for i in range(len(built)):
        names = [built[(i + j) % len(built)] for j in range(3)]
        problem = run([commands[name] for name in names])
        print(f"{', '.join(names)}: {problem or 'ok'}")
        if problem:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
