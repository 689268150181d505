"""What the engines that call functions run: the digits of examples/digits, by all-reduce or in a table on servers.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys

import dtrain

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "digits/python"))


def train(with_table=False):
    """Trains on this rank's shard of the data; the accuracy on the test set."""
    import digits
    with dtrain.Context() as context:
        world, model = context.world, digits.Model()
        how = digits.train_with_table if with_table else digits.train_by_allreduce
        how(world, model, *digits.load("train-*.tfrecord", world.rank, world.size))
        return float(model.accuracy(*digits.load("test.tfrecord")))


def report(engine, accuracies):
    print(f"{engine}: {len(accuracies)} workers, {100 * min(accuracies):.1f} % of the test set")
    if min(accuracies) < 0.95:
        sys.exit("that is less than 95 %")
