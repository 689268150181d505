#!/usr/bin/env python3
"""Handwritten digits with Horovod's API for Keras: fit() on each rank's samples.

    dtrain-run -n 2 -- python3 examples/migration/horovod_keras.py

SPDX-License-Identifier: Apache-2.0
"""
import sys

import numpy as np
import tensorflow as tf

import dtrain.horovod.tensorflow.keras as hvd  # was: import horovod.tensorflow.keras as hvd
from digits_data import load

EPOCHS, BATCH, RATE = 20, 32, 0.01


def arrays(pattern, shard=0, shards=1):
    images, labels = load(pattern, shard, shards)
    return np.array(images, np.float32).reshape(-1, 8, 8, 1) / 16, np.array(labels)


hvd.init()
images, labels = arrays("train-*.tfrecord", hvd.rank(), hvd.size())
model = tf.keras.Sequential([
    tf.keras.layers.Input([8, 8, 1]), tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
    tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, "tanh"),
    tf.keras.layers.Dense(10)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(RATE * hvd.size(), momentum=0.9))
model.compile(optimizer=optimizer, loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])
steps = int(hvd.allreduce(float(len(labels)), op=hvd.Average)) // BATCH  # equally many on all ranks
model.fit(tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(2000).repeat().batch(BATCH), epochs=EPOCHS,
          steps_per_epoch=steps, verbose=2 if hvd.rank() == 0 else 0, callbacks=[
              hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(),
              hvd.callbacks.LearningRateWarmupCallback(initial_lr=RATE * hvd.size(), warmup_epochs=3)])

images, labels = arrays("test.tfrecord", hvd.rank(), hvd.size())
right = np.argmax(model(images).numpy(), 1) == labels
counts = hvd.allreduce([float(right.sum()), float(len(labels))], op=hvd.Sum).numpy()
accuracy = counts[0] / counts[1]
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks, {100 * accuracy:.1f} % of the test set")
hvd.shutdown()
if accuracy < 0.95:
    sys.exit("that is less than 95 %")
