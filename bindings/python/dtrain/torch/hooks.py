"""Hooks for the gradients of DistributedDataParallel:

    model.register_comm_hook(hooks.Compressed("topk", ratio=0.01), hooks.reduce)
    model.register_comm_hook(hooks.Prioritized(), hooks.reduce)

A state says how a bucket of gradients is averaged over the ranks. docs/PYTORCH.md says what to choose.
SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, List, Optional, Tuple

from .. import _dtrain
from .._compressor import Compressor
from .._constants import AVG, Compression
from .._names import find
from .._parameters import operation
from .._settings import CompressionLike
from .._ways import START
from ._access import group_of
from ._errors import translated
from ._tensors import wire
from ._torch import torch
from ._work import Work


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
        return self._started(_dtrain.dtrain_allreduce, self.group._handle, bucket)

    def _started(self, average: Any, handle: Any, bucket: Any) -> Work:
        """average: a function of the library, and its handle."""
        group, params = self.group, self._params(bucket)
        array, finish = wire(bucket.buffer(), "gradients", True, True)
        group._mark("gradients")
        try:
            request = average(handle, array, None, AVG, params, START)
        except Exception as error:
            raise translated(error, "gradients") from error
        group._completions.posted(1)
        return group._made(Work("gradients", (request,), [bucket.buffer()], finish, group._completions))

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
        self._compressors: Dict[int, Tuple[Any, Compressor]] = {}

    def start(self, bucket: Any) -> Work:
        if bucket.buffer().dtype != torch.float32:
            return super().start(bucket)
        return self._started(_dtrain.dtrain_compressor_allreduce, self._compressor_of(bucket)._handle, bucket)

    def stats(self) -> Dict[str, float]:
        """Sums over all compressors of what Compressor.stats() says: operations, raw_bytes, sent_bytes, residual."""
        total: Dict[str, float] = {}
        for _, compressor in self._compressors.values():
            for name, value in compressor.stats().items():
                total[name] = total.get(name, 0) + value
        return total

    def reset(self) -> None:
        """Discards what earlier steps have kept: after a change of the learning rate, on all ranks."""
        for _, compressor in self._compressors.values():
            compressor.reset()

    def _compressor_of(self, bucket: Any) -> Compressor:
        """That of the bucket's last step, or a new one: DDP divides the gradients anew after the first step."""
        shapes = matrices_of(bucket) if self._kind == Compression.POWERSGD else len(bucket.buffer())
        known = self._compressors.get(bucket.index())
        if known is None or known[0] != shapes:
            if known is not None:
                known[1].close()
            known = shapes, self._make(bucket, shapes)
            self._compressors[bucket.index()] = known
        return known[1]

    def _make(self, bucket: Any, shapes: Any) -> Compressor:
        settings = dict(self._settings, matrices=shapes) if self._kind == Compression.POWERSGD else self._settings
        try:
            return self.group.communicator.compressor(self._kind, len(bucket.buffer()), **settings)
        except Exception as error:
            raise translated(error, "gradients") from error


def matrices_of(bucket: Any) -> List[Tuple[int, int]]:
    """The shapes, as matrices, of all that lies in a bucket's buffer. Of a window of a convolution: outputs times all else."""
    buffer, shapes, end = bucket.buffer(), [], 0
    for gradient in bucket.gradients():
        first = (gradient.data_ptr() - buffer.data_ptr()) // buffer.element_size()
        if first > end:
            shapes.append((1, first - end))  # between two gradients
        end = first + gradient.numel()
        rows = gradient.shape[0] if gradient.dim() > 1 else 1
        if gradient.numel() > 0:
            shapes.append((rows, gradient.numel() // rows))
    if end < len(buffer):
        shapes.append((1, len(buffer) - end))
    return shapes


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
