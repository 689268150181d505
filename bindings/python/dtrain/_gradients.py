"""Gradient queues: named tensors that ranks submit in any order.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Generic, Mapping, Optional

from . import _dtrain
from ._collectives import Array, Done, Found
from ._constants import AVG
from ._durations import Duration
from ._handle import Child
from ._parameters import fill
from ._request import Request, Result
from ._settings import OpLike
from ._ways import Blocking, Started, runner


class GradientOperations(Generic[Done, Found]):
    """Submitted tensors are packed together and reduced once every rank has submitted them."""

    _run: Any  #: (function, *arguments) -> its result, or a request

    def submit(self, name: str, array: Array, out: Array = None, op: OpLike = AVG) -> Done:
        """out (None: in place) = the mean, or another op, of all ranks' arrays of this name."""
        return self._run(_dtrain.dtrain_gradients_submit, name, array, out, op)

    def join(self) -> Found:
        """For a rank without more data: it contributes zeros until all ranks have joined. The
        result's peer is the rank that joined last."""
        return self._run(_dtrain.dtrain_gradients_join)


class BlockingGradients(Blocking, GradientOperations[None, Result]):
    """Each call returns when the operation is done."""


class StartedGradients(Started, GradientOperations[Request, Request]):
    """Each call starts the operation and returns its Request."""


class Gradients(Child, GradientOperations[None, Result]):
    """Made by Communicator.gradients(). `start` offers the operations with requests, so that the
    program can compute while tensors are reduced; `using()` offers them with parameters."""

    def __init__(self, comm: Any, settings: Mapping[str, Any]) -> None:
        params = fill(_dtrain.dtrain_gradients_params_t(), settings)
        super().__init__(comm._context, _dtrain.dtrain_gradients_create(comm._handle, params), comm)
        self._run = runner(self._handle)
        self.start = StartedGradients(self, {})

    def _destroy(self) -> None:
        _dtrain.dtrain_gradients_destroy(self._handle)

    def using(self, *, timeout: Optional[Duration] = None,
              priority: Optional[int] = None) -> "ParameterisedGradients":
        """The same operations with a timeout, or a priority (higher goes first)."""
        return ParameterisedGradients(self, {"timeout": timeout, "priority": priority})

    def stats(self) -> Dict[str, int]:
        """Counts of this rank since the queue was created."""
        stats = _dtrain.dtrain_gradients_counters_t()
        _dtrain.dtrain_gradients_stats(self._handle, stats)
        return {name: getattr(stats, name) for name in (
            "cycles", "exchanges", "tensors", "buckets", "fused_tensors", "fused_bytes", "stalls")}


class ParameterisedGradients(BlockingGradients):
    """A queue's operations with parameters."""

    def __init__(self, owner: Gradients, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, settings)
        self.start = StartedGradients(owner, settings)
