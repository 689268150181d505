"""Elastic training with torch: hvd.elastic.run, TorchState, ElasticSampler (docs/HOROVOD.md).

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable

from ...common.elastic import ObjectState, State, reset, run_fn
from .._handles import forget
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


def _reset() -> None:
    forget()
    reset()


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function train(state, ...): it goes on from the last commit after workers were lost, and from rank
    0's state after workers have come. Start the job by `dtrain-run --elastic MIN:MAX` (docs/ELASTIC.md)."""
    return run_fn(func, _reset)
