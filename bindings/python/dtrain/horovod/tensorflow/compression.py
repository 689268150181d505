"""What tensors are converted to for an all-reduce.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional, Tuple

from ...tensorflow._tensorflow import tf
from ..common._compressors import Compressor, NoneCompressor


def narrowed(tensor: Any, dtype: Any) -> Tuple[Any, Optional[Any]]:
    if not tensor.dtype.is_floating or tensor.dtype == dtype:
        return tensor, None
    return tf.cast(tensor, dtype), tensor.dtype


class Narrowing(Compressor):
    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(Narrowing):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return narrowed(tensor, tf.float16)


class BF16Compressor(Narrowing):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return narrowed(tensor, tf.bfloat16)


class Compression:
    """For the argument compression of operations and of DistributedOptimizer."""
    none = NoneCompressor
    fp16 = FP16Compressor  #: of tensors of floating-point numbers
    bf16 = BF16Compressor  #: the same with the range of float32; Horovod has it not
