"""tf.estimator.train_and_evaluate with RunConfig, and an input function that shards TFRecord files, and what they
became.

    dtrain-run -n 2 -- python3 tensorflow_estimator.py --records records

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import glob
import os

import tensorflow as tf

import dtrain.tensorflow as dt
from tensorflow_data import INPUTS, check, loss, model, points

parser = argparse.ArgumentParser()
parser.add_argument("--records", required=True, help="folder of the TFRecord files; they are made where it is empty")
parser.add_argument("--files", type=int, default=4)
options = parser.parse_args()
dt.init()


def example_of(x, y):
    features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y]))}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_records():
    for number in range(options.files):
        with tf.io.TFRecordWriter(os.path.join(options.records, f"part-{number}.tfrecord")) as writer:
            for x, y in zip(*points(3200 // options.files, number)):
                writer.write(example_of(x, y))


def parse(record):
    found = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([INPUTS], tf.float32),
                                                "y": tf.io.FixedLenFeature([], tf.int64)})
    return found["x"], found["y"]


def input_fn():
    # files = tf.data.Dataset.list_files(pattern, shuffle=False)
    # return files.shard(config.num_worker_replicas, config.global_id_in_cluster).interleave(...)
    paths = sorted(glob.glob(os.path.join(options.records, "*.tfrecord")))
    return dt.records(paths).map(parse).shuffle(1000, seed=dt.rank()).batch(32).repeat()


if dt.rank() == 0:
    os.makedirs(options.records, exist_ok=True)
    if not os.listdir(options.records):
        write_records()
dt.barrier()

# config = tf.estimator.RunConfig(model_dir, save_checkpoints_steps=50, train_distribute=strategy)
# estimator = tf.estimator.Estimator(model_fn, config=config)
# tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=150), eval_spec)
trained = model()
trained.compile(optimizer=dt.DistributedOptimizer(tf.keras.optimizers.Adam(0.01)), loss=loss(), metrics=["accuracy"])
trained.fit(input_fn(), steps_per_epoch=50, epochs=3, verbose=2 if dt.rank() == 0 else 0,
            callbacks=[dt.BroadcastVariables(), dt.AverageMetrics()])
check(trained)
