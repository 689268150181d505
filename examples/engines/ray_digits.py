#!/usr/bin/env python3
"""Actors of Ray: functions on every worker, and workers that keep their state from call to call.

SPDX-License-Identifier: Apache-2.0
"""
import dtrain.ray
from train import report, train


class Trainer:
    """A worker that stays in its job."""

    def __init__(self):
        self.context = dtrain.Context()

    def rank(self):
        return self.context.rank


if __name__ == "__main__":
    with dtrain.ray.Executor(num_workers=2, servers=1) as executor:
        report("ray", executor.run(train))
        report("ray, with a server", executor.run(train, args=[True]))
    executor.start(executable_cls=Trainer)
    print("ray: stateful workers", executor.execute(lambda trainer: trainer.rank()))
    executor.shutdown()
