"""What tests of strategies train: a small net, and samples for any number of replicas.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

import numpy as np
import tensorflow as tf

keras = tf.keras
BATCH, STEPS = 8, 6  #: of each replica


def samples(replicas):
    random = np.random.default_rng(1)
    inputs = random.normal(size=(BATCH * replicas * STEPS, 5)).astype(np.float32)
    return inputs, (inputs[:, :1] * 2 - inputs[:, 1:2]).astype(np.float32)


def model_of(optimizer, seed=3):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.layers.Input([5]), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    return model


class Training(unittest.TestCase):
    def assert_trained(self, model, expected):
        for found, wanted in zip(model.get_weights(), expected.get_weights()):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
