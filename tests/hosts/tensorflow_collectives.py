"""The collectives of dtrain.tensorflow against naive references: eager, in tf.function, in graphs of TensorFlow 1, with
gradients. Run by test_tensorflow.py with two and three ranks.

SPDX-License-Identifier: Apache-2.0
"""
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import dtrain
import dtrain.tensorflow as dt

world = dt.init()
RANK, SIZE = world.rank, world.size
RANKS = range(SIZE)
NUMBERS = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32,
           tf.int64, tf.uint64, tf.complex64, tf.complex128]


def mine(rank=RANK, shape=(2, 3), dtype=tf.float32):
    count = int(np.prod(shape))
    return tf.cast(tf.reshape(tf.range(count) % 5 + rank, shape), dtype)


def total(shape=(2, 3), dtype=tf.float32):
    values = [np.arange(int(np.prod(shape))).reshape(shape) % 5 + rank for rank in RANKS]
    return np.sum(values, 0).astype(dtype.as_numpy_dtype)


class Case(unittest.TestCase):
    def assert_same(self, tensor, expected):
        np.testing.assert_array_equal(tf.convert_to_tensor(tensor).numpy(), np.asarray(expected))


class Allreduce(Case):
    def test_types(self):
        for dtype in NUMBERS:
            with self.subTest(dtype=dtype.name):
                self.assert_same(dt.allreduce(mine(dtype=dtype)), total(dtype=dtype))

    def test_ops(self):
        for op, expected in (("sum", sum(RANKS)), ("avg", sum(RANKS) / SIZE), ("min", 0), ("max", SIZE - 1),
                             ("prod", np.prod([rank + 1 for rank in RANKS]))):
            with self.subTest(op=op):
                value = tf.constant([RANK + (op == "prod")], tf.float64)
                self.assert_same(dt.allreduce(value, op), [expected])

    def test_structure_of_many(self):
        """Sizes around those at which tensors travel unpacked, and blocks end."""
        sizes = (0, 1, 7, 1000, 32768, 32769, 40000, 1100000, 3)
        given = {"a": [mine(shape=(size,)) for size in sizes], "b": (mine(dtype=tf.int64), mine(shape=()))}
        result = dt.allreduce(given)
        for size, tensor in zip(sizes, result["a"]):
            self.assert_same(tensor, total((size,)))
        self.assert_same(result["b"][0], total(dtype=tf.int64))
        self.assert_same(result["b"][1], total(()))

    def test_inputs_stay(self):
        """TensorFlow forwards the memory of an input only if nobody else has it."""
        given = mine(shape=(50000,))
        dt.allreduce(given)
        self.assert_same(given, mine(shape=(50000,)))

    def test_factors(self):
        self.assert_same(dt.allreduce(mine(), prescale=0.5, postscale=4.0), 2 * total())

        @tf.function
        def scaled(factor):
            return dt.allreduce(mine(), prescale=factor)
        for factor in (1.0, 0.0, 3.0):
            self.assert_same(scaled(tf.constant(factor, tf.float64)), factor * total())

    def test_slices(self):
        slices = tf.IndexedSlices(tf.ones([RANK + 1, 2]) * (RANK + 1), tf.range(RANK + 1), tf.constant([4, 2]))
        for op, divisor in (("sum", 1), ("avg", SIZE)):
            dense = np.zeros((4, 2), np.float32)
            for rank in RANKS:
                dense[:rank + 1] += rank + 1
            found = tf.convert_to_tensor(dt.allreduce(slices, op))
            np.testing.assert_allclose(found, dense / divisor, rtol=1e-6)

    def test_in_function(self):
        """Twice with two shapes: traced again, and in the same order on all ranks."""
        @tf.function
        def both(x):
            first, second = dt.allreduce([x, x * 2])
            return dt.broadcast(first + second, SIZE - 1), dt.allreduce(second)
        for shape in ((2, 3), (5, 1)):
            for _ in range(3):
                first, second = both(mine(shape=shape))
                self.assert_same(first, 3 * total(shape))
                self.assert_same(second, 2 * SIZE * total(shape))

    def test_shapes_are_known(self):
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def traced(x):
            self.assertEqual(dt.allreduce(x).shape.as_list(), [None, 4])
            self.assertEqual(dt.allgather(x).shape.as_list(), [None, 4])
            return x
        traced(mine(shape=(2, 4)))

    def test_loop_in_function(self):
        @tf.function
        def loop():
            x = tf.constant(1.0)
            for _ in tf.range(10):
                x = dt.allreduce(x, "avg") + 1.0
            return x
        self.assert_same(loop(), 11.0)

    def test_graph_of_tensorflow_1(self):
        """Nothing but the library orders these ops: the executor could start them in any order."""
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            results = [dt.allreduce(mine(shape=(3,)) * i) for i in range(20)]
            for i, result in enumerate(session.run(results)):
                np.testing.assert_array_equal(result, i * total((3,)))

    def test_gradient(self):
        for op, divisor in (("sum", 1), ("avg", SIZE)):
            with self.subTest(op=op), tf.GradientTape() as tape:
                x = mine()
                tape.watch(x)
                y = tf.reduce_sum(dt.allreduce(x, op) * (RANK + 1))
            expected = sum(rank + 1 for rank in RANKS) / divisor
            self.assert_same(tape.gradient(y, x), tf.fill((2, 3), np.float32(expected)))

    def test_no_gradient_of_max(self):
        with tf.GradientTape() as tape:
            x = mine()
            tape.watch(x)
            y = dt.allreduce(x, "max")
        with self.assertRaisesRegex(LookupError, "there is no gradient of MAX"):
            tape.gradient(y, x)


