"""Runs a function as the ranks of a process group: in processes forked from the test, which meet by a file.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import importlib.util
import os
import sys
import tempfile
import traceback
from multiprocessing import get_context

SKIPPED = 77
if importlib.util.find_spec("torch") is None:
    print("skipped: the package torch is missing here (Debian: python3-torch)")
    sys.exit(SKIPPED)

# pylint: disable=wrong-import-position
import torch
import torch.distributed as dist

import dtrain.torch

PATIENCE = 100  #: seconds until a rank that has not ended is killed; the machine may be busy


def initialize(rank, size, path, backend="dtrain", timeout=60.0, store=None, **more):
    dist.init_process_group(backend, store=store or dist.FileStore(path, size), rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=timeout), **more)


def _rank(function, rank, size, path, backend, timeout, arguments, pipe):
    torch.set_num_threads(1)
    try:
        if backend is not None:
            initialize(rank, size, path, backend, timeout)
        pipe.send((True, function(rank, size, *arguments)))
        if backend is not None and dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:  # pylint: disable=broad-except
        pipe.send((False, traceback.format_exc()))
        pipe.close()
        os._exit(1)


def run(size, function, *arguments, backend="dtrain", timeout=60.0, lost=()):
    """What function(rank, size, *arguments) returns on each rank. lost: ranks that end without a result. backend None:
    the function gets the path of the group's file as third argument and initializes the group itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        given = arguments if backend is not None else (path, *arguments)
        context = get_context("fork")
        pipes, processes = [], []
        for rank in range(size):
            receiver, sender = context.Pipe(False)
            process = context.Process(target=_rank, args=(function, rank, size, path, backend, timeout, given, sender))
            process.start()
            sender.close()
            pipes.append(receiver)
            processes.append(process)
        try:
            return [outcome(rank, pipe, rank in lost) for rank, pipe in enumerate(pipes)]
        finally:
            for process in processes:
                process.join(PATIENCE)
                if process.is_alive():
                    process.kill()
                    process.join()


def outcome(rank, pipe, lost):
    if not pipe.poll(PATIENCE):
        raise AssertionError(f"rank {rank} has neither ended nor failed after {PATIENCE} s")
    try:
        good, value = pipe.recv()
    except EOFError:
        if lost:
            return None
        raise AssertionError(f"rank {rank} died") from None
    if not good:
        raise AssertionError(f"rank {rank}: {value}")
    return value


OLD = dtrain.torch._torch.OLD
