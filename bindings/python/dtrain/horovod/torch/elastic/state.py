"""The state of a program of torch: models, optimizers, samplers and plain objects.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import copy
from typing import Any, Dict, List, Tuple, Type

from ...common.elastic import ObjectState
from .._tensors import torch
from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ..mpi_ops import rank
from .sampler import ElasticSampler


class StateHandler:
    """Saves, restores and passes on one object that has state_dict() and load_state_dict()."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        """Passes rank 0's on to all ranks."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        self.value = value
        self.save()


class ModelStateHandler(StateHandler):
    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(StateHandler):
    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(StateHandler):
    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), 0, "sampler"))
        self.save()


_handler_registry: List[Tuple[Any, Type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> List[Tuple[Any, Type[StateHandler]]]:
    """Pairs of a class and of the handler for its objects; the first that fits is taken."""
    return _handler_registry


def set_handler_registry(registry: List[Tuple[Any, Type[StateHandler]]]) -> None:
    global _handler_registry
    _handler_registry = registry


def handler_of(value: Any) -> Any:
    return next((handler(value) for kind, handler in _handler_registry if isinstance(value, kind)), None)


class TorchState(ObjectState):
    """TorchState(model=model, optimizer=optimizer, epoch=0, batch=0): each is an attribute. Objects for which a handler
    is registered are saved by it, all others as they are: assign new ones instead of changing them."""

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        handlers: Dict[str, Any] = {}
        plain: Dict[str, Any] = {}
        for name, value in {**kwargs, "model": model, "optimizer": optimizer}.items():
            handler = handler_of(value)
            if handler is not None:
                handlers[name] = handler
            else:
                plain[name] = value
        self._handlers = handlers
        for name, handler in handlers.items():
            object.__setattr__(self, name, handler.value)
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **plain)

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for name in sorted(self._handlers):
            self._handlers[name].sync()
        super().sync()

    def reset(self) -> None:
        for handler in self._handlers.values():
            if hasattr(handler.value, "reset"):
                handler.value.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        handlers = self.__dict__.get("_handlers", {})
        if name in handlers:
            handlers[name].set_value(value)
        object.__setattr__(self, name, value)
