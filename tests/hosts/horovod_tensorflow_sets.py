"""Process sets of dtrain.horovod.tensorflow: every operation, in sets given to init() and in sets added later, eager, in
tf.function and in graphs of TensorFlow 1. Run by test_horovod_tensorflow.py with two and with three ranks.

SPDX-License-Identifier: Apache-2.0
"""
import itertools
import unittest

import numpy as np
import tensorflow as tf

import dtrain.horovod.tensorflow as hvd
import dtrain.horovod.tensorflow.keras as keras_hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
hvd.shutdown()
#: All sets but that of all ranks, which exists.
LISTS = [list(ranks) for count in range(1, SIZE) for ranks in itertools.combinations(range(SIZE), count)]


def in_session(function):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(function())


WAYS = {"eager": lambda function: function(), "function": lambda function: tf.function(function)(),
        "graph": in_session}


def mine():
    return tf.constant([RANK + 1.0])


def operations(one):
    """(operation, what it returns), for a rank of the set."""
    ranks = one.ranks
    place, count = ranks.index(RANK), len(ranks)
    values = [rank + 1.0 for rank in ranks]

    def rows():
        return tf.range(count) + 10 * RANK
    return [
        (lambda: hvd.allreduce(mine(), process_set=one), [np.mean(values)]),
        (lambda: hvd.allreduce(mine(), op=hvd.Sum, name="same name", process_set=one), [sum(values)]),
        (lambda: hvd.allreduce(mine(), op=hvd.Min, process_set=one), [min(values)]),
        (lambda: hvd.allreduce(mine(), op=hvd.Max, process_set=one), [max(values)]),
        (lambda: hvd.allreduce(mine(), op=hvd.Product, process_set=one), [np.prod(values)]),
        (lambda: hvd.allreduce(mine(), op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0, process_set=one),
         [6 * sum(values)]),
        (lambda: tf.convert_to_tensor(hvd.allreduce(
            tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([1, 2])), op=hvd.Sum, process_set=one)),
         [[count, count]]),
        (lambda: hvd.grouped_allreduce([mine(), rows()[:1]], op=hvd.Sum, process_set=one)[1], [10 * sum(ranks)]),
        (lambda: hvd.allgather(tf.fill([RANK + 1], RANK), process_set=one),
         [rank for rank in ranks for _ in range(rank + 1)]),
        (lambda: hvd.grouped_allgather([mine(), rows()[:1]], process_set=one)[1], [10 * rank for rank in ranks]),
        (lambda: hvd.broadcast(mine(), ranks[-1], process_set=one), values[-1:]),
        (lambda: hvd.alltoall(rows(), process_set=one), [10 * rank + place for rank in ranks]),
        (lambda: hvd.alltoall(rows(), [1] * count, process_set=one)[1], [1] * count),
        (lambda: hvd.reducescatter(rows(), op=hvd.Sum, process_set=one), [10 * sum(ranks) + count * place]),
        (lambda: hvd.grouped_reducescatter([rows(), rows()], op=hvd.Max, process_set=one)[1], [10 * ranks[-1] + place]),
        (lambda: hvd.size_op(one.process_set_id), count),
        (lambda: hvd.process_set_included_op(one.process_set_id), 1),
    ]


def eager_operations(one):
    ranks = one.ranks
    variable, other = tf.Variable(mine()), tf.Variable(mine())
    hvd.broadcast_variables([variable], ranks[0], process_set=one)
    hvd.broadcast_([other], ranks[-1], process_set=one)
    assert (float(variable[0]), float(other[0])) == (ranks[0] + 1, ranks[-1] + 1)
    assert hvd.broadcast_object(RANK, ranks[-1], process_set=one) == ranks[-1]
    assert hvd.broadcast_object_fn(ranks[0], process_set=one)(RANK) == ranks[0]
    assert hvd.allgather_object(str(RANK), process_set=one) == [str(rank) for rank in ranks]


