"""MirroredStrategy of dtrain.tensorflow with two devices in each rank: fit() and own loops learn what one process learns
from the same batches. Run by test_tensorflow.py with two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

import tensorflow as tf

import dtrain.tensorflow as dt
from tensorflow_training import BATCH, STEPS, Training, keras, model_of, samples

tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                           2 * [tf.config.LogicalDeviceConfiguration()])
DEVICES = 2
strategy = dt.MirroredStrategy(["CPU:0", "CPU:1"])
RANK, SIZE = dt.rank(), dt.size()
REPLICAS = DEVICES * SIZE


def data():
    return samples(REPLICAS)


class Strategy(Training):
    def test_fit(self):
        """Ranks begin with different weights, and have rank 0's."""
        alone = model_of(keras.optimizers.Adam(0.01))
        alone.fit(*data(), batch_size=BATCH * REPLICAS, epochs=2, shuffle=False, verbose=0)
        with strategy.scope():
            model = model_of(keras.optimizers.Adam(0.01), 3 + RANK)
        model.fit(*data(), batch_size=BATCH * REPLICAS, epochs=2, shuffle=False, verbose=0)
        self.assert_trained(model, alone)

    def test_own_loop(self):
        alone = model_of(keras.optimizers.SGD(0.05))
        alone.fit(*data(), batch_size=BATCH * REPLICAS, shuffle=False, verbose=0)
        with strategy.scope():
            model, optimizer = model_of("sgd"), keras.optimizers.SGD(0.05)
            optimizer.build(model.trainable_variables)

        def step(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / (BATCH * REPLICAS)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        @tf.function
        def run(batch):
            return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(batch,)), axis=None)
        dataset = tf.data.Dataset.from_tensor_slices(data()).batch(BATCH * REPLICAS)
        losses = [float(run(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]
        self.assertEqual(len(losses), STEPS)
        self.assert_trained(model, alone)
        self.assertEqual(dt.broadcast(tf.constant(losses, tf.float64)).numpy().tolist(), losses)

    def test_replicas(self):
        """Each has its own number, its part of a batch, and the results of all."""
        def replica():
            context = tf.distribute.get_replica_context()
            own = tf.cast(context.replica_id_in_sync_group, tf.float32)
            return (own, context.all_reduce("MEAN", [own, own * 2]), context.all_reduce("SUM", tf.cast(own, tf.int32)),
                    context.all_gather(tf.fill([2, 1], own), axis=1))
        numbers, means, total, gathered = strategy.run(tf.function(replica))
        local = strategy.experimental_local_results
        self.assertEqual([int(number) for number in local(numbers)], [DEVICES * RANK + i for i in range(DEVICES)])
        for mean, factor in zip(means, (1, 2)):
            self.assertEqual([float(one) for one in local(mean)], DEVICES * [factor * (REPLICAS - 1) / 2])
        self.assertEqual([int(one) for one in local(total)], DEVICES * [REPLICAS * (REPLICAS - 1) // 2])
        for one in local(gathered):
            self.assertEqual(one.numpy().tolist(), 2 * [list(range(REPLICAS))])
        self.assertEqual(strategy.num_replicas_in_sync, REPLICAS)
        self.assertEqual(strategy.extended.should_checkpoint, RANK == 0)

    def test_values(self):
        sums = strategy.reduce("SUM", strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(float(context.replica_id_in_sync_group))), axis=None)
        self.assertEqual(float(sums), REPLICAS * (REPLICAS - 1) / 2)
        self.assertEqual(float(strategy.reduce("MEAN", tf.constant(float(RANK)), axis=None)), (SIZE - 1) / 2)

    def test_dataset(self):
        parts = [strategy.experimental_local_results(part) for part in
                 strategy.experimental_distribute_dataset(tf.data.Dataset.range(8 * REPLICAS).batch(4 * REPLICAS))]
        self.assertEqual(len(parts), 2)
        begin = 4 * DEVICES * RANK
        self.assertEqual([part.numpy().tolist() for part in parts[0]],
                         [list(range(begin + 4 * i, begin + 4 * i + 4)) for i in range(DEVICES)])
        own = strategy.distribute_datasets_from_function(
            lambda context: tf.data.Dataset.range(2 * REPLICAS).shard(context.num_input_pipelines,
                                                                       context.input_pipeline_id))
        found = [int(x) for values in own for x in strategy.experimental_local_results(values)]
        self.assertEqual(sorted(found), list(range(RANK, 2 * REPLICAS, SIZE)))

    def test_sparse_gradients(self):
        with strategy.scope():
            table = tf.Variable(tf.ones([REPLICAS, 2]))

        def step():
            with tf.GradientTape() as tape:
                rows = tf.nn.embedding_lookup(table, [tf.distribute.get_replica_context().replica_id_in_sync_group])
                loss = tf.reduce_sum(rows)
            return tf.convert_to_tensor(tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, table)))
        for found in strategy.experimental_local_results(strategy.run(step)):
            self.assertEqual(found.numpy().tolist(), [[1.0, 1.0]] * REPLICAS)

    def test_different_numbers_of_devices(self):
        with self.assertRaisesRegex(ValueError, r"different numbers of devices: \[1, 2\]"):
            dt.MirroredStrategy(["CPU:0", "CPU:1"][:RANK + 1])


if __name__ == "__main__":
    unittest.main(verbosity=1)
