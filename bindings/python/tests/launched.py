"""Functions that test_launch.py has workers call.

SPDX-License-Identifier: Apache-2.0
"""
import os
import time
from array import array

import dtrain

LIMIT = 60  # seconds


def add_up(scale=1):
    with dtrain.Context() as context:
        values = array("f", [scale * context.rank])
        context.world.allreduce(values)
        return context.rank, values[0]


def use_table():
    with dtrain.Context() as context:
        table = context.world.table("table", length=2)
        table.push(array("f", [1, 2]))
        out = array("f", [0, 0])
        context.world.barrier()
        table.pull(out)
        servers = [server["rank"] for server in table.servers()]
        context.world.barrier()
        return list(out), servers


def fail_on(rank):
    if int(os.environ["DTRAIN_RANK"]) == rank:
        raise ZeroDivisionError("a planted fault")
    time.sleep(LIMIT)


def return_what_cannot_be_sent():
    return lambda: None


def size_of(data):
    return data[::-1]


def sum_by_horovod(scale=1):
    import torch  # pylint: disable=import-outside-toplevel

    import dtrain.horovod.torch as hvd  # pylint: disable=import-outside-toplevel
    hvd.init()
    try:
        return hvd.rank(), hvd.allreduce(torch.tensor([float(scale)]), op=hvd.Sum).item()
    finally:
        hvd.shutdown()
