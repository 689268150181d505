"""A job of two ranks, which are threads, in which each allocation fails in turn, once, and from then on: it ends with
dtrain.Error or MemoryError, nothing crashes or hangs, and the contexts can be closed. Needs failing_memory.so, preloaded.
DTRAIN_TEST_SEED chooses the allocations, as many as there is time for; DTRAIN_TEST_ALL=1: all.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import random
import signal
import sys
import tempfile
import threading
import time
from array import array

import dtrain

SIZE, PATIENCE_S, TIME_S = 2, 90, 8
FOR_EVER = 2**62
# glibc allocates the thread-local variables of libraries that are loaded later, as extensions are, at their first use.
BEYOND_US = "cannot allocate memory for thread-local data: ABORT"
OPTIONS = {"tcp.interface": "lo", "join.timeout": "4s", "op.timeout": "2s", "log.level": "error"}

memory = ctypes.CDLL(None)
memory.failing_memory_begin.argtypes = [ctypes.c_int64, ctypes.c_int64]
memory.failing_memory_end.restype = ctypes.c_int64


def use(world):
    values, out = array("f", [1] * 3000), array("f", [0] * 6000)
    world.allreduce(values)
    world.allgather(values, out)
    world.start.allreduce(values).wait()
    request = world.start.recv(out, 1 - world.rank)
    world.send(values, 1 - world.rank)
    request.wait()
    with world.duplicate() as copy:
        copy.barrier()
    with world.gradients() as gradients:
        gradients.submit("weights", values)
    with world.table("weights", length=100) as table:
        table.push(values[:100])
        table.pull(out[:100])
        world.barrier()


def run_rank(rank, transports, folder, go, errors):
    while not go:
        time.sleep(0.001)
    context = None
    try:
        context = dtrain.Context(OPTIONS, transports=transports)
        use(context.join(f"file://{folder}/job", rank=rank, size=SIZE))
    except BaseException as error:  # pylint: disable=broad-except # checked later
        errors.append(error)
    try:
        if context is not None:
            context.close()
    except (dtrain.Error, MemoryError):
        memory.failing_memory_end()
        context.close()


def run_job(transports, folder, first, last):
    """Runs the job; returns the number of allocations, and the ranks' errors."""
    go, errors = [], []
    ranks = [threading.Thread(target=run_rank, args=(rank, transports, folder, go, errors)) for rank in range(SIZE)]
    for rank in ranks:
        rank.start()
    memory.failing_memory_begin(first, last)
    go += [True]
    for rank in ranks:
        rank.join()
    return memory.failing_memory_end(), errors


def in_child(job, first, last):
    """Runs the job in a new process; returns (exit status, output)."""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE_S)
            os.dup2(said.fileno(), 2)
            allocations, errors = run_job(job, folder, first, last)
            bad = [error for error in errors if not isinstance(error, (dtrain.Error, MemoryError))]
            print(allocations, *(repr(error) for error in (bad if last >= 0 else errors)), file=sys.stderr, flush=True)
            os._exit(len(bad) if last >= 0 else len(errors))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return status, said.read()


def main():
    seed, everything = int(os.environ.get("DTRAIN_TEST_SEED", "1")), "DTRAIN_TEST_ALL" in os.environ
    bad = 0
    for transports in ("shm,tcp", "tcp"):
        status, said = in_child(transports, -1, -1)
        if status != 0:
            sys.exit(f"it fails with enough memory, too: {status} {said}")
        points = [(first, last) for first in range(int(said)) for last in (first, FOR_EVER)]
        if not everything:
            random.Random(seed).shuffle(points)
        until, done, beyond = time.monotonic() + TIME_S, 0, 0
        for first, last in points:
            if not everything and time.monotonic() > until:
                break
            done += 1
            status, said = in_child(transports, first, last)
            if status != 0 and BEYOND_US in said:
                beyond += 1
            elif status != 0:
                bad += 1
                print(f"allocation {first} failed {'once' if last == first else 'and all that followed'}: "
                      f"exit status {status}\n{said}")
        print(f"{transports}: {done} of {len(points)} runs (DTRAIN_TEST_SEED={seed}), {beyond} ended by glibc", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
