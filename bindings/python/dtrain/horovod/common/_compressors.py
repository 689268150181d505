"""What compressors of all frameworks derive from.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Tuple


class Compressor:
    """Derive from it for a method of your own."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor to send, and what decompress() needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The result, as a tensor like the one that was compressed."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor
