"""A Python worker of an elastic job; test_reform.py says what happens to it.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
from array import array

import dtrain


def add_up(world):
    values = array("q", [world.rank])
    world.allreduce(values)
    print(f"sum {values[0]} of {world.size}", flush=True)


def reform(world, **sizes):
    made = world.reform(**sizes)
    world.close()
    if made is not None:
        print("changes", json.dumps(made.changes), flush=True)
    return made


with dtrain.Context() as context:
    world = context.world
    if os.environ["DTRAIN_RANK"] != "new":
        try:
            world.reform(min_size=9, timeout=1)
        except dtrain.TimeoutError as error:
            print("too few:", error, flush=True)
        there = array("i", [0])
        while there[0] == 0:
            there[0] = world.newcomers
            world.allreduce(there, op="min")
        world = reform(world, min_size=3)
    add_up(world)
    try:
        while True:
            world.barrier()
    except dtrain.PeerError:
        world = reform(world, min_size=2)
    add_up(world)
    left = reform(world, leave=world.rank == 1)
    print("left" if left is None else "alone", flush=True)
