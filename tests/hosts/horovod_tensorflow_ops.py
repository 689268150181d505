"""The operations of dtrain.horovod.tensorflow: eager, in tf.function, in graphs of TensorFlow 1, with gradients; names,
errors, joining, process sets. Run by test_horovod_tensorflow.py with two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
import pathlib
import random
import threading
import unittest

import numpy as np
import tensorflow as tf

import dtrain.horovod.keras as keras_hvd
import dtrain.horovod.tensorflow as hvd
import dtrain.horovod.tensorflow.keras as tf_keras_hvd

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "HOROVOD.md"
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
RANKS = range(SIZE)
TOTAL = sum(rank + 1 for rank in RANKS)
TYPES = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32,
         tf.int64, tf.uint64, tf.complex64, tf.complex128]


class Case(unittest.TestCase):
    def assert_same(self, tensor, expected):
        np.testing.assert_array_equal(tf.convert_to_tensor(tensor).numpy(), np.asarray(expected))

    def fails(self, kind, pattern, function, *arguments, **named):
        with self.assertRaisesRegex(kind, pattern):
            function(*arguments, **named)


class Allreduce(Case):
    def test_types_and_ops(self):
        for dtype in TYPES:
            with self.subTest(dtype=dtype.name):
                self.assert_same(hvd.allreduce(tf.cast([RANK + 1, 2], dtype), op=hvd.Sum), [TOTAL, 2 * SIZE])
        for op, expected in ((hvd.Average, TOTAL / SIZE), (hvd.Min, 1), (hvd.Max, SIZE),
                             (hvd.Product, np.prod([rank + 1 for rank in RANKS]))):
            self.assert_same(hvd.allreduce(tf.constant([RANK + 1.0]), op=op), [expected])
        same = tf.constant([1.0, -2.0])
        np.testing.assert_allclose(hvd.allreduce(same, op=hvd.Adasum), same, rtol=1e-6)

    def test_factors_and_compression(self):
        given = tf.constant([RANK + 1, 5])
        self.assert_same(hvd.allreduce(given, op=hvd.Sum, prescale_factor=0.5), [sum((r + 1) // 2 for r in RANKS), 2 * SIZE])
        self.assert_same(hvd.allreduce(tf.constant([3.0]), op=hvd.Sum, postscale_factor=0.5), [1.5 * SIZE])
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            found = hvd.allreduce(tf.constant([RANK + 1.0]), compression=compression, op=hvd.Sum)
            self.assertEqual((found.dtype, float(found[0])), (tf.float32, TOTAL))

    def test_groups_and_slices(self):
        slices = tf.IndexedSlices(tf.ones([RANK + 1, 2]), tf.range(RANK + 1), tf.constant([4, 2]))
        found = hvd.grouped_allreduce([tf.ones([2]), slices, tf.ones([], tf.int64)], op=hvd.Sum, name="mixed")
        self.assert_same(found[0], [SIZE, SIZE])
        self.assert_same(tf.convert_to_tensor(found[1])[0], [SIZE, SIZE])
        self.assert_same(found[2], SIZE)
        self.fails(NotImplementedError, "sparse_as_dense", hvd.allreduce, slices, op=hvd.Max)

    def test_gradients(self):
        """Of a sum: the sum of the gradients. Of rows: those of this rank, of the mean."""
        x = tf.fill([2 * SIZE, 3], RANK + 1.0)
        weight = tf.constant(RANK + 1.0)
        for function, expected in (
                (lambda x: hvd.allreduce(x, op=hvd.Sum), TOTAL), (hvd.allreduce, TOTAL / SIZE),
                (hvd.allgather, TOTAL / SIZE), (lambda x: hvd.broadcast(x, 1), TOTAL / SIZE if RANK == 1 else 0),
                (lambda x: hvd.reducescatter(x, op=hvd.Sum), None), (hvd.alltoall, None)):
            for run in (function, tf.function(function)):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    loss = tf.reduce_sum(run(x)) * weight
                gradient = tape.gradient(loss, x)
                if expected is not None:
                    np.testing.assert_allclose(gradient, np.full([2 * SIZE, 3], expected), rtol=1e-6)
        self.assert_same(gradient[::2, 0], [rank + 1 for rank in RANKS])  # of alltoall()


class Rows(Case):
    def test_allgather(self):
        first, second = hvd.grouped_allgather([tf.fill([RANK, 2], RANK), tf.constant([RANK > 0])])
        self.assert_same(first[:, 0], [rank for rank in RANKS for _ in range(rank)])
        self.assert_same(second, [rank > 0 for rank in RANKS])

    def test_alltoall(self):
        found, received = hvd.alltoall(tf.fill([10], RANK), [1] * (SIZE - 1) + [2])
        self.assert_same(received, [1 + (RANK == SIZE - 1)] * SIZE)
        self.assert_same(tf.unique(found)[0], list(RANKS))
        self.assert_same(hvd.alltoall(tf.range(SIZE) + 10 * RANK), [10 * rank + RANK for rank in RANKS])
        self.fails(tf.errors.InvalidArgumentError, "no multiple", hvd.alltoall, tf.zeros([SIZE + 1]))
        self.fails(tf.errors.InvalidArgumentError, "numbers for", hvd.alltoall, tf.zeros([9]), [1] * (SIZE + 1))

    def test_reducescatter(self):
        rows = tf.range(SIZE + 1)
        found = hvd.reducescatter(rows, op=hvd.Sum)
        self.assert_same(found, [0, SIZE] if RANK == 0 else [(RANK + 1) * SIZE])
        pair = hvd.grouped_reducescatter([tf.ones([SIZE]), tf.ones([SIZE, 2])], op=hvd.Average, postscale_factor=3.0)
        self.assert_same(pair[1], [[3, 3]])
        self.fails(NotImplementedError, "op must be", hvd.reducescatter, rows, op=hvd.Adasum)

    def test_broadcasts(self):
        self.assert_same(hvd.broadcast(tf.constant([RANK == 1, True]), 1), [True, True])
        self.fails(ValueError, "none of the ranks", hvd.broadcast, tf.ones([1]), SIZE)
        variables = [tf.Variable([RANK, 7]), tf.Variable(RANK + 0.5)]
        hvd.broadcast_variables(variables, 1)
        self.assert_same(variables[0], [1, 7])
        variables[1].assign(RANK)
        self.assert_same(hvd.broadcast_(variables, 1)[1], 1)
        self.assert_same(variables[1], 1)

    def test_objects(self):
        self.assertEqual(hvd.broadcast_object({"rank": RANK}, 1), {"rank": 1})
        self.assertEqual(hvd.broadcast_object_fn(0)([RANK]), [0])
        self.assertEqual(hvd.allgather_object("x" * RANK), ["x" * rank for rank in RANKS])


class Names(Case):
    def test_any_order(self):
        """Each rank runs the same operations in an order of its own, from two threads."""
        for turn in range(3):
            order = list(range(30))
            random.Random(100 * RANK + turn).shuffle(order)
            found = {}

            def run(part, found=found):
                for index in part:  # ranks have at most three pairs in flight
                    found[index] = hvd.allreduce(tf.fill([index + 1], RANK + 1.0), name=f"x{index}", op=hvd.Sum)
            for begin in range(0, 30, 3):
                part = [index for index in order if begin <= index < begin + 3]
                threads = [threading.Thread(target=run, args=([index],)) for index in part]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            for index in range(30):
                self.assert_same(found[index], [TOTAL] * (index + 1))

    def test_mismatches(self):
        """All ranks get the error, and go on."""
        first = RANK == 0
        error = tf.errors.FailedPreconditionError
        both = r"rank 0 has float32\[2,3\], average; rank 1 has "
        self.fails(error, r"allreduce\.a.*" + both + r"float32\[3,2\], average", hvd.allreduce,
                   tf.ones([2, 3] if first else [3, 2]), name="a")
        self.fails(error, both + r"float64\[2,3\], average", hvd.allreduce,
                   tf.ones([2, 3], tf.float32 if first else tf.float64), name="b")
        self.fails(error, "sum", hvd.allreduce, tf.ones([2, 3]), op=hvd.Average if first else hvd.Sum, name="c")
        self.fails(error, "prescale_factor 3.0", hvd.allreduce, tf.ones([2, 3]), name="d",
                   prescale_factor=1.0 if first else 3.0)
        self.fails(error, "rank 0: all-gather.*rank 1: broadcast", *((hvd.allgather, tf.ones([2])) if first else (
            hvd.broadcast, tf.ones([2]), 0)))
        for _ in range(2):
            self.assert_same(hvd.allreduce(tf.ones([2]), name="a"), [1, 1])
        self.fails(error, r"allreduce\.a", hvd.allreduce, tf.ones([2] if first else [2, 1]), name="a")
        self.assert_same(hvd.allreduce(tf.ones([2]), name="a"), [1, 1])

    def test_long_name(self):
        self.assert_same(hvd.allreduce(tf.ones([1]), name="n" * 1000, op=hvd.Sum), [SIZE])

    def test_in_function_and_loop(self):
        @tf.function
        def traced(x):
            for _ in tf.range(5):
                first, second = hvd.grouped_allreduce([x, x * 2])
                x = (first + second) / 3 + hvd.allreduce(x) * 0
            return x, hvd.size_op(), hvd.rank_op(), hvd.local_size_op(), hvd.process_set_included_op()
        for shape in ([2], [3, 1]):
            found = traced(tf.fill(shape, RANK + 1.0))
            np.testing.assert_allclose(found[0], np.full(shape, TOTAL / SIZE), rtol=1e-5)
            self.assertEqual([int(one) for one in found[1:]], [SIZE, RANK, hvd.local_size(), 1])

    def test_graph_of_tensorflow_1(self):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            variable = tf.compat.v1.get_variable("v", initializer=tf.constant([float(RANK)]))
            mean = hvd.allreduce(variable)
            copy = hvd.broadcast_global_variables(1)
            session.run(tf.compat.v1.global_variables_initializer())
            self.assertEqual(session.run(mean), sum(RANKS) / SIZE)
            session.run(copy)
            self.assertEqual(session.run(variable), 1)
        self.fails(RuntimeError, "broadcast_variables", hvd.broadcast_global_variables, 0)


class Job(Case):
    def test_process_sets(self):
        own = [hvd.add_process_set([rank]) for rank in RANKS][RANK]
        pair = hvd.add_process_set(hvd.ProcessSet([0, 1])) if SIZE > 2 else hvd.global_process_set
        self.assert_same(hvd.allreduce(tf.ones([1]) * RANK, process_set=own, op=hvd.Sum), [RANK])
        self.assertEqual(int(hvd.size_op(own.process_set_id)), 1)
        if pair.included():
            self.assert_same(hvd.allgather(tf.constant([RANK]), process_set=pair), [0, 1])
        strange = hvd.ProcessSet([0])
        self.fails(ValueError, "not been registered", hvd.allreduce, tf.ones([1]), process_set=strange)
        strange.process_set_id = own.process_set_id + (1 if RANK == 0 else -1)
        self.fails(tf.errors.InvalidArgumentError, "does not have rank", hvd.allreduce, tf.ones([1]),
                   process_set=strange)

    def test_join(self):
        """Rank r has r + 1 batches; the last is the one that joins last. A name is known when others join, another is
        new."""
        @tf.function
        def known(x):
            return hvd.allreduce(x, name="known", op=hvd.Sum)
        for _ in range(2):
            for batch in range(RANK + 1):
                there = [rank + 1 for rank in RANKS if rank >= batch]
                self.assert_same(known(tf.constant([RANK + 1.0])), [sum(there)])
                self.assert_same(hvd.allreduce(tf.ones([2]), name=f"new {batch}", op=hvd.Sum), [len(there)] * 2)
            self.assertEqual(int(hvd.join()), SIZE - 1)

    def test_init_again(self):
        """What was traced before goes on."""
        @tf.function
        def traced(x):
            return hvd.allreduce(x, op=hvd.Sum), hvd.allgather(x)
        for _ in range(2):
            total, rows = traced(tf.constant([RANK + 1.0]))
            self.assert_same(total, [TOTAL])
            self.assert_same(rows, [rank + 1 for rank in RANKS])
            hvd.shutdown()
            self.assertFalse(hvd.is_initialized())
            hvd.init()

    def test_what_it_knows(self):
        self.assertTrue(hvd.gloo_built() and hvd.mpi_threads_supported() and hvd.is_homogeneous())
        self.assertFalse(hvd.mpi_built() or hvd.nccl_built() or hvd.cuda_built())
        self.assertEqual((int(hvd.rank_op()), int(hvd.local_rank_op())), (RANK, hvd.local_rank()))
        self.assertEqual([hvd.check_num_rank_power_of_2(number) for number in (0, 1, 2, 3, 8)],
                         [False, True, True, False, True])
        self.assertEqual(int(hvd.process_set_included_op(99)), -2)


class Page(Case):
    def test_its_tables_have_every_name(self):
        """Rows of tables begin with names in backquotes."""
        listed, section = {}, ""
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                section = line.lstrip("# ")
            if line.startswith("| `"):
                listed.setdefault(section, set()).update(line.split("|")[1].split("`")[1::2])
        job, tensorflow, of_keras = (listed[name] for name in ("The job, in all packages", "TensorFlow", "Keras"))
        elsewhere = {"Average", "Sum", "Min", "Max", "Product", "Adasum", "Compression", "elastic", "callbacks"}
        for names, made in ((job | tensorflow, hvd), (job | of_keras, keras_hvd), (job | of_keras, tf_keras_hvd)):
            self.assertEqual(sorted(set(made.__all__) - names - elsewhere), [])
        for name in tensorflow:
            self.assertTrue(attribute(hvd, name), name)
        for name in listed["A data service"]:
            module, _, attribute_name = name.rpartition(".")
            if module:
                found = importlib.import_module(f"dtrain.horovod.tensorflow.data.{module}")
                self.assertIn(attribute_name, found.__all__)
        for name in of_keras:
            self.assertTrue(attribute(keras_hvd, name) and attribute(tf_keras_hvd, name), name)


def attribute(module, path):
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


if __name__ == "__main__":
    unittest.main()
