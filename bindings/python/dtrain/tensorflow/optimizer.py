"""Keras optimizers that apply the gradients of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any

from ._reduce import reduction
from ._tensorflow import KERAS3, keras


def DistributedOptimizer(optimizer: Any, **settings: Any) -> Any:  # pylint: disable=invalid-name
    """Makes an optimizer of Keras (2 or 3) apply the mean of all ranks' gradients, which travel in one op, and returns
    it: the same object, with its state, in a class made of its own. It is saved as what it was. settings: comm, op,
    wire (the type in which gradients travel, for example "bfloat16"), sparse_as_dense, timeout.

    A keras.optimizers.LossScaleOptimizer that a program makes goes inside, so that all ranks skip the same steps."""
    if not isinstance(optimizer, keras.optimizers.Optimizer) and not hasattr(optimizer, "apply_gradients"):
        raise TypeError(f"DistributedOptimizer: an optimizer of Keras is needed, not {type(optimizer).__name__}")
    if distributed(optimizer):
        raise ValueError("DistributedOptimizer: the optimizer is distributed already")
    kind = type(optimizer)
    made = type(kind.__name__, (kind,), {**(OF_KERAS3 if KERAS3 else OF_KERAS2), "__module__": kind.__module__,
                                         "__doc__": kind.__doc__, "_dtrain_kind": kind,
                                         "_dtrain_again": staticmethod(lambda other: DistributedOptimizer(
                                             other, **settings))})
    object.__setattr__(optimizer, "__class__", made)
    object.__setattr__(optimizer, "_dtrain_reduce", reduction(**settings))
    return optimizer


def distributed(optimizer: Any) -> bool:
    return hasattr(type(optimizer), "_dtrain_kind")


def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
    return super(parent(self), self).apply(self._dtrain_reduce(grads), trainable_variables)


def apply_gradients(self: Any, grads_and_vars: Any, *arguments: Any, **more: Any) -> Any:
    pairs = list(grads_and_vars)
    gradients = self._dtrain_reduce([gradient for gradient, _ in pairs])
    return super(parent(self), self).apply_gradients(
        [(gradient, variable) for gradient, (_, variable) in zip(gradients, pairs)], *arguments, **more)


def parent(optimizer: Any) -> Any:
    """The class made by DistributedOptimizer, which a program may have derived from."""
    return next(kind for kind in type(optimizer).__mro__ if "_dtrain_kind" in vars(kind))


OF_KERAS3 = {"apply": apply}
OF_KERAS2 = {"apply_gradients": apply_gradients}
