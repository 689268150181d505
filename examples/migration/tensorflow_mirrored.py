"""tf.distribute.MultiWorkerMirroredStrategy, and what it became: one line.

    dtrain-run -n 2 -- python3 tensorflow_mirrored.py
    TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}' python3 ...

SPDX-License-Identifier: Apache-2.0
"""
import tensorflow as tf

import dtrain.tensorflow as dt
from tensorflow_data import check, loss, model, points

GLOBAL_BATCH = 64

# strategy = tf.distribute.MultiWorkerMirroredStrategy()
strategy = dt.MultiWorkerMirroredStrategy()

dataset = tf.data.Dataset.from_tensor_slices(points(3200, 1)).batch(GLOBAL_BATCH)
with strategy.scope():
    trained = model()
    trained.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=loss(), metrics=["accuracy"])
trained.fit(dataset, epochs=3, verbose=2 if strategy.extended.should_checkpoint else 0,
            callbacks=[dt.AverageMetrics()])
check(trained)
