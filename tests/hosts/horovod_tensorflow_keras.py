"""Training by dtrain.horovod.tensorflow and its Keras packages: what ranks learn together is what one process learns
from the whole batches. Run by test_horovod_tensorflow.py with two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import functools
import os
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import dtrain.horovod.keras as hvd_keras
import dtrain.horovod.tensorflow as hvd
import dtrain.horovod.tensorflow.keras as hvd_tf_keras
import dtrain.tensorflow as dt

hvd.init()
dt.init(hvd.global_process_set.communicator)
RANK, SIZE = hvd.rank(), hvd.size()
keras = tf.keras
KERAS3 = int(getattr(keras, "__version__", "2").split(".")[0]) >= 3
BATCH, STEPS = 8, 6


def data():
    random = np.random.default_rng(1)
    inputs = random.normal(size=(BATCH * SIZE * STEPS, 5)).astype(np.float32)
    return inputs, (inputs[:, :1] * 2 - inputs[:, 1:2]).astype(np.float32)


def model_of(seed=7):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])


def fitted(optimizer, shards, seed=7, callbacks=(), epochs=2):
    """Trained on this rank's rows of each batch, or on whole batches."""
    inputs, targets = data()
    if shards > 1:
        inputs, targets = inputs[RANK::SIZE], targets[RANK::SIZE]
    model = model_of(seed)
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    history = model.fit(inputs, targets, batch_size=BATCH * SIZE // shards, epochs=epochs, shuffle=False, verbose=0,
                        callbacks=list(callbacks))
    return model, history.history


@functools.lru_cache(None)
def plain():
    """What one process learns with SGD."""
    return fitted(keras.optimizers.SGD(0.05), 1)[0]


def same_weights(found, wanted, tolerance=2e-5):
    for one, other in zip(found.get_weights(), wanted.get_weights()):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


class Optimizers(unittest.TestCase):
    def test_equal_to_one_process(self):
        makers = [lambda: keras.optimizers.Adam(0.01), lambda: keras.optimizers.SGD(0.05, momentum=0.9)]
        if not KERAS3:
            makers.append(lambda: keras.optimizers.legacy.Adam(0.01))
        for number, make in enumerate(makers):
            with self.subTest(number):
                expected, _ = fitted(make(), 1)
                same_weights(fitted(hvd.DistributedOptimizer(make()), SIZE)[0], expected)

    def test_settings(self):
        make = keras.optimizers.SGD
        for rate, settings, tolerance in ((0.05, {"compression": hvd.Compression.fp16}, 1e-2),
                                          (0.05, {"gradient_predivide_factor": 2.0, "groups": 2}, 2e-5),
                                          (0.05 / SIZE, {"op": hvd.Sum}, 2e-5)):
            with self.subTest(settings=list(settings)):
                optimizer = hvd_keras.DistributedOptimizer(make(rate), **settings)
                same_weights(fitted(optimizer, SIZE)[0], plain(), tolerance)
        for wrong in ({"op": hvd.Min}, {"groups": -1}, {"backward_passes_per_step": 0}):
            with self.assertRaises(ValueError):
                hvd_keras.DistributedOptimizer(make(), **wrong)

    def test_several_passes_per_step(self):
        """Two batches of half the size are one."""
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.05), backward_passes_per_step=2,
                                             average_aggregated_gradients=True)
        inputs, targets = (one[RANK::SIZE] for one in data())
        model = model_of()
        model.compile(optimizer=optimizer, loss="mse")
        model.fit(inputs, targets, batch_size=BATCH // 2, epochs=2, shuffle=False, verbose=0)
        same_weights(model, plain())
        self.assertEqual(int(optimizer.iterations), 2 * 2 * STEPS)
        self.assertEqual(int(optimizer._agg_helper.counter), 0)

    def test_from_config_and_files(self):
        optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01))
        again = type(optimizer).from_config(optimizer.get_config())
        expected, _ = fitted(keras.optimizers.Adam(0.01), 1)
        trained, _ = fitted(again, SIZE)
        same_weights(trained, expected)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            trained.save(path)
            loaded = hvd_keras.load_model(path)
            self.assertEqual(type(keras.models.load_model(path).optimizer), keras.optimizers.Adam)
        self.assertEqual(int(loaded.optimizer.iterations), 2 * STEPS)
        inputs, targets = data()
        loaded.fit(inputs[RANK::SIZE], targets[RANK::SIZE], batch_size=BATCH, shuffle=False, verbose=0)
        expected.fit(inputs, targets, batch_size=BATCH * SIZE, shuffle=False, verbose=0)
        same_weights(loaded, expected)

    def test_local_layers(self):
        """Their gradients stay on this rank, divided by the number of ranks."""
        start = model_of()
        model = model_of()
        optimizer = hvd_keras.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), local_layers=model.layers[-1])
        inputs = np.full([BATCH, 5], RANK + 1.0, np.float32)
        model.compile(optimizer=optimizer, loss="mse")
        model.fit(inputs, inputs[:, :1], batch_size=BATCH, verbose=0)
        biases = hvd.allgather_object(model.get_weights())
        np.testing.assert_array_equal(biases[0][0], biases[1][0])
        self.assertFalse(np.array_equal(biases[0][2], biases[1][2]))
        self.assertFalse(np.array_equal(model.get_weights()[0], start.get_weights()[0]))

    def test_float16(self):
        """A step that is not finite on one rank is skipped on all."""
        inputs = np.full([BATCH, 5], RANK + 1.0, np.float32)
        keras.mixed_precision.set_global_policy("mixed_float16")
        self.addCleanup(keras.mixed_precision.set_global_policy, "float32")
        for make in (hvd.DistributedOptimizer, dt.DistributedOptimizer):
            model = model_of()
            start = model.get_weights()
            model.compile(optimizer=make(keras.optimizers.SGD(0.01)), loss="mse")
            model.fit(inputs * (np.inf if RANK == 0 else 1), inputs[:, :1], batch_size=BATCH, verbose=0)
            np.testing.assert_array_equal(model.get_weights()[0], start[0])
            model.fit(inputs, inputs[:, :1], batch_size=BATCH, epochs=12, verbose=0)  # the scale falls until it fits
            self.assertFalse(np.array_equal(model.get_weights()[0], start[0]))
            for other in hvd.allgather_object(model.get_weights()):
                np.testing.assert_array_equal(other[0], model.get_weights()[0])

    def test_optimizer_of_tensorflow_1(self):
        variable = tf.Variable([1.0])
        optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0))
        optimizer.apply_gradients(optimizer.compute_gradients(lambda: variable * (RANK + 1.0), [variable]))
        np.testing.assert_allclose(variable, [1 - (SIZE + 1) / 2])
        with self.assertRaisesRegex(NotImplementedError, "optimizer of Keras"):
            hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0), op=hvd.Adasum)


