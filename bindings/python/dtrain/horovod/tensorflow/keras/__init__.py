"""Horovod's API for tf.keras: `import dtrain.horovod.tensorflow.keras as hvd`, the names of dtrain.horovod.keras.

SPDX-License-Identifier: Apache-2.0
"""
from ...keras import *  # pylint: disable=wildcard-import,unused-wildcard-import
from ...keras import __all__ as __all__
