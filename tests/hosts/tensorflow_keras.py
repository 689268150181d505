"""Training by dtrain.tensorflow: what ranks learn together is what one process learns from the whole batches. Run by
test_tensorflow.py with two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import os
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import dtrain
import dtrain.tensorflow as dt

world = dt.init()
RANK, SIZE = world.rank, world.size
keras = tf.keras
BATCH, STEPS = 8, 6


def data():
    random = np.random.default_rng(1)
    inputs = random.normal(size=(BATCH * SIZE * STEPS, 5)).astype(np.float32)
    return inputs, (inputs[:, :1] * 2 - inputs[:, 1:2]).astype(np.float32)


def own_part(array):
    """Each rank has every SIZE-th row, so that all ranks' batches together are those of one process."""
    return array[RANK::SIZE]


def model_of(seed=7):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(16, "relu"), keras.layers.Dense(16),
                             keras.layers.Dense(1)])


def fitted(optimizer, inputs, targets, batch, seed=7, callbacks=(), **compiled):
    model = model_of(seed)
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"], **compiled)
    history = model.fit(inputs, targets, batch_size=batch, epochs=2, shuffle=False, verbose=0,
                        callbacks=list(callbacks))
    return model, history.history


def optimizers():
    yield lambda: keras.optimizers.SGD(0.05, momentum=0.9)
    yield lambda: keras.optimizers.Adam(0.01, clipnorm=1.0)


