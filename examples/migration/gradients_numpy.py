#!/usr/bin/env python3
"""Handwritten digits in NumPy: what a program does without Horovod's API that reduced named gradients by it, such as
`hvd.allreduce_async(gradient, name=...)` and `hvd.join()`.

    dtrain-run -n 2 -- python3 examples/migration/gradients_numpy.py

SPDX-License-Identifier: Apache-2.0
"""
import sys

import numpy

import dtrain
from digits_data import load

EPOCHS, BATCH, RATE, MOMENTUM, HIDDEN = 20, 32, 0.1, 0.9, 64


def arrays(pattern, shard=0, shards=1):
    images, labels = load(pattern, shard, shards)
    return numpy.array(images, "f4") / 16, numpy.array(labels)


def initial():
    generator = numpy.random.default_rng(1)
    return {"hidden": generator.normal(0, 0.2, (65, HIDDEN)).astype("f4"),
            "output": generator.normal(0, 0.2, (HIDDEN + 1, 10)).astype("f4")}


def with_ones(values):
    return numpy.concatenate([values, numpy.ones((len(values), 1), "f4")], 1)


def scores(weights, images):
    inputs = with_ones(images)
    hidden = with_ones(numpy.tanh(inputs @ weights["hidden"]))
    return inputs, hidden, hidden @ weights["output"]


def gradients(weights, images, labels):
    """Those of the output come first, as in any backward pass."""
    inputs, hidden, found = scores(weights, images)
    share = numpy.exp(found - found.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    share[numpy.arange(len(labels)), labels] -= 1
    share /= len(labels)
    yield "output", hidden.T @ share
    yield "hidden", inputs.T @ ((share @ weights["output"].T)[:, :-1] * (1 - hidden[:, :-1] ** 2))


with dtrain.Context() as context:
    world = context.world
    images, labels = arrays("train-*.tfrecord", world.rank, world.size)
    shuffled = numpy.random.default_rng(world.rank)
    weights = initial()
    for value in weights.values():
        world.broadcast(value, root=0)  # hvd.broadcast
    speeds = {name: numpy.zeros_like(value) for name, value in weights.items()}
    queue = world.gradients()
    for _ in range(EPOCHS):
        for batch in numpy.array_split(shuffled.permutation(len(labels)), -(-len(labels) // BATCH)):
            started = []
            for name, gradient in gradients(weights, images[batch], labels[batch]):
                gradient = numpy.ascontiguousarray(gradient, "f4")
                started.append((name, gradient, queue.start.submit(name, gradient)))  # hvd.allreduce_async_
            for name, gradient, request in started:
                request.wait()  # hvd.synchronize
                speeds[name] = MOMENTUM * speeds[name] - RATE * gradient
                weights[name] += speeds[name]
        last = queue.join().peer  # hvd.join: ranks may have different numbers of batches
        for name in weights:
            world.broadcast(weights[name], root=last)
            world.broadcast(speeds[name], root=last)
    images, labels = arrays("test.tfrecord")
    accuracy = float((scores(weights, images)[2].argmax(1) == labels).mean())
    if world.rank == 0:
        print(f"{world.size} ranks, {100 * accuracy:.1f} % of the test set")
if accuracy < 0.95:
    sys.exit("that is less than 95 %")
