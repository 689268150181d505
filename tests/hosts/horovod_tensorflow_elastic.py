"""Keras' fit() in an elastic job: a worker dies in its second epoch, and the others go on from the last commit. Run by
test_horovod_tensorflow.py.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal

import numpy as np
import tensorflow as tf

import dtrain.horovod.tensorflow.keras as hvd

EPOCHS, STEPS = 3, 10
keras = tf.keras
hvd.init()
first_workers = os.environ.get("DTRAIN_RANK") == "1"  # newcomers have no number yet
keras.utils.set_random_seed(hvd.rank())
model = keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(1)])
model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.05)), loss="mse")
random = np.random.default_rng(1)
inputs = random.normal(size=(8 * STEPS, 5)).astype(np.float32)


class Dies(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if first_workers and state.epoch == 1 and batch == 5:
            os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state):
    print(f"begins at epoch {state.epoch} with {hvd.size()} workers", flush=True)
    model.fit(inputs, inputs[:, :1], batch_size=8, shuffle=False, verbose=0, epochs=EPOCHS - state.epoch, callbacks=[
        Dies(), hvd.elastic.UpdateBatchStateCallback(state), hvd.elastic.UpdateEpochStateCallback(state),
        hvd.elastic.CommitStateCallback(state, batches_per_commit=4)])


state = hvd.elastic.KerasState(model, epoch=0, batch=0)
train(state)
assert state.epoch == EPOCHS, state.epoch
weights = hvd.allgather(model.get_weights()[0].reshape(1, 5)).numpy()
assert (weights == weights[0]).all(), weights
print(f"good: {hvd.size()} workers")
