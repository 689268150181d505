#!/usr/bin/env python3
"""An elastic job of two workers on this machine: one is killed half-way, a newcomer takes its place, and all steps are
done.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal

import dtrain
from dtrain import launch
from train import report

STEPS = 800


def train_elastically():
    """The accuracy on the test set. docs/ELASTIC.md explains the loop."""
    import digits
    import numpy
    with dtrain.Context() as context:
        world, fresh, random = context.world, True, numpy.random.default_rng()
        model, step = digits.Model(), numpy.zeros(1, int)
        velocity = numpy.zeros_like(model.vector)
        while fresh or step[0] < STEPS:
            try:
                if fresh:
                    for values in (step, model.vector, velocity):
                        world.broadcast(values)
                    images, labels = digits.load("train-*.tfrecord", world.rank, world.size)
                if step[0] < STEPS:
                    batch = random.integers(len(images), size=digits.BATCH)
                    model.compute_gradient(images[batch], labels[batch])
                    world.allreduce(model.gradient, op=dtrain.AVG)
                    velocity *= digits.MOMENTUM
                    velocity += model.gradient
                    model.vector -= digits.RATE * velocity
                    step += 1
                if step[0] == STEPS // 2 and os.environ["DTRAIN_RANK"] == "1":
                    os.kill(os.getpid(), signal.SIGKILL)
                changed = numpy.array([world.newcomers])
                world.allreduce(changed, op=dtrain.MAX)
                fresh = bool(changed[0])
            except dtrain.PeerError:
                fresh = True
            if fresh:
                last, world = world, world.reform(min_size=2)
                last.close()
        return float(model.accuracy(*digits.load("test.tfrecord")))


if __name__ == "__main__":
    with launch.launch_workers(2, train_elastically, elastic=(1, 2)) as job:
        report("elastic", job.results(120))
        print("replaced:", *(worker.reason for worker in job if worker.replaced))
