"""Points of four kinds, for the programs tensorflow_*.py: the same on all ranks.

SPDX-License-Identifier: Apache-2.0
"""
import numpy as np
import tensorflow as tf

INPUTS, KINDS = 16, 4


def points(count, seed):
    """Points, and the kind of each: that of the nearest of four centers."""
    centers = np.random.default_rng(0).normal(size=(KINDS, INPUTS))
    random = np.random.default_rng(seed)
    kinds = random.integers(0, KINDS, count)
    return (centers[kinds] + random.normal(size=(count, INPUTS))).astype(np.float32), kinds.astype(np.int64)


def model():
    return tf.keras.Sequential([tf.keras.layers.Input([INPUTS]), tf.keras.layers.Dense(32, "relu"),
                                tf.keras.layers.Dense(KINDS)])


def loss():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def check(trained):
    """Fails below 90 % of points that training has not seen."""
    x, y = points(1000, 99)
    right = float(np.mean(np.argmax(trained(x).numpy(), 1) == y))
    print(f"right: {right:.1%}")
    assert right > 0.9, right