def gradients(one):
    """Of operations, by a tape, and by an optimizer: each step is the mean over the set."""
    ranks = one.ranks
    mean = np.mean([rank + 1 for rank in ranks])
    x = tf.ones([len(ranks)])
    for function in (lambda: hvd.allreduce(x, process_set=one), lambda: hvd.allgather(x, process_set=one),
                     lambda: hvd.reducescatter(x, process_set=one, op=hvd.Sum),
                     lambda: hvd.alltoall(x, process_set=one), lambda: hvd.broadcast(x, ranks[0], process_set=one)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = function()
        assert tape.gradient(result, x).shape == x.shape
    variable = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        loss = variable * (RANK + 1.0)
    found = hvd.DistributedGradientTape(tape, process_set=one).gradient(loss, [variable])
    np.testing.assert_allclose(found[0], [mean])
    weight = tf.keras.Variable([1.0]) if hasattr(tf.keras, "Variable") else tf.Variable([1.0])
    optimizer = keras_hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), process_set=one)
    if hasattr(tf.keras, "Variable"):
        optimizer.apply([tf.constant([RANK + 1.0])], [weight])
    else:
        optimizer.minimize(lambda: weight * (RANK + 1.0), [weight])
    np.testing.assert_allclose(np.asarray(weight), [1 - mean])


class ProcessSets(unittest.TestCase):
    def setUp(self):
        hvd.init()

    def tearDown(self):
        hvd.shutdown()

    def everything_in(self, one):
        if RANK not in one.ranks:
            self.assertFalse(one.included())
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, f"does not have rank {RANK}"):
                hvd.allreduce(mine(), process_set=one)
            with self.assertRaisesRegex(hvd.HorovodInternalError, f"does not have rank {RANK}"):
                hvd.allgather_object(1, process_set=one)
            self.assertEqual(int(hvd.process_set_included_op(one.process_set_id)), 0)
            return
        self.assertEqual((one.rank(), one.size(), one.included()), (one.ranks.index(RANK), len(one.ranks), True))
        for index, (function, expected) in enumerate(operations(one)):
            for way, run in WAYS.items():
                with self.subTest(ranks=one.ranks, operation=index, way=way):
                    np.testing.assert_allclose(run(function), expected)
        with self.assertRaisesRegex(ValueError, "none of the ranks"):
            hvd.broadcast(mine(), SIZE, process_set=one)
        eager_operations(one)
        gradients(one)

    def test_given_to_init(self):
        hvd.shutdown()
        given = [hvd.ProcessSet(ranks) for ranks in LISTS]
        hvd.init(process_sets=given)
        self.assertEqual([one.process_set_id for one in given], list(range(1, len(LISTS) + 1)))
        for one in given:
            self.everything_in(one)
        self.everything_in(hvd.global_process_set)
        with self.assertRaisesRegex(ValueError, "duplicate"):
            hvd.add_process_set(LISTS[0])

    def test_added_and_removed(self):
        """A set that was removed is refused at once, also by functions that were traced with it; other sets stay."""
        kept = hvd.add_process_set(LISTS[-1])
        for ranks in LISTS[:-1]:
            one = hvd.add_process_set(ranks)
            traced = tf.function(lambda one=one: hvd.allgather(mine(), process_set=one))
            if one.included():
                np.testing.assert_array_equal(traced(), [rank + 1 for rank in ranks])
            self.everything_in(one)
            self.assertTrue(hvd.remove_process_set(one))
            self.assertFalse(hvd.remove_process_set(one))
            self.assertIsNone(one.size())
            with self.assertRaisesRegex(ValueError, "not been registered, or was removed"):
                hvd.allreduce(mine(), process_set=one)
            if RANK in ranks:
                with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "was it closed"):
                    traced()
        self.everything_in(kept)
        again = hvd.add_process_set(LISTS[0])
        self.everything_in(again)

    def test_lists_that_differ(self):
        """An error on all ranks, and the job goes on."""
        with self.assertRaisesRegex(hvd.HorovodInternalError, r"process set \[[01]\]"):
            hvd.add_process_set([min(RANK, 1)])
        self.everything_in(hvd.add_process_set([0]))
        self.everything_in(hvd.global_process_set)

    def test_in_turns(self):
        """Ranks are in several sets, whose operations do not disturb each other."""
        sets = [hvd.add_process_set(ranks) for ranks in LISTS] + [hvd.global_process_set]
        own = [one for one in sets if one.included()]

        @tf.function
        def traced(x):
            for one in own:
                x = hvd.allreduce(x, op=hvd.Sum, process_set=one, name="x") + hvd.allgather(x, process_set=one)[0] * 0
            return x
        expected = np.ones(SIZE)
        for one in sets:
            expected[one.ranks] = expected[one.ranks].sum()
        for _ in range(3):
            np.testing.assert_allclose(traced(tf.ones([1])), [expected[RANK]])


if __name__ == "__main__":
    unittest.main()
