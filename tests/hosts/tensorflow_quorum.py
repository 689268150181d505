"""Workers that leave a quorum, or die in it: SyncReplicasOptimizer's K of N. Run by test_tensorflow.py with four
workers, of which one kills itself, and a server.

The gradient is always one, so each update takes RATE from the variable, whichever workers it is of.
SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import time

import tensorflow as tf

import dtrain.tensorflow as dt

world = dt.init()
RANK, SIZE = world.rank, world.size
RATE, QUORUM = 0.5, 2
AT_ONCE = 20  #: seconds, far below the operations' timeout
assert SIZE == 4


class Training:
    def __init__(self, name, consistency="quorum", **settings):
        self.variable = tf.Variable(tf.fill([3], 100.0))
        self.optimizer = dt.ServerOptimizer("sgd", RATE, name=name, consistency=consistency, **settings)
        self.optimizer.build([self.variable])

    def steps(self, count):
        for _ in range(count):
            self.step()

    def steps_until(self, updates):
        """As optimizer.stop_at(): nobody is left alone with a step."""
        while self.optimizer.updates < updates:
            self.step()

    @tf.function
    def step(self):
        self.optimizer.apply([tf.ones([3])], [self.variable])

    def check(self):
        """The server's values after some update, which is not older than this worker's last step."""
        updates = self.optimizer.updates
        self.optimizer.pull()
        value = self.variable.numpy()
        assert (value == value[0]).all() and value[0] == 100 - RATE * round((100 - value[0]) / RATE), value
        assert value[0] <= 100 - RATE * updates, (value, updates)
        return value[0], updates


def lost(name, function):
    """The error of TensorFlow, at once, that names the worker."""
    began = time.monotonic()
    try:
        function()
    except tf.errors.AbortedError as error:
        assert f"worker {name}" in str(error) and "table" in str(error), error
    else:
        raise AssertionError("it has not failed")
    assert time.monotonic() - began < AT_ONCE


def one_after_the_other():
    """The quorum is of all workers that are left, down to one."""
    training = Training("leaving", quorum=QUORUM)
    target = 3
    training.steps_until(target)
    for leaver in range(SIZE - 1, 0, -1):
        if RANK == leaver:
            training.optimizer.leave()
            assert training.optimizer.dropped() >= 0
            try:
                training.step()
                raise AssertionError("a step after leave() has not failed")
            except tf.errors.FailedPreconditionError as error:
                assert "was it closed" in str(error), error
        elif RANK < leaver:
            target += 4
            training.steps_until(target)
    if RANK == 0:  # alone
        before = training.check()
        training.steps(5)
        value, updates = training.check()
        assert updates == before[1] + 5 and value == before[0] - 5 * RATE, (before, value, updates)
    dt.barrier()


def without_a_leaver():
    """One leaves; the others need all that are left, so every update is of all of them."""
    training = Training("exact", quorum=SIZE)
    training.steps(3)
    assert training.check() == (100 - 3 * RATE, 3)
    dt.barrier()
    if RANK == SIZE - 1:
        training.optimizer.leave()
    else:
        training.steps(6)
        assert training.check() == (100 - 9 * RATE, 9)
        assert training.optimizer.dropped() == 0
    dt.barrier()


def late():
    """One neither steps nor leaves: the others' steps end at their timeout, and all go on when it comes."""
    training = Training("late", quorum=SIZE, timeout=2)
    training.steps(2)
    dt.barrier()
    if RANK != SIZE - 1:
        try:
            training.step()
            raise AssertionError("it has not failed")
        except tf.errors.DeadlineExceededError as error:
            assert f"server 0 waited for worker {SIZE - 1}, which had ended 2 clocks" in str(error), error
    dt.barrier()
    if RANK == SIZE - 1:
        training.step()
    training.steps_until(3)
    assert training.check() == (100 - 3 * RATE, 3)
    dt.barrier()


def killed():
    """The last rank dies. A quorum of others goes on; one that needs the rank fails, and so do synchronous replicas."""
    quorum, all_of_them = Training("killed", quorum=QUORUM), Training("all", quorum=SIZE)
    synchronous, asynchronous = Training("bsp", "bsp"), Training("async", "async")
    for training in (all_of_them, synchronous, asynchronous):
        training.steps(2)
    quorum.steps_until(3)
    dt.barrier()
    if RANK == SIZE - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    quorum.steps_until(30)
    assert quorum.check()[1] >= 30
    asynchronous.steps(3)
    for training in (all_of_them, synchronous):
        lost(SIZE - 1, lambda training=training: training.steps(2))
        lost(SIZE - 1, training.step)
    if RANK == 0:
        lost(SIZE - 1, lambda: quorum.steps(1000))  # of the two that have not left, one is lost
    else:
        quorum.optimizer.leave()


one_after_the_other()
without_a_leaver()
late()
killed()
print("went on")
