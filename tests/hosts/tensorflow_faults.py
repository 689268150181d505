"""A rank that dies in Keras' fit(): the others get an error of TensorFlow that names it, and go on without it. Run by
test_tensorflow.py with three ranks, the last of which kills itself.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal

import numpy as np
import tensorflow as tf

import dtrain.tensorflow as dt

world = dt.init()
keras = tf.keras
LAST = world.size - 1


class Dies(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 3 and world.rank == LAST:
            os.kill(os.getpid(), signal.SIGKILL)


keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(1)])
model.compile(optimizer=dt.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
x = np.ones([80, 5], np.float32)
try:
    model.fit(x, x[:, :1], batch_size=8, verbose=0, callbacks=[Dies()])
    raise AssertionError("fit() has not failed")
except tf.errors.AbortedError as error:
    assert f"rank {LAST}" in str(error) and f"rank {world.rank} of {world.size}" in str(error), error
dt.init(world.shrink())  # what was traced finds the new communicator by the same name
model.fit(x, x[:, :1], batch_size=8, verbose=0)
same = dt.allgather(tf.reshape(model.get_weights()[0], [1, 5])).numpy()
assert dt.size() == LAST and (same == same[0]).all()
print("went on")
