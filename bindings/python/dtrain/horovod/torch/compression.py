"""What tensors are converted to for an all-reduce.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Optional, Tuple

from ..common._compressors import Compressor, NoneCompressor
from ._tensors import torch


def narrowed(tensor: Any, dtype: Any) -> Tuple[Any, Optional[Any]]:
    if not tensor.dtype.is_floating_point or tensor.dtype == dtype:
        return tensor, None
    return tensor.to(dtype), tensor.dtype


class Narrowing(Compressor):
    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(Narrowing):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return narrowed(tensor, torch.float16)


class BF16Compressor(Narrowing):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return narrowed(tensor, torch.bfloat16)


class Compression:
    """For the argument compression of operations and of DistributedOptimizer."""
    none = NoneCompressor
    fp16 = FP16Compressor  #: of tensors of floating-point numbers
    bf16 = BF16Compressor  #: the same with the range of float32; Horovod has it not
