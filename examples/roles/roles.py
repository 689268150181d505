"""Trains a line through points with a chief, workers and servers, while an evaluator measures each
checkpoint: every process of the job runs this program, and README.md tells how.

SPDX-License-Identifier: Apache-2.0
"""
import time

import dtrain
import numpy

WEIGHTS, SAMPLES, STEPS, STEPS_PER_CHECKPOINT = 8, 64, 300, 50
TRUE = numpy.arange(WEIGHTS, dtype="f4")


def loss_of(weights, seed):
    """The mean square of the errors on some samples, and its gradient."""
    x = numpy.random.default_rng(seed).uniform(-1, 1, (SAMPLES, WEIGHTS)).astype("f4")
    errors = x @ (weights - TRUE)
    return float(numpy.mean(errors ** 2)), 2 * x.T @ errors / SAMPLES


def make_table(world):
    """The same for all: with other parameters a checkpoint is refused."""
    return world.table("weights", length=WEIGHTS, rule="sgd", learning_rate=0.05, aggregate="avg",
                       consistency="bsp")


def prepare(table):
    """The chief continues from the last checkpoint, or sets the first values. Returns the step."""
    try:
        step = dtrain.restore_checkpoint([table])
    except dtrain.NotFoundError:
        step = 0
        table.set(numpy.zeros(WEIGHTS, "f4"))
    table.set_ready()
    return step


def work(context):
    world = context.world
    table = make_table(world)
    chief = world.rank == 0
    step = numpy.array([prepare(table) if chief else 0], "u8")
    table.using(timeout="60s").wait_ready()
    world.broadcast(step)
    weights = numpy.empty(WEIGHTS, "f4")
    while step[0] < STEPS:
        table.pull(weights)
        table.push(loss_of(weights, world.rank)[1].astype("f4"))
        table.clock()
        time.sleep(0.005)  # as if there was more to compute
        step += 1
        if chief and step[0] % STEPS_PER_CHECKPOINT == 0:
            dtrain.save_checkpoint([table], int(step[0]))
    print(f"{'chief' if chief else 'worker'} (rank {world.rank}): done")


def serve(context):
    context.serve().wait()
    print("server: done")


def evaluate(context):
    """In a job of its own, with a table that gets the values of each checkpoint."""
    table = make_table(context.join(size=1, rank=0))
    weights = numpy.empty(WEIGHTS, "f4")
    step = None
    while step != STEPS:
        newest = dtrain.wait_checkpoint([table], step, timeout="60s")  # else the job has ended early, or hangs
        try:
            step = dtrain.restore_checkpoint([table], newest)
        except dtrain.Error:
            if dtrain.newest_checkpoint(table) == newest:
                raise
            continue  # the job has removed it meanwhile (checkpoint.keep)
        table.pull(weights)
        print(f"evaluator: step {step}: loss {loss_of(weights, 1000)[0]:.6f}", flush=True)


with dtrain.Context() as context:
    {"worker": work, "server": serve, "evaluator": evaluate}[dtrain.role()](context)
