"""A training with a data service, whose program is dtrain.horovod.tensorflow.data.compute_worker in another job. Run by
test_horovod_tensorflow.py with two ranks.
usage: horovod_tensorflow_data.py CONFIGURATION

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys

import tensorflow as tf

import dtrain.horovod.tensorflow as hvd
from dtrain.horovod.tensorflow.data.compute_service import TfDataServiceConfig, tf_data_service

ROWS = 200


def rows(dataset):
    return [int(row) for batch in dataset.as_numpy_iterator() for row in batch]


def of_all_ranks(dataset):
    return hvd.allgather_object(rows(dataset))


def check_file(path, config):
    assert os.stat(path).st_mode & 0o77 == 0, "others can read the key"
    own = f"{path}.{hvd.rank()}"
    config.write(own)
    assert TfDataServiceConfig.read(own) == config
    for wrong in ("{}", "[", '{"dispatchers": 1}', "7"):
        with open(own, "w", encoding="utf-8") as file:
            file.write(wrong)
        try:
            TfDataServiceConfig.read(own)
        except ValueError as error:
            assert "no configuration of a data service" in str(error), error
        else:
            raise AssertionError(wrong)


def main():
    hvd.init()
    config = TfDataServiceConfig.read(sys.argv[1], wait_for_file_creation=True)
    check_file(sys.argv[1], config)
    dataset = tf.data.Dataset.range(ROWS).map(lambda row: row + 1000).batch(10)
    expected = list(range(1000, 1000 + ROWS))
    if config.dispatcher_side == "training":
        with tf_data_service(config, hvd.rank()) as address:
            found = of_all_ranks(dataset.apply(tf.data.experimental.service.distribute(
                processing_mode="distributed_epoch", service=address)))
    else:
        found = of_all_ranks(dataset.send_to_data_service(config, hvd.rank(), hvd.size()))
        if config.dispatchers == 1:
            shared = of_all_ranks(dataset.send_to_data_service(config, hvd.rank(), hvd.size(), reuse_dataset=True))
            assert sorted(sum(shared, [])) == expected, shared
    assert [sorted(one) for one in found] == [expected] * hvd.size(), found
    if hvd.rank() == 0:
        config.compute_client().shutdown()
    print("good")


if __name__ == "__main__":
    main()
