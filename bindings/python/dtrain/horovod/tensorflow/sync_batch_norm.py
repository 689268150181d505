"""Batch normalization over the batches of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, Tuple

from ...tensorflow._tensorflow import KERAS3, keras, tf
from ..common.basics import Sum, size
from ..common.process_sets import global_process_set
from ._allreduce import reduced_with_gradients
from ._groups import engine_with_ops


class SyncBatchNormalization(keras.layers.BatchNormalization):
    """As keras.layers.BatchNormalization, with the mean and variance of the batches of all ranks, which may have
    different sizes."""

    def __init__(self, fused: Any = False, **kwargs: Any) -> None:
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not support fused=True.")
        if not KERAS3:
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, *arguments: Any, **more: Any) -> Tuple[Any, Any]:
        mean, variance = super()._moments(inputs, *arguments, **more)
        if size() == 1:
            return mean, variance
        return moments_of_all(mean, variance, tf.size(inputs, tf.int64))


def moments_of_all(mean: Any, variance: Any, elements: Any) -> Tuple[Any, Any]:
    """Two all-reduces: the variance is that of the differences from the mean, since that of squares loses digits."""
    engine = engine_with_ops(global_process_set)
    name = f"sync_batch_norm.{mean.dtype.name}{mean.shape}"  # of as many elements each time: then it is known
    count = tf.cast(elements, mean.dtype) / tf.cast(tf.size(mean), mean.dtype)
    sums, total = reduced_with_gradients([mean * count, count], [f"{name}.sum", f"{name}.count"], Sum, engine, 1.0, 1.0)
    whole = sums / total
    squares = reduced_with_gradients([(variance + tf.square(mean - whole)) * count], [f"{name}.squares"], Sum, engine,
                                     1.0, 1.0)[0]
    return whole, squares / total