class Tapes(unittest.TestCase):
    def test_gradients(self):
        x, y, table = tf.Variable([2.0]), tf.Variable([3.0]), tf.Variable(tf.ones([4, 2]))

        def step():
            with tf.GradientTape() as tape:
                rows = tf.gather(table, [RANK, 2])
                loss = tf.reduce_sum(x * (RANK + 1.0)) + tf.reduce_sum(y * (RANK + 1.0)) + tf.reduce_sum(rows)
            tape = hvd.DistributedGradientTape(tape, gradient_predivide_factor=2.0)
            tape.register_local_source(y)
            return tape.gradient(loss, {"x": x, "y": y, "table": table})
        for run in (step, tf.function(step)):
            found = run()
            np.testing.assert_allclose(found["x"], [(SIZE + 1) / 2])
            np.testing.assert_allclose(found["y"], [(RANK + 1) / SIZE])
            np.testing.assert_allclose(tf.convert_to_tensor(found["table"])[:, 0], [0.5, 0.5, 1, 0])

    def test_partial_and_dense(self):
        layer = keras.layers.Dense(1)
        layer.build([None, 2])
        other = tf.Variable(tf.ones([2, 2]))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.gather(other, [RANK]))) * (RANK + 1.0)
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=layer, sparse_as_dense=True,
                                                  scale_local_gradients=False)
        local, shared = tape.get_local_and_global_gradients(loss, [*layer.trainable_weights, other])
        np.testing.assert_allclose(local[1][1], [RANK + 1.0])
        self.assertEqual([len(local), len(shared), list(shared[0][1].shape)], [2, 1, [2, 2]])

    def test_uneven_batches(self):
        """Rank 0 has one batch fewer, and joins."""
        variable = tf.Variable([0.0])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(variable)
            gradients = hvd.DistributedGradientTape(tape, op=hvd.Sum).gradient(loss, [variable])
            variable.assign_add(gradients[0])
        for _ in range(2 + (RANK > 0)):
            step()
        last = int(hvd.join())
        hvd.broadcast_variables([variable], last)
        np.testing.assert_allclose(variable, [2 * SIZE + SIZE - 1])


