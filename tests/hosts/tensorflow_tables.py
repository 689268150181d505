"""Tables as ops of TensorFlow, the Embedding layer, and ServerOptimizer, against naive references. Run by
test_tensorflow.py with two workers and two servers.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

import numpy as np
import tensorflow as tf

import dtrain.tensorflow as dt
from dtrain.tensorflow import tables

world = dt.init()
RANK, SIZE = world.rank, world.size
keras = tf.keras
BATCH, STEPS = 8, 6


class Case(unittest.TestCase):
    def assert_close(self, found, expected, tolerance=1e-5):
        np.testing.assert_allclose(tf.convert_to_tensor(found), np.asarray(expected), rtol=tolerance, atol=tolerance)

    def table(self, name, **settings):
        table = world.table(f"{self.id()}.{name}", **settings)
        self.addCleanup(table.close)
        return table


class Dense(Case):
    def test_eager_and_in_function(self):
        table = self.table("dense", length=20)

        @tf.function
        def use():
            tables.push(table, tf.ones([2, 3]), first=2)
            return tables.pull(table, [2, 5])
        for wrapped in (use, use.python_function):
            wrapped()
            dt.barrier()
        self.assert_close(tables.pull(table, [4, 5]), np.reshape([0, 0] + [2 * SIZE] * 6 + [0] * 12, (4, 5)))
        dt.barrier()
        if RANK == 0:
            tables.assign(table, np.arange(20))
        dt.barrier()
        self.assert_close(tables.pull(table, [3], first=17), [17, 18, 19])

    def test_clocks(self):
        table = self.table("bsp", length=3, dtype="f64", consistency="bsp")
        self.assert_close(tables.push_pull(table, tf.fill([3], tf.constant(RANK + 1.0, tf.float64))),
                          np.full(3, sum(range(1, SIZE + 1))))
        tables.push(table, tf.ones([3], tf.float64))
        tables.clock(table)
        self.assert_close(tables.pull(table, [1]), [sum(range(1, SIZE + 1)) + SIZE])

    def test_errors(self):
        dense, sparse = self.table("d", length=4), self.table("s", dim=2)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"float64\[4\] for a table of float32"):
            tables.push(dense, tf.zeros([4], tf.float64))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "push to table .* 5"):
            tables.push(dense, tf.zeros([5]))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "the table is sparse: use keys"):
            tables.push(sparse, tf.zeros([4]))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "the table is dense: it has no keys"):
            tables.pull_rows(dense, [1])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"float32\[3\] for keys int64\[2\] and rows of 2"):
            tables.push_rows(sparse, [1, 2], tf.zeros([3]))


class Rows(Case):
    def test_rows(self):
        table = self.table("rows", dim=2)
        ids = tf.constant([[5, 1 << 40], [5, 7]])
        tables.push_rows(table, ids, tf.ones([2, 2, 2]) * (RANK + 1.0))
        dt.barrier()
        total = sum(range(1, SIZE + 1))
        self.assert_close(tables.pull_rows(table, [5, 7, 8]), [[2 * total] * 2, [total] * 2, [0, 0]])
        self.assertEqual(tables.pull_rows(table, tf.zeros([0], tf.int32)).shape, (0, 2))
        dt.barrier()
        if RANK == 0:
            tables.assign_rows(table, [9], [[3.0, 4.0]])
            self.assert_close(tables.push_pull_rows(table, [9], [[1.0, 1.0]]), [[4, 5]])

    def test_embedding(self):
        """The same as a layer of Keras trained by plain gradient descent on the whole batches."""
        words = np.random.default_rng(2).integers(0, 50, (BATCH * SIZE * STEPS, 4))
        targets = words[:, :1] / 50
        start = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)

        def model_of(layer):
            return keras.Sequential([keras.layers.Input([4], dtype="int32"), layer, keras.layers.Flatten(),
                                     keras.layers.Dense(1, kernel_initializer="ones")])
        alone = model_of(keras.layers.Embedding(50, 3))
        alone.layers[0].set_weights([start])
        alone.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
        alone.fit(words, targets, batch_size=BATCH * SIZE, shuffle=False, verbose=0)

        layer = dt.Embedding(50, 3, name="words", gradient_scale=1 / SIZE, learning_rate=0.1, consistency="bsp")
        self.addCleanup(layer.table.close)
        if RANK == 0:
            tables.assign_rows(layer.table, range(50), start)
        dt.barrier()
        model = model_of(layer)
        model.compile(optimizer=dt.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
        ends = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: layer.clock())
        model.fit(words[RANK::SIZE], targets[RANK::SIZE], batch_size=BATCH, shuffle=False, verbose=0, callbacks=[ends])
        self.assert_close(tables.pull_rows(layer.table, range(50)), alone.layers[0].get_weights()[0], 1e-4)
        self.assert_close(model.layers[-1].get_weights()[0], alone.layers[-1].get_weights()[0], 1e-4)

    def test_wrong_ids(self):
        layer = dt.Embedding(10, 2, name="few")
        self.addCleanup(layer.table.close)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Embedding few: ids are below 10"):
            layer(tf.constant([10]))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Embedding few: ids"):
            tf.function(layer)(tf.constant([-1]))


class Servers(Case):
    def fit(self, optimizer, batch, mine, epochs=3, callbacks=()):
        random = np.random.default_rng(1)
        inputs = random.normal(size=(BATCH * SIZE * STEPS, 5)).astype(np.float32)
        targets = inputs[:, :1] * 2 - inputs[:, 1:2]
        if mine:
            inputs, targets = inputs[RANK::SIZE], targets[RANK::SIZE]
        keras.utils.set_random_seed(3 + (RANK if mine else 0))
        model = keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
        model.compile(optimizer=optimizer, loss="mse")
        history = model.fit(inputs, targets, batch_size=batch, epochs=epochs, shuffle=False, verbose=0,
                            callbacks=list(callbacks))
        return model, history.history["loss"]

    def test_in_step(self):
        """Momentum and Adam of the servers are those of Keras; workers begin with rank 0's values."""
        for rule, alone, place, more in (
                ("momentum", keras.optimizers.SGD(0.02, momentum=0.9), "together", {"momentum": 0.9}),
                ("adam", keras.optimizers.Adam(0.01), "round_robin", {"epsilon": 1e-7, "steps": "table"})):
            with self.subTest(rule):
                expected, _ = self.fit(alone, BATCH * SIZE, False)
                optimizer = dt.ServerOptimizer(rule, 0.02 if rule == "momentum" else 0.01, name=f"step.{rule}",
                                               consistency="bsp", place=place, **more)
                model, _ = self.fit(optimizer, BATCH, True)
                for found, wanted in zip(model.get_weights(), expected.get_weights()):
                    self.assert_close(found, wanted, 1e-3)
                places = {server for table in optimizer.tables for server in table.locate([0])}
                self.assertEqual(len(optimizer.tables), 1 if place == "together" else 4)
                self.assertEqual(len(places), 1 if place == "together" else 2)

    def test_asynchronous(self):
        optimizer = dt.ServerOptimizer("sgd", 0.02, name="async")
        _, losses = self.fit(optimizer, BATCH, True)
        self.assertLess(losses[-1], losses[0])
        dt.barrier()  # the rate is that of all workers
        optimizer.learning_rate = 0.5
        self.assertEqual(float(optimizer.learning_rate), 0.5)

    def test_quorum(self):
        """SyncReplicasOptimizer's K of N: nobody waits for the last worker, whose gradients are dropped."""
        optimizer = dt.ServerOptimizer("sgd", 0.02, name="quorum", consistency="quorum", quorum=1)
        _, losses = self.fit(optimizer, BATCH, True, epochs=100, callbacks=[optimizer.stop_at(40)])
        self.assertLess(losses[-1], losses[0])
        self.assertGreaterEqual(optimizer.updates, 40)
        dt.barrier()
        self.assertGreaterEqual(optimizer.dropped(), 0)

    def test_arguments(self):
        with self.assertRaisesRegex(ValueError, "place: 'anywhere'"):
            dt.ServerOptimizer(place="anywhere")


if __name__ == "__main__":
    unittest.main(verbosity=1)
