"""Averages of parameters instead of gradients, for models without DistributedDataParallel (or with PostLocal):

    average = averaging.Periodic(model.parameters(), every=8)       # local SGD
    average = averaging.Neighbors(model.parameters(), "ring")       # decentralized SGD
    ...
    optimizer.step()
    average.step()

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Iterable, List, Optional

from .. import _dtrain
from .._constants import AVG
from .._graph import Graph
from .._settings import TopologyLike
from ._access import group_of
from ._errors import translated
from ._tensors import copy_parts, return_parts
from ._torch import torch


class Average:
    """Parameters of one type travel together: they are copied into one buffer, and back."""

    def __init__(self, parameters: Iterable[Any], process_group: Optional[Any]) -> None:
        self._group = group_of(process_group)
        by_dtype: Dict[Any, List[Any]] = {}
        for parameter in parameters:
            by_dtype.setdefault(parameter.dtype, []).append(parameter)
        if not by_dtype:
            raise ValueError("parameters: there is none")
        self._buffers = [(torch.empty(sum(one.numel() for one in same), dtype=dtype, device="cpu"), same)
                         for dtype, same in by_dtype.items()]

    def now(self) -> None:
        """Averages the parameters. All ranks of the group call it."""
        with torch.no_grad():
            for buffer, parameters in self._buffers:
                parts = buffer.split([one.numel() for one in parameters])
                copy_parts(parts, parameters)
                self._average(buffer)
                return_parts(parts, parameters)

    def _average(self, buffer: Any) -> None:
        self._group._run("average of parameters", _dtrain.dtrain_allreduce, (buffer, None, AVG))


class Periodic(Average):
    """Local SGD: ranks train alone, and average their parameters every so many steps. begin: the step after which this
    begins, when ranks have trained together before (post-local SGD, with hooks.PostLocal)."""

    def __init__(self, parameters: Iterable[Any], every: int, begin: int = 0, process_group: Optional[Any] = None) -> None:
        super().__init__(parameters, process_group)
        if every < 1:
            raise ValueError(f"every: {every}; it must be at least 1")
        self._every = every
        self._begin = begin
        self._steps = 0

    def step(self) -> bool:
        """Called after each step of the optimizer. Whether it has averaged."""
        self._steps += 1
        due = self._steps > self._begin and (self._steps - self._begin) % self._every == 0
        if due:
            self.now()
        return due


class Neighbors(Average):
    """Decentralized SGD: each rank averages with its neighbors in a graph, and with no others. topology and settings are
    those of dtrain.Communicator.graph()."""

    def __init__(self, parameters: Iterable[Any], topology: TopologyLike, process_group: Optional[Any] = None,
                 **settings: Any) -> None:
        super().__init__(parameters, process_group)
        try:
            self.graph: Graph = self._group.communicator.graph(topology, **settings)
        except Exception as error:
            raise translated(error, "graph of neighbors") from error

    def step(self) -> None:
        self.now()

    def _average(self, buffer: Any) -> None:
        try:
            self.graph.average(buffer)
        except Exception as error:
            raise translated(error, "average of parameters") from error
