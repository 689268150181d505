"""Gradients of a step, reduced in one op.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, List, NamedTuple, Optional

from .._communicator import Communicator
from .._constants import AVG, Op
from .._durations import Duration
from .._names import find
from .._settings import OpLike
from ._operations import allreduce
from ._tensorflow import tf


class Reduction(NamedTuple):
    """How gradients are reduced. wire: the type in which floating-point gradients of more bytes travel, or None."""
    comm: Optional[Communicator]
    op: int
    wire: Any
    sparse_as_dense: bool
    timeout: Optional[Duration]

    def __call__(self, gradients: Any) -> List[Any]:
        """The gradients of all ranks, None where there is none. Which are None must not differ between ranks."""
        given = list(gradients)
        present = [self.sent(gradient) for gradient in given if gradient is not None]
        if not present:
            return given
        reduced = iter(allreduce(present, self.op, self.comm, timeout=self.timeout))
        return [None if gradient is None else self.received(next(reduced), gradient) for gradient in given]

    def sent(self, gradient: Any) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            if not self.sparse_as_dense:
                return gradient
            gradient = tf.convert_to_tensor(gradient)
        return tf.cast(gradient, self.wire) if self.narrows(gradient) else gradient

    def narrows(self, gradient: Any) -> bool:
        return self.wire is not None and gradient.dtype.is_floating and gradient.dtype.size > self.wire.size

    def received(self, reduced: Any, gradient: Any) -> Any:
        return reduced if reduced.dtype == gradient.dtype else tf.cast(reduced, gradient.dtype)


def reduction(comm: Optional[Communicator] = None, op: OpLike = AVG, wire: Any = None, sparse_as_dense: bool = False,
              timeout: Optional[Duration] = None) -> Reduction:
    kind = None if wire is None else tf.as_dtype(wire)
    if kind is not None and not kind.is_floating:
        raise ValueError(f"wire: {kind.name}; a floating-point type such as \"float16\" is needed")
    return Reduction(comm, find(Op, op, "op"), kind, sparse_as_dense, timeout)
