"""Callbacks for Keras' fit().

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, Dict, Optional

from .._communicator import Communicator
from .._constants import AVG
from ._operations import allreduce
from ._tensorflow import keras, tf
from .variables import broadcast_variables


class BroadcastVariables(keras.callbacks.Callback):
    """Gives the weights of the model and its optimizer rank root's values before the first step; if the model is built
    by that step, after it."""

    def __init__(self, root: int = 0, comm: Optional[Communicator] = None) -> None:
        super().__init__()
        self._root, self._comm, self._done = root, comm, False

    def _broadcast(self) -> None:
        optimizer = self.model.optimizer
        if optimizer is not None and hasattr(optimizer, "build") and not getattr(optimizer, "built", False):
            optimizer.build(self.model.trainable_variables)
        own = [] if optimizer is None else optimizer.variables
        own = own() if callable(own) else own
        broadcast_variables([*self.model.weights, *own], self._root, self._comm)
        self._done = True

    def on_train_begin(self, logs: Any = None) -> None:
        if self.model.built and not self._done:
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not self._done:
            self._broadcast()


class AverageMetrics(keras.callbacks.Callback):
    """Replaces the metrics of an epoch by their means over ranks, for the callbacks after it (early stopping, best
    model, schedules), so that they decide the same on all ranks."""

    def __init__(self, comm: Optional[Communicator] = None) -> None:
        super().__init__()
        self._comm = comm

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        numbers = {name: float(value) for name, value in sorted((logs or {}).items())}
        if logs is not None and numbers:
            means = allreduce(tf.constant(list(numbers.values()), tf.float64), AVG, self._comm)
            logs.update(zip(numbers, means.numpy().tolist()))

