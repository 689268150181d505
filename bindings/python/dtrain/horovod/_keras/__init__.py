"""What dtrain.horovod.keras and dtrain.horovod.tensorflow.keras share.

SPDX-License-Identifier: Apache-2.0
"""
