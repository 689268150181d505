"""MultiWorkerMirroredStrategy of dtrain.tensorflow: fit() and own loops learn what one process learns from the same
batches. Run by test_tensorflow.py with two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

import numpy as np
import tensorflow as tf

import dtrain.tensorflow as dt
from tensorflow_training import BATCH, Training, keras, model_of, samples

strategy = dt.MultiWorkerMirroredStrategy()
RANK, SIZE = dt.rank(), dt.size()


def data():
    return samples(SIZE)


class Strategy(Training):
    def test_fit(self):
        """Ranks begin with different weights, and have rank 0's."""
        for make in (lambda: keras.optimizers.SGD(0.05, momentum=0.9), lambda: keras.optimizers.Adam(0.01)):
            alone = model_of(make())
            alone.fit(*data(), batch_size=BATCH * SIZE, epochs=2, shuffle=False, verbose=0)
            with strategy.scope():
                model = model_of(make(), 3 + RANK)
            logs = model.fit(*data(), batch_size=BATCH * SIZE, epochs=2, shuffle=False, verbose=0,
                             validation_data=data(), callbacks=[dt.AverageMetrics()]).history
            self.assert_trained(model, alone)
            self.assertEqual(dt.allreduce(tf.constant(logs["mae"][-1]), "min").numpy(), np.float32(logs["mae"][-1]))

    def test_dataset(self):
        """The last batch has 3 rows for two ranks; one with fewer rows than ranks is left out."""
        dataset = tf.data.Dataset.range(4 * SIZE + 3).batch(4 * SIZE)
        parts = [list(part.numpy()) for part in strategy.experimental_distribute_dataset(dataset)]
        self.assertEqual(parts[0], list(range(4 * RANK, 4 * RANK + 4)))
        self.assertEqual(len(parts[1]), 3 * (RANK + 1) // SIZE - 3 * RANK // SIZE)
        one = strategy.experimental_distribute_dataset(tf.data.Dataset.range(1).batch(4))
        self.assertEqual(len(list(one)), 0)
        own = strategy.distribute_datasets_from_function(
            lambda context: tf.data.Dataset.range(6).shard(context.num_input_pipelines, context.input_pipeline_id))
        self.assertEqual([int(x) for x in own], list(range(RANK, 6, SIZE)))

    def test_own_loop(self):
        alone = model_of(keras.optimizers.SGD(0.05))
        alone.fit(*data(), batch_size=BATCH * SIZE, shuffle=False, verbose=0)
        with strategy.scope():
            model, optimizer = model_of("sgd"), keras.optimizers.SGD(0.05)

        def step(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / (BATCH * SIZE)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        @tf.function
        def run(batch):
            return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(batch,)), axis=None)
        dataset = tf.data.Dataset.from_tensor_slices(data()).batch(BATCH * SIZE)
        losses = [float(run(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]
        self.assert_trained(model, alone)
        self.assertEqual(dt.broadcast(tf.constant(losses, tf.float64)).numpy().tolist(), losses)

    def test_replica_context(self):
        def replica():
            context = tf.distribute.get_replica_context()
            own = context.replica_id_in_sync_group
            number = tf.cast(own, tf.float32)
            return (number, context.all_reduce("MEAN", [number, number * 2]),
                    context.all_gather(tf.fill([2, own + 1], number), axis=1))
        own, means, gathered = strategy.run(tf.function(replica))
        self.assertEqual(float(own), RANK)
        self.assertEqual([float(mean) for mean in means], [(SIZE - 1) / 2, SIZE - 1.0])
        self.assertEqual(gathered.numpy().tolist(), [np.repeat(np.arange(SIZE), np.arange(SIZE) + 1).tolist()] * 2)
        self.assertEqual(strategy.num_replicas_in_sync, SIZE)
        self.assertEqual(strategy.extended.should_checkpoint, RANK == 0)
        self.assertEqual(strategy.gather(tf.constant([RANK]), axis=0).numpy().tolist(), list(range(SIZE)))


if __name__ == "__main__":
    unittest.main(verbosity=1)
