"""Collectives and messages, in each way to run them.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Generic, Optional, TypeVar

from . import _dtrain
from ._checks import numbers
from ._constants import ANY_RANK, SUM
from ._request import Request, Result
from ._settings import OpLike
from ._ways import Blocking, Prepared, Started

Done = TypeVar("Done")    #: None, or a request
Found = TypeVar("Found")  #: a Result, or a request
Numbers = Any  #: a list of ints, or an array of 64-bit integers
#: With the buffer protocol, DLPack, __array_interface__ or __cuda_array_interface__; contiguous.
Array = Any


class Collectives(Generic[Done, Found]):
    """All ranks call the same collectives in the same order. Arrays are not copied; `out` None
    means in place. A block is the part of an array that belongs to one rank. The counts of the
    v-variants are the elements of each rank's block; displacements say where the blocks begin
    (None: one after the other)."""

    _run: Any  #: (function, *arguments) -> its result, or a request

    def allreduce(self, array: Array, out: Array = None, op: OpLike = SUM) -> Done:
        """out = the sum (or another op) of all ranks' arrays."""
        return self._run(_dtrain.dtrain_allreduce, array, out, op)

    def reduce(self, array: Array, out: Array = None, op: OpLike = SUM, *, root: int = 0) -> Done:
        """As allreduce, but only root gets the result."""
        return self._run(_dtrain.dtrain_reduce, array, out, op, root)

    def reduce_scatter(self, array: Array, out: Array, op: OpLike = SUM) -> Done:
        """out = this rank's block of the sum. In place: out is that block of array."""
        return self._run(_dtrain.dtrain_reduce_scatter, array, out, op)

    def reduce_scatterv(self, array: Array, out: Array, counts: Numbers,
                        op: OpLike = SUM) -> Done:
        """As reduce_scatter, with blocks of counts elements."""
        return self._run(_dtrain.dtrain_reduce_scatterv, array, out, numbers(counts, "counts"), 0,
                         op)

    def allgather(self, array: Array, out: Array) -> Done:
        """out = all ranks' arrays. In place: array is this rank's block of out."""
        return self._run(_dtrain.dtrain_allgather, array, out)

    def allgatherv(self, array: Array, out: Array, counts: Numbers,
                   displs: Optional[Numbers] = None) -> Done:
        """As allgather, with blocks of counts elements."""
        return self._run(_dtrain.dtrain_allgatherv, array, out, numbers(counts, "counts"),
                         numbers(displs, "displs"), 0)

    def broadcast(self, array: Array, *, root: int = 0) -> Done:
        """Copies root's array to all ranks."""
        return self._run(_dtrain.dtrain_broadcast, array, root)

    def gather(self, array: Array, out: Array = None, *, root: int = 0) -> Done:
        """On root: out = all ranks' arrays. On other ranks out is None."""
        return self._run(_dtrain.dtrain_gather, array, out, root)

    def gatherv(self, array: Array, out: Array, counts: Numbers,
                displs: Optional[Numbers] = None, *, root: int = 0) -> Done:
        """As gather, with blocks of counts elements; all ranks pass the counts."""
        return self._run(_dtrain.dtrain_gatherv, array, out, numbers(counts, "counts"),
                         numbers(displs, "displs"), 0, root)

    def scatter(self, array: Array, out: Array, *, root: int = 0) -> Done:
        """out = this rank's block of root's array. On other ranks array is None."""
        return self._run(_dtrain.dtrain_scatter, array, out, root)

    def scatterv(self, array: Array, out: Array, counts: Numbers,
                 displs: Optional[Numbers] = None, *, root: int = 0) -> Done:
        """As scatter, with blocks of counts elements; all ranks pass the counts."""
        return self._run(_dtrain.dtrain_scatterv, array, out, numbers(counts, "counts"),
                         numbers(displs, "displs"), 0, root)

    def alltoall(self, array: Array, out: Array) -> Done:
        """Block j of array goes to rank j; block j of out comes from rank j."""
        return self._run(_dtrain.dtrain_alltoall, array, out)

    def alltoallv(self, array: Array, send_counts: Numbers, out: Array,
                  recv_counts: Numbers, send_displs: Optional[Numbers] = None,
                  recv_displs: Optional[Numbers] = None) -> Done:
        """As alltoall, with a separate block length for each pair of ranks."""
        return self._run(_dtrain.dtrain_alltoallv, array, numbers(send_counts, "send_counts"),
                         numbers(send_displs, "send_displs"), out,
                         numbers(recv_counts, "recv_counts"), numbers(recv_displs, "recv_displs"),
                         0)

    def barrier(self) -> Done:
        """Waits until all ranks have called it."""
        return self._run(_dtrain.dtrain_barrier)

    def send(self, array: Array, peer: int, tag: int = 0) -> Done:
        """Sends a message to peer; messages of one tag arrive in order."""
        return self._run(_dtrain.dtrain_send, array, peer, tag)

    def recv(self, array: Array, peer: int = ANY_RANK, tag: int = 0) -> Found:
        """Receives a message from peer, or from any rank; the result has its sender and its
        length."""
        return self._run(_dtrain.dtrain_recv, array, peer, tag)


class BlockingCollectives(Blocking, Collectives[None, Result]):
    """Each call returns when the operation is done, or raises its error."""


class StartedCollectives(Started, Collectives[Request, Request]):
    """Each call starts the operation and returns its Request."""


class PreparedCollectives(Prepared, Collectives[Request, Request]):
    """Each call prepares the operation; Request.start() starts it, as often as it is called."""