class Rows(Case):
    def test_allgather(self):
        for dtype in (*NUMBERS, tf.bool):
            expected = np.concatenate([mine(rank, (rank, 2), dtype).numpy() for rank in RANKS])
            self.assert_same(dt.allgather(mine(shape=(RANK, 2), dtype=dtype)), expected)
        several = dt.allgather([mine(shape=(1,)), mine(shape=(2 + RANK, 1, 2))])
        self.assert_same(several[0], np.arange(SIZE))
        self.assert_same(several[1], np.concatenate([mine(rank, (2 + rank, 1, 2)) for rank in RANKS]))

    def test_allgather_gradient(self):
        @tf.function
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = dt.allgather(x)
                loss = tf.reduce_sum(y * tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), tf.float32))
            return tape.gradient(loss, x)
        before = sum(rank + 1 for rank in range(RANK))
        self.assert_same(gradient(mine(shape=(RANK + 1,))), SIZE * (before + np.arange(RANK + 1)))

    def test_broadcast(self):
        for root in RANKS:
            many = dt.broadcast([mine(), mine(dtype=tf.int8), mine(shape=(60000,)), tf.constant(RANK > 0),
                                 mine(shape=(0,))], root)
            self.assert_same(many[0], mine(root))
            self.assert_same(many[1], mine(root, dtype=tf.int8))
            self.assert_same(many[2], mine(root, (60000,)))
            self.assert_same(many[3], root > 0)

    def test_broadcast_gradient(self):
        with tf.GradientTape() as tape:
            x = mine()
            tape.watch(x)
            y = dt.broadcast(x, SIZE - 1) * (RANK + 1.0)
        expected = sum(rank + 1 for rank in RANKS) if RANK == SIZE - 1 else 0
        self.assert_same(tape.gradient(y, x), np.full((2, 3), expected))

    def test_reducescatter(self):
        for rows in (SIZE * 2, SIZE * 2 + 1, 1, 0):
            parts = [rows // SIZE + (rank < rows % SIZE) for rank in RANKS]
            begin = sum(parts[:RANK])
            expected = total((rows, 3))[begin:begin + parts[RANK]]
            self.assert_same(dt.reducescatter(mine(shape=(rows, 3))), expected)
        given = [0] * (SIZE - 1) + [5]
        self.assert_same(dt.reducescatter(mine(shape=(5, 2)), "avg", rows=given),
                         total((5, 2)) / np.float32(SIZE) if RANK == SIZE - 1 else np.zeros((0, 2)))

    def test_reducescatter_gradient(self):
        for op, divisor in (("sum", 1), ("avg", SIZE)):
            with tf.GradientTape() as tape:
                x = mine(shape=(SIZE + 1,))
                tape.watch(x)
                y = dt.reducescatter(x, op) * (RANK + 1.0)
            expected = [1.0, 1.0] + [rank + 1.0 for rank in RANKS][1:]
            np.testing.assert_allclose(tape.gradient(y, x), np.array(expected) / divisor, rtol=1e-6)

    def test_alltoall(self):
        got, received = dt.alltoall(mine(shape=(SIZE * 2, 2)))
        self.assert_same(got, np.concatenate([mine(rank, (SIZE * 2, 2))[RANK * 2:RANK * 2 + 2] for rank in RANKS]))
        self.assert_same(received, [2] * SIZE)

    def test_alltoall_splits(self):
        splits = [(RANK + to) % 3 for to in RANKS]
        given = mine(shape=(sum(splits),))
        got, received = dt.alltoall(given, splits)
        parts = []
        for rank in RANKS:
            theirs = [(rank + to) % 3 for to in RANKS]
            begin = sum(theirs[:RANK])
            parts.append(mine(rank, (sum(theirs),)).numpy()[begin:begin + theirs[RANK]])
        self.assert_same(got, np.concatenate(parts))
        self.assert_same(received, [len(part) for part in parts])

    def test_alltoall_gradient(self):
        splits = [RANK + 1] * SIZE
        with tf.GradientTape() as tape:
            x = mine(shape=((RANK + 1) * SIZE,))
            tape.watch(x)
            y = dt.alltoall(x, splits)[0] * (RANK + 1.0)
        self.assert_same(tape.gradient(y, x), np.repeat(np.arange(SIZE) + 1.0, RANK + 1))

    def test_barrier(self):
        self.assertIsNone(dt.barrier())


class Others(Case):
    def test_queue(self):
        """Each rank runs the ops in an order of its own."""
        queue = world.gradients()
        names = [f"tensor {i}" for i in range(6)]
        order = names[RANK:] + names[:RANK]

        @tf.function
        def reduce():
            done = {}
            for name in order:
                done[name] = name
            return {name: dt.submit(mine() * names.index(name), name, queue) for name in done} if SIZE == 1 else \
                dict(zip(order, dt.submit([mine() * names.index(name) for name in order], order, queue)))
        for _ in range(3):
            for name, value in reduce().items():
                np.testing.assert_allclose(value, names.index(name) * total() / SIZE, rtol=1e-6)
        queue.close()

    def test_variables(self):
        variables = [tf.Variable(mine()), tf.Variable(RANK), tf.Variable(str(RANK))]
        dt.broadcast_variables(variables, SIZE - 1)
        self.assert_same(variables[0], mine(SIZE - 1))
        self.assertEqual(int(variables[1]), SIZE - 1)
        self.assertEqual(variables[2].numpy(), str(RANK).encode())

    def test_tape(self):
        weight, other = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
        with dt.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = tf.reduce_sum(weight * (RANK + 1.0))
        found = tape.gradient(loss, {"w": weight, "o": other})
        self.assert_same(found["w"], np.full(2, sum(rank + 1 for rank in RANKS) / SIZE))
        self.assertIsNone(found["o"])

    def test_groups(self):
        own = world.split(RANK % 2)
        self.assert_same(dt.allreduce(tf.constant(1), comm=own), own.size)
        own.close()

    def test_records(self):
        """Files are written and read by TensorFlow and by dtrain; ranks have the same shares."""
        with tempfile.TemporaryDirectory() as own:
            letters = np.frombuffer(own.encode().ljust(200), np.uint8)
            folder = dt.broadcast(letters).numpy().tobytes().decode().strip()
            texts = [[f"{file} {record}".encode() for record in range(5)] for file in range(SIZE)]
            paths = [f"{folder}/{file}" for file in range(SIZE)]
            if RANK == 0:
                for file, path in enumerate(paths):
                    with dtrain.RecordWriter(path) if file % 2 else tf.io.TFRecordWriter(path) as writer:
                        for text in texts[file]:
                            (writer.append if file % 2 else writer.write)(text)
            dt.barrier()
            for given in (paths, paths[:1]):
                expected = texts[RANK] if given == paths else texts[0][RANK::SIZE]
                self.assertEqual([record.numpy() for record in dt.records(given)], expected)
                with dtrain.RecordReader(given, shard=RANK, shards=SIZE) as reader:
                    self.assertEqual([bytes(record) for record in reader], expected)
            dt.barrier()
        with self.assertRaisesRegex(ValueError, "there are no files"):
            dt.records([])

    def test_shard(self):
        data = tf.data.Dataset.range(SIZE * 2 + 1)
        self.assertEqual([int(x) for x in dt.shard(data)], [RANK, RANK + SIZE])


class Errors(Case):
    def test_different_shapes(self):
        """All ranks get both sides, and can go on."""
        given = [tf.zeros([4]), tf.zeros([6])] if RANK == 0 else [tf.zeros([6]), tf.zeros([4])]
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                    r"rank 0: all-reduce \(sum\) of float32\[4\], float32\[6\]; rank 1: .*\[6\]"):
            dt.allreduce(given)
        self.assert_same(dt.allreduce(mine()), total())

    def test_different_shapes_later(self):
        """Also of a function that all ranks have run before; the communicator stays usable."""
        own = world.duplicate()

        @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
        def reduce(x, y):
            return dt.allreduce([x, y], comm=own)
        for _ in range(2):
            reduce(tf.zeros([4]), tf.zeros([6]))
        shown = r"float32\[4\], float32\[6\]" if RANK == 0 else r"float32\[6\], float32\[4\]"
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError, shown):
            reduce(tf.zeros([4 if RANK == 0 else 6]), tf.zeros([6 if RANK == 0 else 4]))
        for found in reduce(tf.ones([4]), tf.ones([6])):
            self.assert_same(found, tf.fill(found.shape, float(SIZE)))
        own.close()

    def test_different_ops(self):
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "rank 0: all-gather of .*; rank 1: barrier"):
            if RANK == 0:
                dt.allgather(mine())
            else:
                dt.barrier()
        self.assert_same(dt.allreduce(mine()), total())

    def test_different_types_in_function(self):
        @tf.function
        def reduce(x):
            return dt.allreduce(x)
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError, r"float32\[2,3\].*float64\[2,3\]"):
            reduce(mine(dtype=tf.float32 if RANK == 0 else tf.float64))
        self.assert_same(reduce(mine()), total())

    def test_wrong_splits(self):
        with self.assertRaisesRegex(tf.errors.OpError, "rank 1: .*splits: their sum is 1, not that of float32"):
            dt.alltoall(mine(shape=(SIZE,)), [1] * SIZE if RANK != 1 else [1] + [0] * (SIZE - 1))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "a scalar has no rows"):
            dt.allgather(tf.constant(1.0))
        self.assert_same(dt.allreduce(mine()), total())

    def test_late_rank(self):
        """A rank that does not come is named, and the limit is that of the call."""
        own = world.duplicate()
        if RANK == 0:
            with self.assertRaisesRegex(tf.errors.DeadlineExceededError, r"rank 0 of \d.*: .*"):
                dt.barrier(own, timeout=0.5)
        own.close()
        dt.barrier()

    def test_closed(self):
        own = world.duplicate()

        @tf.function
        def reduce():
            return dt.allreduce(tf.constant(1.0), comm=own)
        reduce()
        own.close()
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "is nothing in this process"):
            reduce()

    def test_arguments(self):
        with self.assertRaisesRegex(ValueError, "op: Op has no 'most'"):
            dt.allreduce(mine(), "most")
        with self.assertRaisesRegex(ValueError, f"root: {SIZE}; the ranks are 0 to"):
            dt.broadcast(mine(), SIZE)
        with self.assertRaisesRegex(TypeError, "a Communicator, Gradients or Table of dtrain is needed, not int"):
            dt.allreduce(mine(), comm=3)
        with self.assertRaisesRegex(ValueError, "already"):
            dt.DistributedOptimizer(dt.DistributedOptimizer(tf.keras.optimizers.SGD()))


if __name__ == "__main__":
    unittest.main(verbosity=1)
