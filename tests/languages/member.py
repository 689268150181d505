"""A Python rank of a job of several languages: an all-reduce, and a table.

SPDX-License-Identifier: Apache-2.0
"""
import sys
from array import array

import dtrain

LENGTH = 1000

with dtrain.Context() as context:
    world = context.world
    rank, size = world.rank, world.size
    ranks = size * (size + 1) // 2  # sum of rank + 1
    vector = array("f", range(rank + 1, rank + 1 + LENGTH))
    world.allreduce(vector)
    table = world.table("shared", length=LENGTH, rule=dtrain.Rule.ADD,
                        consistency=dtrain.Consistency.BSP)
    values = array("f", [rank + 1] * LENGTH)
    table.push(values)
    table.clock()
    table.pull(values)
    print(f"Python rank {rank} of {size}: sum {vector[10]:.1f} pulled {values[10]:.1f}")
    if list(vector) != [ranks + size * i for i in range(LENGTH)] or set(values) != {ranks}:
        sys.exit("these are not the expected numbers")