class Fit(unittest.TestCase):
    def assert_trained(self, model, expected, tolerance=2e-5):
        for found, wanted in zip(model.get_weights(), expected.get_weights()):
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)

    def test_equal_to_one_process(self):
        inputs, targets = data()
        for number, make in enumerate(optimizers()):
            with self.subTest(number):
                alone, _ = fitted(make(), inputs, targets, BATCH * SIZE)
                model, _ = fitted(dt.DistributedOptimizer(make()), own_part(inputs), own_part(targets), BATCH)
                self.assert_trained(model, alone)

    def test_broadcast_and_metrics(self):
        """Ranks begin with different weights; afterwards they have those of rank 0, and the same metrics."""
        inputs, targets = data()
        expected, _ = fitted(keras.optimizers.Adam(0.01), inputs, targets, BATCH * SIZE, seed=3)
        seen = []
        record = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(dict(logs)))
        model, _ = fitted(dt.DistributedOptimizer(keras.optimizers.Adam(0.01)), own_part(inputs),
                          own_part(targets), BATCH, seed=3 + RANK,
                          callbacks=[dt.BroadcastVariables(), dt.AverageMetrics(), record])
        self.assert_trained(model, expected)
        theirs = dt.broadcast(tf.constant([logs["mae"] for logs in seen], tf.float64))
        np.testing.assert_array_equal(theirs, [logs["mae"] for logs in seen])

    def test_several_steps_in_one_call(self):
        inputs, targets = data()
        alone, _ = fitted(keras.optimizers.SGD(0.05), inputs, targets, BATCH * SIZE)
        model, _ = fitted(dt.DistributedOptimizer(keras.optimizers.SGD(0.05)), own_part(inputs),
                          own_part(targets), BATCH, steps_per_execution=3)
        self.assert_trained(model, alone)

    def test_eagerly(self):
        inputs, targets = data()
        alone, _ = fitted(keras.optimizers.SGD(0.05), inputs, targets, BATCH * SIZE)
        model, _ = fitted(dt.DistributedOptimizer(keras.optimizers.SGD(0.05)), own_part(inputs),
                          own_part(targets), BATCH, run_eagerly=True)
        self.assert_trained(model, alone)

    def test_narrow_on_the_wire(self):
        inputs, targets = data()
        alone, _ = fitted(keras.optimizers.SGD(0.02), inputs, targets, BATCH * SIZE)
        model, _ = fitted(dt.DistributedOptimizer(keras.optimizers.SGD(0.02), wire="bfloat16"), own_part(inputs),
                          own_part(targets), BATCH)
        self.assert_trained(model, alone, 0.05)
        with self.assertRaisesRegex(ValueError, "wire: int8"):
            dt.DistributedOptimizer(keras.optimizers.SGD(), wire="int8")

    def test_loss_scale(self):
        if not hasattr(keras.optimizers, "LossScaleOptimizer"):
            self.skipTest("Keras 2 has another one")
        inputs, targets = data()
        alone, _ = fitted(keras.optimizers.SGD(0.05), inputs, targets, BATCH * SIZE)
        made = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05))
        model, _ = fitted(dt.DistributedOptimizer(made), own_part(inputs), own_part(targets), BATCH)
        self.assert_trained(model, alone)

    def test_xla_is_refused(self):
        with self.assertRaisesRegex(ValueError, "XLA cannot compile the ops of dtrain.tensorflow"):
            model_of().compile(optimizer=dt.DistributedOptimizer(keras.optimizers.SGD()), loss="mse", jit_compile=True)

    def test_saved(self):
        """A model is saved with its optimizer, and loaded where nobody knows dtrain."""
        inputs, targets = data()
        model, _ = fitted(dt.DistributedOptimizer(keras.optimizers.Adam(0.01)), own_part(inputs),
                          own_part(targets), BATCH)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.models.load_model(path)
        self.assertIs(type(loaded.optimizer), keras.optimizers.Adam)
        self.assert_trained(loaded, model)
        self.assertEqual(int(loaded.optimizer.iterations), 2 * STEPS)

    def test_own_loop(self):
        inputs, targets = (own_part(array) for array in data())
        alone, _ = fitted(keras.optimizers.SGD(0.05), *data(), BATCH * SIZE)
        model, optimizer = model_of(), keras.optimizers.SGD(0.05)

        @tf.function
        def step(x, y):
            with dt.DistributedGradientTape(tf.GradientTape()) as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        for _ in range(2):
            for begin in range(0, len(inputs), BATCH):
                step(tf.constant(inputs[begin:begin + BATCH]), tf.constant(targets[begin:begin + BATCH]))
        self.assert_trained(model, alone)

    def test_session(self):
        """A job that is started again goes on from the last checkpoint, with the same values on all ranks."""
        def loop(folder, last, seed):
            keras.utils.set_random_seed(seed)
            weight = tf.Variable([float(seed)])
            optimizer = dt.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.5))
            optimizer.build([weight])
            seen = []

            class Counts(dt.Hook):
                def after_step(self, session, result):
                    seen.append((session.step, result))

            def step():
                optimizer.apply_gradients([(weight - RANK, weight)])
                return float(weight[0])
            with dt.TrainingSession(folder, weight=weight, optimizer=optimizer, save_steps=2,
                                    hooks=[Counts(), dt.StopAtStep(last)]) as session:
                while not session.should_stop():
                    session.run(step)
            return seen
        with tempfile.TemporaryDirectory() as folder:
            at_once = loop(None, 7, 2)
            first = loop(folder, 3, 2 + RANK)
            self.assertEqual(os.path.exists(os.path.join(folder, "checkpoint")), RANK == 0)
            second = loop(folder, 7, 9)
            self.assertEqual([number for number, _ in first + second], [1, 2, 3, 4, 5, 6, 7])
            np.testing.assert_allclose([value for _, value in first + second], [value for _, value in at_once],
                                       rtol=1e-6)
            self.assertEqual(loop(folder, 7, 9), [])

            with self.assertRaisesRegex(ValueError, "save_steps: 0"):
                dt.TrainingSession(folder, save_steps=0)

    def test_sparse_gradients(self):
        """An embedding's gradients are slices, with as many rows as a batch has words."""
        words = np.random.default_rng(2).integers(0, 50, (BATCH * SIZE * STEPS, 4 * SIZE))
        for dense in (False, True):
            models = []
            for distribute in (False, True):
                keras.utils.set_random_seed(1)
                model = keras.Sequential([keras.layers.Input([4 * SIZE], dtype="int32"), keras.layers.Embedding(50, 3),
                                          keras.layers.Flatten(), keras.layers.Dense(1)])
                optimizer = keras.optimizers.SGD(0.1)
                model.compile(loss="mse", optimizer=dt.DistributedOptimizer(
                    optimizer, sparse_as_dense=dense) if distribute else optimizer)
                x, y = words, words[:, :1] / 50
                if distribute:
                    x, y = own_part(x), own_part(y)
                model.fit(x, y, batch_size=BATCH if distribute else BATCH * SIZE, shuffle=False, verbose=0)
                models.append(model)
            self.assert_trained(*models)


if __name__ == "__main__":
    unittest.main(verbosity=1)
