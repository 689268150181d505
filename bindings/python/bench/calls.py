"""Measures the cost of a call from Python, as bench/calls.c does for C. usage: calls.py [torch]: with a tensor

SPDX-License-Identifier: Apache-2.0
"""
import statistics
import sys
import time
from array import array

import dtrain

ROUNDS, CALLS, REDUCTIONS, ELEMENTS = 51, 20000, 20, 1 << 18

with dtrain.Context() as context:
    world = context.world
    alone = world.size == 1
    x = array("f", bytes(4 if alone else 4 * ELEMENTS))
    if sys.argv[1:] == ["torch"]:
        import torch
        x = torch.frombuffer(x, dtype=torch.float32).clone()
    rounds = []
    for _ in range(ROUNDS):
        world.barrier()
        begin = time.perf_counter_ns()
        for _ in range(CALLS if alone else REDUCTIONS):
            world.allreduce(x)
        rounds.append((time.perf_counter_ns() - begin) / (CALLS if alone else REDUCTIONS))
    if alone:
        print(f"Python alone {statistics.median(rounds):.0f}")
    elif world.rank == 0:
        print(f"Python 1MiB {statistics.median(rounds) / 1e3:.1f}")
