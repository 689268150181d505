"""What dtrain.horovod.keras and dtrain.horovod.tensorflow.keras share.

SPDX-License-Identifier: Apache-2.0
"""
from ...tensorflow._tensorflow import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(f"dtrain.horovod.keras: Keras runs on {keras.backend.backend()!r} (KERAS_BACKEND), and its "
                      "optimizers can be distributed on 'tensorflow' alone")