class Callbacks(unittest.TestCase):
    def test_weights_metrics_and_rates(self):
        rates = []
        callbacks = [
            hvd_tf_keras.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd_tf_keras.callbacks.MetricAverageCallback(),
            hvd_tf_keras.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=2),
            hvd_tf_keras.callbacks.LearningRateScheduleCallback(0.1, 0.5, start_epoch=2, end_epoch=4),
            hvd_tf_keras.callbacks.LearningRateScheduleCallback(0.1, lambda epoch: 1.0 / epoch, start_epoch=4),
            keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(logs["lr"]))]
        model, history = fitted(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), SIZE, 7 + RANK, callbacks, 6)
        np.testing.assert_allclose(rates, [0.1 * (SIZE + 1) / 2 / SIZE, 0.1, 0.1, 0.05, 0.025, 0.02], rtol=1e-5)
        for other in hvd.allgather_object((model.get_weights(), history["loss"])):
            self.assertEqual(other[1], history["loss"])
            for found, mine in zip(other[0], model.get_weights()):
                np.testing.assert_array_equal(found, mine)

    def test_local_variables(self):
        model = model_of(7 + RANK)
        start = model.get_weights()
        model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
        model.fit(np.ones([8, 5]), np.ones([8, 1]), verbose=0, callbacks=[
            hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0, local_variables=model.layers[-1].weights)])
        np.testing.assert_array_equal(model.get_weights()[2], start[2])
        self.assertEqual(np.array_equal(model.get_weights()[0], start[0]), RANK == 0)

    def test_best_model(self):
        with tempfile.TemporaryDirectory() as folder:
            best = hvd_keras.callbacks.BestModelCheckpoint(monitor="loss")
            best.filepath = os.path.join(folder, "best.keras")
            fitted(hvd.DistributedOptimizer(keras.optimizers.SGD(0.05)), SIZE, 7, [best])
            self.assertEqual(os.listdir(folder), ["best.keras"])

    def test_functions(self):
        self.assertEqual(hvd_keras.allreduce(RANK + 1.0), (SIZE + 1) / 2)
        self.assertEqual(list(hvd_keras.allgather([RANK])), list(range(SIZE)))
        self.assertEqual(hvd_keras.broadcast(RANK, 1), 1)
        self.assertEqual(list(hvd_keras.reducescatter([1.0] * SIZE, op=hvd.Sum)), [SIZE])


class Normalization(unittest.TestCase):
    def test_batches_of_different_sizes(self):
        """Outputs and gradients are those of one process with all rows."""
        random = np.random.default_rng(3)
        parts = [random.normal(rank, 2, size=(3 + rank, 4, 2)).astype(np.float32) for rank in range(SIZE)]
        whole = np.concatenate(parts)
        begin = sum(len(part) for part in parts[:RANK])
        weights = random.normal(size=whole.shape).astype(np.float32)
        found = []
        for layer, rows in ((hvd.SyncBatchNormalization(), slice(begin, begin + len(parts[RANK]))),
                            (keras.layers.BatchNormalization(), slice(None))):
            x = tf.constant(whole[rows])
            with tf.GradientTape() as tape:
                tape.watch(x)
                outputs = layer(x, training=True)
                loss = tf.reduce_sum(outputs * weights[rows])
            found.append((outputs, tape.gradient(loss, x)))
        own = slice(begin, begin + len(parts[RANK]))
        np.testing.assert_allclose(found[0][0], found[1][0][own], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(found[0][1], found[1][1][own], rtol=1e-3, atol=1e-4)
        layers = [hvd.SyncBatchNormalization() for _ in range(2)]  # in one model, so their names differ
        model = keras.Sequential([keras.layers.Input([5]), *layers, keras.layers.Dense(1)])
        model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), loss="mse")
        inputs, targets = data()
        model.fit(inputs[RANK::SIZE], targets[RANK::SIZE], verbose=0)
        for other in hvd.allgather_object(model.get_weights()):
            for found, mine in zip(other, model.get_weights()[:4]):  # of the first layer, moving averages included
                np.testing.assert_allclose(found, mine, rtol=1e-6)
        with self.assertRaises(ValueError):
            hvd.SyncBatchNormalization(fused=True)


class States(unittest.TestCase):
    def test_saved_and_restored(self):
        model = model_of(7 + RANK)
        state = hvd_tf_keras.elastic.KerasState(model, keras.optimizers.Adam(0.01), batch=RANK + 5, epoch=RANK)
        state.sync()
        self.assertEqual((state.batch, state.epoch), (5, 0))
        kept = model.get_weights()
        for other in hvd.allgather_object(kept):
            np.testing.assert_array_equal(other[0], kept[0])
        model.set_weights([one + 1 for one in kept])
        state.batch = 9
        state.restore()
        self.assertEqual(state.batch, 5)
        np.testing.assert_array_equal(model.get_weights()[0], kept[0])
        variable = tf.Variable([RANK])
        plain = hvd.elastic.TensorFlowState([variable], step=RANK)
        plain.sync()
        self.assertEqual((int(variable[0]), plain.step), (0, 0))
        variable.assign([3])
        plain.commit()
        variable.assign([4])
        plain.restore()
        self.assertEqual(int(variable[0]), 3)


if __name__ == "__main__":
    unittest.main()
