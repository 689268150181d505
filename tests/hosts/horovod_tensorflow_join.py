"""join() of dtrain.horovod.tensorflow: what other ranks may do meanwhile, and the errors of what they may not. Run by
test_horovod_tensorflow.py with three ranks.

SPDX-License-Identifier: Apache-2.0
"""
import time
import unittest

import numpy as np
import tensorflow as tf

import dtrain.horovod.tensorflow as hvd
import dtrain.tensorflow as dt
from dtrain.horovod.common._job import current

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
LAST = SIZE - 1
NUMBERS = [0]
AT_ONCE = 20  #: seconds, far below the operations' timeout


def pair():
    return [tf.ones([SIZE]), tf.ones([SIZE, 2])]


def slices():
    return tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([2, 2]))


def variable():
    return tf.Variable(tf.ones([2]))


def barrier():
    waited = dt.barrier(current().engines[0].comm)
    with tf.control_dependencies([] if waited is None else [waited]):
        return tf.constant(0)


def extreme(op):
    """Each time with a name that ranks have not agreed on before."""
    NUMBERS.append(NUMBERS[-1] + 1)
    return hvd.allreduce(tf.ones([2]), op=op, name=f"new {NUMBERS[-1]}")


#: What needs all ranks. Each returns tensors.
OPERATIONS = {
    "all-gather": lambda: hvd.allgather(tf.ones([2])),
    "all-gather of float32.*, float32": lambda: hvd.grouped_allgather(pair()),
    "all-gather of float32.*, int32": lambda: hvd.allreduce(slices()),
    "broadcast from rank 1": lambda: hvd.broadcast(tf.ones([2]), 1),
    "all-to-all": lambda: hvd.alltoall(tf.ones([SIZE])),
    "all-to-all of int32": lambda: hvd.alltoall(tf.range(SIZE), [1] * SIZE)[0],
    "reduce-scatter": lambda: hvd.reducescatter(tf.ones([SIZE])),
    "reduce-scatter.* of float32.*, float32": lambda: hvd.grouped_reducescatter(pair(), op=hvd.Sum),
    "adasum": lambda: hvd.allreduce(tf.ones([2]), op=hvd.Adasum),
    "adasum.* of float32.*, float32": lambda: hvd.grouped_allreduce(pair(), op=hvd.Adasum),
    r"\(min\).*allreduce.new": lambda: extreme(hvd.Min),
    r"\(max\).*allreduce.new": lambda: extreme(hvd.Max),
    r"\(product\).*allreduce.new": lambda: extreme(hvd.Product),
    r"\(max\).*allreduce.known": lambda: hvd.allreduce(tf.ones([2]), op=hvd.Max, name="known"),
    r"\(max\).*allreduce.several": lambda: hvd.grouped_allreduce(pair(), op=hvd.Max, name="several"),
    "barrier": barrier,
}


def in_session(function):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(function())


#: How a program may run them.
WAYS = {"eager": lambda function: function(), "function": lambda function: tf.function(function)(),
        "graph": in_session}


