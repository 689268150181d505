#!/usr/bin/env python3
"""What an all-reduce costs as an op of TensorFlow, and whose share that is: next to it TensorFlow's cheapest op, an op of
dtrain that does nothing, and the same calls of the library without TensorFlow. Minima and medians of many short rounds, as
other programs disturb long ones.
usage: dtrain-run -n RANKS -- tensorflow_ops.py [ROUNDS [THREADS]]; `./dev bench-tf` runs it with 2 threads of TensorFlow's
for each rank, and with 1

SPDX-License-Identifier: Apache-2.0
"""
import statistics
import sys
import time

import numpy as np
import tensorflow as tf

import dtrain.tensorflow as dt
from dtrain.tensorflow._library import name_of, ops

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 2  #: that run ops
COUNT = 50  #: ops of a round
SIZES = {"64 B": 16, "1 MiB": 1 << 18}

tf.config.threading.set_inter_op_parallelism_threads(THREADS)
tf.config.threading.set_intra_op_parallelism_threads(1)
world = dt.init()


def nothing(x):
    """An op of dtrain that asks for the rank."""
    with tf.control_dependencies(list(ops.dtrain_rank(group=name_of(world), timeout=0))):
        return tf.identity(x)


def reduced(x):
    return dt.allreduce(x, "avg")


def looped(body):
    @tf.function
    def run(x):
        for _ in tf.range(COUNT):
            x = body(x)
        return x
    return run


def chained(body):
    @tf.function
    def run(x):
        for _ in range(COUNT):
            x = body(x)
        return x
    return run


def eager(body):
    def run(x):
        for _ in range(COUNT):
            x = body(x)
        return x
    return run


WAYS = {"one after the other in tf.function": chained, "in a loop of tf.function": looped, "eager": eager}
BODIES = {"tf.identity": tf.identity, "an op that does nothing": nothing, "all-reduce": reduced}


def library(values, hashes=None):
    """Without TensorFlow: the all-reduce, after that of hashes by which ops compare what ranks do."""
    def run(_):
        for _ in range(COUNT):
            if hashes is not None:
                world.allreduce(hashes, op="max")
            world.allreduce(values, op="avg")
    return run


def programs():
    for size, elements in SIZES.items():
        x, values, hashes = tf.zeros([elements]), np.zeros(elements, np.float32), np.zeros(2, np.uint64)
        yield f"{size}: without TensorFlow", library(values), x
        yield f"{size}: without TensorFlow, with the comparison", library(values, hashes), x
        for what, body in BODIES.items():
            if elements == 16 or body is reduced:
                for way, made in WAYS.items():
                    yield f"{size}: {what}, {way}", made(body), x


def main():
    made = list(programs())
    times = {name: [] for name, _, _ in made}
    for _, run, x in made:
        run(x)
    for round_number in range(ROUNDS):
        for name, run, x in made:
            if round_number >= ROUNDS // 10 and name.startswith("1 MiB"):
                continue
            world.barrier()
            begun = time.perf_counter()
            run(x)
            times[name].append((time.perf_counter() - begun) / COUNT * 1e6)
    world.barrier()
    if world.rank == 0:
        print(f"{world.size} ranks, {THREADS} threads each, {ROUNDS} rounds of {COUNT}\n")
        print("| us for each | minimum | median |\n|---|---:|---:|")
        for name, found in times.items():
            print(f"| {name} | {min(found):.1f} | {statistics.median(found):.1f} |", flush=True)


main()
