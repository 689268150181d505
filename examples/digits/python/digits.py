#!/usr/bin/env python3
"""Handwritten digits in Python: NumPy computes, dtrain adds up the workers' gradients.

    dtrain-run -n 4 -- examples/digits/python/digits.py              by all-reduce
    dtrain-run -n 4 -s 1 -- examples/digits/python/digits.py table   on parameter servers

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys

import dtrain
import numpy

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
HIDDEN, EPOCHS, BATCH, RATE, MOMENTUM = 64, 15, 32, 0.1, 0.9


def load(pattern, shard=0, shards=1):
    """Images (0 to 1) and labels: tf.train.Examples that all have the same form."""
    with dtrain.RecordReader(sorted(DATA.glob(pattern)), shard=shard, shards=shards) as reader:
        records = numpy.stack([numpy.frombuffer(record, "u1") for record in reader])
    image = bytes(records[0]).index(b"image") + len(b"image") + 6  # four lengths
    return records[:, image:image + 64].astype("f4") / 16, records[:, -1].astype(int)


class Model:
    """One hidden layer, tanh and softmax; all parameters in one vector."""

    def __init__(self):
        random = numpy.random.default_rng(1)  # the same on every worker
        shapes = [(64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
        self.vector = numpy.concatenate(
            [random.normal(0, 0.1, shape).ravel() for shape in shapes]).astype("f4")
        self.gradient = numpy.zeros_like(self.vector)
        self.parameters = self.split(self.vector, shapes)
        self.gradients = self.split(self.gradient, shapes)

    @staticmethod
    def split(vector, shapes):
        ends = numpy.cumsum([numpy.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(numpy.split(vector, ends), shapes)]

    def predict(self, images):
        weights1, bias1, weights2, bias2 = self.parameters
        hidden = numpy.tanh(images @ weights1 + bias1)
        scores = hidden @ weights2 + bias2
        scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, scores / scores.sum(axis=1, keepdims=True)

    def compute_gradient(self, images, labels):
        """The mean over the samples, in self.gradient."""
        hidden, error = self.predict(images)
        error[numpy.arange(len(labels)), labels] -= 1
        error /= len(labels)
        back = error @ self.parameters[2].T * (1 - hidden ** 2)
        for gradient, value in zip(self.gradients, (images.T @ back, back.sum(axis=0),
                                                    hidden.T @ error, error.sum(axis=0))):
            gradient[...] = value

    def accuracy(self, images, labels):
        return (self.predict(images)[1].argmax(axis=1) == labels).mean()


def batches(world, images, labels):
    """The same number on every worker: ranks call collectives together."""
    fewest = numpy.array([len(images)])
    world.allreduce(fewest, op=dtrain.MIN)
    random = numpy.random.default_rng(world.rank)
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for first in range(0, fewest[0] - BATCH + 1, BATCH):
            yield images[order[first:first + BATCH]], labels[order[first:first + BATCH]]


def train_by_allreduce(world, model, images, labels):
    velocity = numpy.zeros_like(model.vector)
    for batch in batches(world, images, labels):
        model.compute_gradient(*batch)
        world.allreduce(model.gradient, op=dtrain.AVG)
        velocity *= MOMENTUM
        velocity += model.gradient
        model.vector -= RATE * velocity


def train_with_table(world, model, images, labels):
    table = world.table("digits", length=len(model.vector), rule=dtrain.Rule.MOMENTUM,
                        learning_rate=RATE, momentum=MOMENTUM, aggregate=dtrain.AVG,
                        consistency=dtrain.Consistency.BSP)
    table.set(model.vector)
    for batch in batches(world, images, labels):
        table.pull(model.vector)
        model.compute_gradient(*batch)
        table.push(model.gradient)
        table.clock()
    table.pull(model.vector)


def main():
    train = train_with_table if sys.argv[1:] == ["table"] else train_by_allreduce
    with dtrain.Context() as context:
        world, model = context.world, Model()
        train(world, model, *load("train-*.tfrecord", world.rank, world.size))
        if world.rank == 0:
            accuracy = model.accuracy(*load("test.tfrecord"))
            print(f"{world.size} workers, {train.__name__}: {100 * accuracy:.1f} % of the test set")
            if accuracy < 0.95:
                sys.exit("that is less than 95 %")


if __name__ == "__main__":
    main()
