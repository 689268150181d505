"""Compressed all-reduce.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Generic, Iterable, List, Mapping, Optional, Tuple

from . import _dtrain
from ._checks import kind as kind_of
from ._checks import pack
from ._collectives import Array, Done
from ._constants import AVG, F32, Compression
from ._durations import Duration
from ._handle import Child
from ._names import find
from ._parameters import check_positive, fill
from ._request import Request
from ._settings import CompressionLike, OpLike
from ._ways import Blocking, Started, runner


def flat(matrices: Iterable[Tuple[int, int]]) -> List[int]:
    try:
        return [number for rows, columns in matrices for number in (rows, columns)]
    except (TypeError, ValueError):
        raise TypeError(f"matrices: pairs of rows and columns are needed, not {kind_of(matrices)} like this: "
                        f"{matrices!r:.60}") from None


class CompressorOperations(Generic[Done]):
    _run: Any  #: (function, *arguments) -> its result, or a request

    def allreduce(self, array: Array, out: Array = None, op: OpLike = AVG) -> Done:
        """out (None: in place) = approximately the mean, or the sum, of all ranks' arrays: what a
        step does not send is added to the next one. One operation at a time."""
        return self._run(_dtrain.dtrain_compressor_allreduce, array, out, op)


class BlockingCompressor(Blocking, CompressorOperations[None]):
    """Each call returns when the operation is done."""


class StartedCompressor(Started, CompressorOperations[Request]):
    """Each call starts the operation and returns its Request."""


class Compressor(Child, CompressorOperations[None]):
    """Made by Communicator.compressor(), for repeated reductions of one f32 vector. `start` offers
    the operation with a request, `using()` with parameters."""

    def __init__(self, comm: Any, kind: CompressionLike, count: int, settings: Dict[str, Any]) -> None:
        flags = 0 if settings.pop("feedback") else _dtrain.DTRAIN_COMPRESS_NO_FEEDBACK
        flags |= _dtrain.DTRAIN_COMPRESS_STOCHASTIC if settings.pop("stochastic") else 0
        if settings["rank"] is not None:
            check_positive(settings["rank"], "rank")
        pairs = pack("Q", flat(settings.pop("matrices") or ()), "matrices")
        params = fill(_dtrain.dtrain_compressor_params_t(),
                      {"kind": find(Compression, kind, "kind"), "count": count, "flags": flags, **settings})
        if pairs:
            params.matrices, params.matrix_count = pairs.buffer_info()[0], len(pairs) // 2
        handle = _dtrain.dtrain_compressor_create(comm._handle, params)
        _dtrain.describe_handle(handle, F32, count)
        super().__init__(comm._context, handle, comm)
        self._run = runner(self._handle)
        self.start = StartedCompressor(self, {})

    def _destroy(self) -> None:
        _dtrain.dtrain_compressor_destroy(self._handle)

    def using(self, *, timeout: Optional[Duration] = None,
              priority: Optional[int] = None) -> "ParameterisedCompressor":
        """The same operation with a timeout, or a priority (higher goes first)."""
        return ParameterisedCompressor(self, {"timeout": timeout, "priority": priority})

    def reset(self) -> None:
        """Discards what earlier steps have kept; call it on all ranks between the same two
        operations."""
        _dtrain.dtrain_compressor_reset(self._handle)

    def stats(self) -> Dict[str, Any]:
        """Counts since the compressor was created: operations, raw_bytes (what this rank would have
        sent without compression), sent_bytes, and residual, the norm of what this rank keeps."""
        stats = _dtrain.dtrain_compression_stats_t()
        _dtrain.dtrain_compressor_stats(self._handle, stats)
        return {name: getattr(stats, name)
                for name in ("operations", "raw_bytes", "sent_bytes", "residual")}


class ParameterisedCompressor(BlockingCompressor):
    """A compressor's operation with parameters."""

    def __init__(self, owner: Compressor, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, settings)
        self.start = StartedCompressor(owner, settings)
