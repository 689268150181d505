"""Hooks for the gradients of DistributedDataParallel:

    model.register_comm_hook(hooks.Compressed("topk", ratio=0.01), hooks.reduce)
    model.register_comm_hook(hooks.Prioritized(), hooks.reduce)

A state says how a bucket of gradients is averaged over the ranks. docs/PYTORCH.md says what to choose.
SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .. import _dtrain
from .._compressor import Compressor
from .._constants import AVG, Compression
from .._names import find
from .._parameters import operation
from .._settings import CompressionLike
from .._ways import START
from ._access import group_of
from ._errors import translated
from ._torch import torch
from ._work import Work

DEFAULT_RANK = 2  #: the library's for POWERSGD


def reduce(state: "Hook", bucket: Any) -> Any:
    """The hook of all states."""
    return state.start(bucket).get_future().then(first)


reduce.__annotations__ = {}  # torch looks at them, and accepts its own types or none


def first(future: Any) -> Any:
    return future.value()[0]


class Hook:
    """Averages the gradients as they are. A base for the others; group None: the default group."""

    def __init__(self, process_group: Optional[Any] = None) -> None:
        self._process_group = process_group
        self._made: Dict[int, Any] = {}

    @property
    def group(self) -> Any:
        """Looked up when it is used, so that a hook can be made before the group."""
        return group_of(self._process_group)

    def start(self, bucket: Any) -> Work:
        """Starts the average of a bucket; the outcome of the work is [the bucket's buffer]."""
        return self._started([(_dtrain.dtrain_allreduce, self.group._handle, (bucket.buffer(), None, AVG))], bucket)

    def _started(self, calls: Sequence[Tuple[Any, Any, Sequence[Any]]], bucket: Any) -> Work:
        """calls: functions of the library with their handles and arguments."""
        group, params = self.group, self._params(bucket)
        group._mark("gradients")
        try:
            requests = tuple(function(handle, *arguments, params, START) for function, handle, arguments in calls)
        except Exception as error:
            raise translated(error, "gradients") from error
        group._completions.posted(len(requests))
        return group._made(Work("gradients", requests, [bucket.buffer()], None, group._completions))

    def _params(self, bucket: Any) -> Any:
        priority = self._priority(bucket)
        if priority not in self._made:
            group = self.group
            self._made[priority] = operation({"timeout": group._timeout, "priority": priority}, group._completions.queue)
        return self._made[priority]

    def _priority(self, _bucket: Any) -> int:
        return 0


class Prioritized(Hook):
    """Buckets of the first layers, which are ready last and needed first, overtake those of the last layers."""

    def _priority(self, bucket: Any) -> int:
        return bucket.index()  # 0 is ready first


class Compressed(Hook):
    """Sends fewer bytes: kind and settings are those of dtrain.Communicator.compressor(). What a step does not send is
    added to the next one, unless feedback=False. Gradients of other types than float32 are sent as they are."""

    def __init__(self, kind: CompressionLike, process_group: Optional[Any] = None, **settings: Any) -> None:
        super().__init__(process_group)
        self._kind = find(Compression, kind, "kind")
        self._settings = settings
        self._compressors: Dict[int, Tuple[Any, List[Optional[Compressor]]]] = {}

    def start(self, bucket: Any) -> Work:
        if bucket.buffer().dtype != torch.float32:
            return super().start(bucket)
        matrices = self._kind == Compression.POWERSGD
        parts = in_matrices(bucket, self._settings.get("rank") or DEFAULT_RANK) if matrices else [Part(bucket.buffer(), {})]
        compressors = self._compressors_of(bucket, parts)
        return self._started([
            (_dtrain.dtrain_allreduce, self.group._handle, (part.values, None, AVG)) if compressor is None else
            (_dtrain.dtrain_compressor_allreduce, compressor._handle, (part.values, None, AVG))
            for compressor, part in zip(compressors, parts)], bucket)

    def _all(self) -> List[Compressor]:
        return [one for _, compressors in self._compressors.values() for one in compressors if one is not None]

    def stats(self) -> Dict[str, float]:
        """Sums over all compressors of what Compressor.stats() says: operations, raw_bytes, sent_bytes, residual. What
        is sent as it is does not count."""
        total: Dict[str, float] = {}
        for compressor in self._all():
            for name, value in compressor.stats().items():
                total[name] = total.get(name, 0) + value
        return total

    def reset(self) -> None:
        """Discards what earlier steps have kept: after a change of the learning rate, on all ranks."""
        for compressor in self._all():
            compressor.reset()

    def _compressors_of(self, bucket: Any, parts: "Sequence[Part]") -> List[Optional[Compressor]]:
        """Those of the bucket's last step, or new ones: DDP divides the gradients anew after the first step."""
        shapes = [(part.values.numel(), part.settings) for part in parts]
        known = self._compressors.get(bucket.index())
        if known is None or known[0] != shapes:
            for compressor in known[1] if known is not None else ():
                if compressor is not None:
                    compressor.close()
            known = shapes, [self._make(part) for part in parts]
            self._compressors[bucket.index()] = known
        return known[1]

    def _make(self, part: "Part") -> Optional[Compressor]:
        if part.settings is None:
            return None
        try:
            return self.group.communicator.compressor(self._kind, part.values.numel(), **part.settings, **self._settings)
        except Exception as error:
            raise translated(error, "gradients") from error


class Part(NamedTuple):
    """A part of a bucket's buffer. settings: of its own compressor; None: it is sent as it is."""
    values: Any
    settings: Optional[Dict[str, int]]


def in_matrices(bucket: Any, rank: int) -> List[Part]:
    """Each gradient that is a matrix for which a lower rank pays, and all that lies between them: biases, say."""
    buffer, parts, plain = bucket.buffer(), [], 0
    for gradient in bucket.gradients():
        first = (gradient.data_ptr() - buffer.data_ptr()) // buffer.element_size()
        rows = gradient.shape[0] if gradient.dim() > 1 else 1
        if rank * (rows + gradient.numel() // max(rows, 1)) >= gradient.numel():
            continue
        if first > plain:
            parts.append(Part(buffer[plain:first], None))
        plain = first + gradient.numel()
        parts.append(Part(buffer[first:plain], {"rows": rows}))
    if plain < len(buffer):
        parts.append(Part(buffer[plain:], None))
    return parts


class PostLocal(Hook):
    """Averages gradients in the first steps, and leaves the later ones to each rank: with averaging.Periodic, which
    then averages parameters, this is post-local SGD (Lin et al., ICLR 2020)."""

    def __init__(self, begin: int, process_group: Optional[Any] = None) -> None:
        super().__init__(process_group)
        self._begin = begin
        self._step = 0

    def start(self, bucket: Any) -> Work:
        local = self._step >= self._begin
        if bucket.is_last():
            self._step += 1
        return self.group._ended("gradients", [bucket.buffer()]) if local else super().start(bucket)
