"""A data service: processes without a model that prepare batches for a training, by tf.data's own service.

SPDX-License-Identifier: Apache-2.0
"""
