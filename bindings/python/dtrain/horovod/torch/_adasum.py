"""DistributedOptimizer with op=Adasum: each rank makes the step of each parameter for itself, and the steps are
combined.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ..common.basics import Adasum
from ._allreduce import allreduce_async_
from ._handles import synchronize
from ._hooks import watch
from ._tensors import torch


class AdasumDeltas:
    """The part of such an optimizer that is not the optimizer."""

    def _distribute(self, named: Sequence[Tuple[str, Any]], compression: Any, passes: int) -> None:
        mine: Any = self
        self._compression = compression
        self._parameter_names = {parameter: name for name, parameter in named}
        self._passes = passes
        self._left: Dict[Any, int] = {}
        self._starts: Dict[Any, Any] = {}
        self._handles: Dict[Any, Tuple[int, Any]] = {}
        self._reset_passes()
        self._required: List[Any] = [parameter for group in mine.param_groups for parameter in group["params"]
                                     if parameter.requires_grad]
        self._watched = watch(self._required, self._computed)

    @property
    def backward_passes_per_step(self) -> int:
        return self._passes

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._passes = passes
        self._reset_passes()

    def _reset_passes(self) -> None:
        self._left = {parameter: self._passes for parameter in self._parameter_names}

    def _computed(self, parameter: Any) -> None:
        if self._left[parameter] <= 0:
            raise AssertionError(
                f"The gradient of {self._parameter_names[parameter]} was computed more than backward_passes_per_step "
                "times before step(). Increase backward_passes_per_step to accumulate gradients locally.")
        self._left[parameter] -= 1
        if self._left[parameter] == 0:
            self._combine(parameter)

    def _combine(self, parameter: Any) -> None:
        """Makes the step of this parameter alone, and starts the all-reduce of its difference."""
        mine: Any = self
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        before = [group["params"] for group in mine.param_groups]
        start = parameter.detach().clone()
        for group in mine.param_groups:
            group["params"] = [one for one in group["params"] if one is parameter]
        try:
            parent: Any = super()
            parent.step()
        finally:
            for group, parameters in zip(mine.param_groups, before):
                group["params"] = parameters
        sent, context = self._compression.compress(parameter.detach() - start)
        self._starts[parameter] = start
        self._handles[parameter] = allreduce_async_(sent, name=self._parameter_names[parameter], op=Adasum), context

    def synchronize(self) -> None:
        """Of no effect: steps are combined in step()."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")
        yield  # pylint: disable=unreachable

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = closure() if closure is not None else None
        for parameter in self._required:
            if parameter not in self._handles:
                self._combine(parameter)
        with torch.no_grad():
            for parameter, (handle, context) in self._handles.items():
                delta = self._compression.decompress(synchronize(handle), context)
                parameter.copy_(self._starts[parameter].add_(delta))
        self._handles.clear()
        self._starts.clear()
        self._reset_passes()
        return loss

    def zero_grad(self, *arguments: Any, **named: Any) -> Any:
        if self._handles:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() "
                                 "or optimizer.synchronize(). This is prohibited as it can cause a race condition.")
        parent: Any = super()
        return parent.zero_grad(*arguments, **named)
