"""tf.train.MonitoredTrainingSession with hooks and checkpoints, and what it became. A job that is started again goes on
from the last checkpoint.

    dtrain-run -n 2 -- python3 tensorflow_session.py --directory checkpoints --steps 100
    dtrain-run -n 2 -- python3 tensorflow_session.py --directory checkpoints --steps 200

SPDX-License-Identifier: Apache-2.0
"""
import argparse

import tensorflow as tf

import dtrain.tensorflow as dt
from tensorflow_data import check, loss, model, points

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()


class Progress(dt.Hook):  # tf.train.SessionRunHook
    def begin(self, session):
        if session.is_chief:
            print("begins at step", session.step)

    def after_step(self, session, result):
        if session.is_chief and session.step % 50 == 0:
            print(f"step {session.step}: loss {float(result):.3f}")


trained, optimizer, loss_of = model(), dt.DistributedOptimizer(tf.keras.optimizers.Adam(0.01)), loss()
optimizer.build(trained.trainable_variables)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        value = loss_of(y, trained(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, trained.trainable_variables), trained.trainable_variables))
    return value


data = tf.data.Dataset.from_tensor_slices(points(3200, 1))
batches = iter(dt.shard(data).batch(32).repeat())

# with tf.train.MonitoredTrainingSession(master=server.target, is_chief=(task_index == 0), checkpoint_dir=directory,
#                                        save_checkpoint_steps=50,
#                                        hooks=[tf.train.StopAtStepHook(last_step=steps)]) as session:
#     while not session.should_stop():
#         session.run(train_op)
with dt.TrainingSession(options.directory, model=trained, optimizer=optimizer, save_steps=50,
                        hooks=[Progress(), dt.StopAtStep(options.steps)]) as session:
    while not session.should_stop():
        session.run(train_step, *next(batches))
check(trained)