class Join(unittest.TestCase):
    def refused(self, text, joined, function, kind=tf.errors.FailedPreconditionError):
        began = time.monotonic()
        with self.assertRaisesRegex(kind, f"(?s){text}.*{joined} (called join|joined).*; until all ranks have, only"):
            function()
        self.assertLess(time.monotonic() - began, AT_ONCE)

    def all_work(self):
        """All operations, each in all ways; the name "known" is known afterwards."""
        NUMBERS[:] = [max(hvd.allgather_object(NUMBERS[-1]))]
        for text, function in OPERATIONS.items():
            for way, run in WAYS.items():
                with self.subTest(operation=text, way=way):
                    run(function)

    def still_reduced(self, ranks):
        for way in WAYS.values():
            for name in ("sum", f"sum of {ranks}"):
                np.testing.assert_array_equal(
                    way(lambda name=name: hvd.allreduce(tf.ones([2]), op=hvd.Sum, name=name)), [ranks, ranks])

    def test_operations_that_need_all_ranks(self):
        """The last rank joins first, then rank 0."""
        for _ in range(2):
            self.all_work()
            if RANK != LAST:
                for text, function in OPERATIONS.items():
                    for way, run in WAYS.items():
                        with self.subTest(operation=text, way=way):
                            self.refused(text, f"rank {LAST} has", lambda run=run, function=function: run(function))
                self.still_reduced(SIZE - 1)
            if 0 < RANK < LAST:
                for text in ("all-gather", "adasum", "barrier"):
                    self.refused(text, f"ranks 0, {LAST} have", OPERATIONS[text])
                self.still_reduced(SIZE - 2)
            self.assertEqual(int(hvd.join()), 1)

    def test_variables_gradients_and_objects(self):
        x = tf.ones([SIZE])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found = {"average": hvd.broadcast(x, 0), "reduce-scatter": hvd.allgather(x),
                     "all-to-all": hvd.alltoall(x), "all-gather": hvd.reducescatter(x)}
        tape.gradient(found["average"], x)
        if RANK != LAST:
            for text, result in found.items():
                self.refused(text, f"rank {LAST} has", lambda result=result: tape.gradient(result, x))
            self.refused("broadcast", f"rank {LAST} has", lambda: hvd.broadcast_variables([variable()], 0))
            self.refused("broadcast", f"rank {LAST} has", lambda: hvd.broadcast_([variable()], 0))
            self.refused("broadcast_object", f"rank {LAST} has", lambda: hvd.broadcast_object(1, 0), ValueError)
            self.refused("allgather_object", f"rank {LAST} has", lambda: hvd.allgather_object(1), ValueError)
        hvd.join()
        self.assertEqual(hvd.allgather_object(RANK), list(range(SIZE)))
        with self.assertRaisesRegex(ValueError, "rank 0: broadcast_object from rank 0; rank 1: allgather_object"):
            hvd.allgather_object(1) if RANK else hvd.broadcast_object(1, 0)

    def test_in_function_and_graph(self):
        """join() itself."""
        for run in WAYS.values():
            if RANK == 0:
                self.refused("all-gather", f"ranks 1, {LAST} have", OPERATIONS["all-gather"])
                self.still_reduced(1)
            self.assertEqual(int(run(hvd.join)), 0)

    def test_process_sets(self):
        """The last rank joins, which is the second one in a set, and in another set not at all."""
        pair, others = hvd.add_process_set([1, LAST]), hvd.add_process_set([0, 1])
        operations = {
            "all-gather": lambda one: hvd.allgather(tf.ones([2]), process_set=one),
            "broadcast from rank 0": lambda one: hvd.broadcast(tf.ones([2]), 1, process_set=one),
            "all-to-all": lambda one: hvd.alltoall(tf.ones([2]), process_set=one),
            "reduce-scatter": lambda one: hvd.reducescatter(tf.ones([2]), process_set=one),
            r"\(max\).*allreduce.most": lambda one: hvd.allreduce(tf.ones([2]), op=hvd.Max, name="most",
                                                                 process_set=one),
        }
        for way, run in WAYS.items():
            for text, function in operations.items():
                for one in (pair, others):
                    if one.included():
                        run(lambda one=one, function=function: function(one))
            if RANK == 1:
                for text, function in operations.items():
                    with self.subTest(operation=text, way=way):
                        self.refused(text, "rank 1 has", lambda function=function: run(lambda: function(pair)))
                self.refused("allgather_object", "rank 1 has", lambda: hvd.allgather_object(1, process_set=pair),
                             ValueError)
                for name in ("sum", f"sum, {way}"):
                    for op, wanted in ((hvd.Sum, 4), (hvd.Average, 2)):
                        found = run(lambda name=name, op=op: hvd.allreduce(tf.fill([2], 4.0), op=op, name=name,
                                                                           process_set=pair))
                        np.testing.assert_array_equal(found, [wanted, wanted])
            if RANK != LAST:
                self.assertEqual(len(run(lambda: hvd.allgather(tf.ones([2]), process_set=others))), 4)
                self.refused("all-gather", f"rank {LAST} has", OPERATIONS["all-gather"])
            run(hvd.join)
        for one in (pair, others):
            if one.included():
                self.assertEqual(len(hvd.allgather(tf.ones([2]), process_set=one)), 4)
        traced = tf.function(hvd.join)
        for one in (pair, others):
            traced()
            self.assertTrue(hvd.remove_process_set(one))
        traced()

    def test_rank_that_leaves(self):
        """The others' join() ends with an error that names it, and init() works again. Rank 1's fails in a set that
        rank 0 is not in, too."""
        hvd.add_process_set([0, 1])
        hvd.add_process_set([1, LAST])
        if RANK == 0:
            time.sleep(0.5)
        else:
            with self.assertRaisesRegex(tf.errors.OpError, "(?s)join.*rank 0"):
                hvd.join()
        hvd.shutdown()
        hvd.init()
        self.all_work()


if __name__ == "__main__":
    unittest.main()
