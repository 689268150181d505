"""Elastic training with TensorFlow: hvd.elastic.run, and states of models and variables (docs/HOROVOD.md).

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import functools
from typing import Any, Callable, Iterable, List, Optional

from ...tensorflow._tensorflow import raw, tf
from ..common.basics import rank
from ..common.elastic import ObjectState, State, reset, run_fn
from ..common.exceptions import HorovodInternalError
from ._groups import register
from .functions import broadcast_object, broadcast_variables

__all__ = ["ObjectState", "State", "TensorFlowKerasState", "TensorFlowState", "run"]

#: Errors of ops after which a job that goes on without the lost ranks may succeed. Others are faults of the program.
LOSSES = (tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.DeadlineExceededError, tf.errors.InternalError,
          tf.errors.UnknownError)  # of join() in graphs


def _reset() -> None:
    reset()
    register()


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function train(state, ...): it goes on from the last commit after workers were lost, and from rank
    0's state after workers have come. Start the job by `dtrain-run --elastic MIN:MAX` (docs/ELASTIC.md)."""
    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        try:
            return func(state, *args, **kwargs)
        except LOSSES as error:
            if not any(mark in str(error) for mark in ("dtrain: ", "HorovodInternalError")):
                raise
            raise HorovodInternalError(str(error), lost=True) from error
    return run_fn(wrapper, _reset)


def kept(variables: Iterable[Any]) -> List[Any]:
    """Variables whose values are saved."""
    return [target for target in map(raw, variables) if target.dtype != tf.string]


def all_of(optimizer: Any) -> List[Any]:
    own = optimizer.variables
    return list(own() if callable(own) else own)


class SavedVariables(ObjectState):
    """Variables and plain objects."""

    def __init__(self, **kwargs: Any) -> None:
        self._save_model()
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **kwargs)

    def _all(self) -> List[Any]:
        raise NotImplementedError

    def _save_model(self) -> None:
        self._values = [(variable, variable.numpy().copy()) for variable in kept(self._all())]

    def save(self) -> None:
        self._save_model()
        super().save()

    def restore(self) -> None:
        for variable, value in self._values:
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        broadcast_variables(self._all(), root_rank=0)
        self._save_model()
        super().sync()


class TensorFlowKerasState(SavedVariables):
    """TensorFlowKerasState(model, optimizer, epoch=0, batch=0): the model's and the optimizer's variables, and each
    object as an attribute. optimizer: that of compile() unless it is given. backend: of no effect."""

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        if not getattr(model, "built", True):
            raise ValueError("Model must be built first. Run `model.build(input_shape)`.")
        self.model = model
        self.optimizer = optimizer or model.optimizer
        self.backend = backend
        if hasattr(self.optimizer, "build") and not getattr(self.optimizer, "built", False):
            self.optimizer.build([variable for variable in model.trainable_variables])  # on all ranks alike
        super().__init__(**kwargs)

    def _all(self) -> List[Any]:
        return [*self.model.weights, *all_of(self.optimizer)]


class TensorFlowState(SavedVariables):
    """TensorFlowState(variables, epoch=0, batch=0): variables, and each object as an attribute. Needs eager code.
    session: of no effect."""

    def __init__(self, variables: Optional[Iterable[Any]] = None, session: Any = None, **kwargs: Any) -> None:
        if not tf.executing_eagerly():
            raise NotImplementedError("TensorFlowState: sessions of TensorFlow 1 are not supported; enable eager code")
        self.variables = list(variables if variables is not None else tf.compat.v1.global_variables())
        self.session = session
        super().__init__(**kwargs)

    def _all(self) -> List[Any]:
        return self.variables
