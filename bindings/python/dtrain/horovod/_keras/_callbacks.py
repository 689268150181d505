"""Callbacks of Keras, for fit() on all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, Callable, Dict, Optional, Union

from ...tensorflow._tensorflow import keras, tf
from ..common.basics import Average, rank, size
from ..common.process_sets import global_process_set
from ..tensorflow._allreduce import reduced
from ..tensorflow._groups import engine_with_ops
from ..tensorflow._reduction import LocalVariables
from ..tensorflow.elastic import all_of
from ..tensorflow.functions import broadcast_variables

Base: Any = keras.callbacks.Callback


class BroadcastGlobalVariablesCallback(Base):
    """Gives the weights of the model and its optimizer the root's values after the first batch, when all of them exist.
    local_variables: those that stay as they are. device: of no effect."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        super().__init__()
        del device
        self.root_rank, self.broadcast_done = root_rank, False
        self._local = LocalVariables()
        for variable in [] if local_variables is None else (
                list(local_variables) if isinstance(local_variables, (list, tuple, set)) else [local_variables]):
            if not isinstance(variable, tf.Variable) and not hasattr(variable, "assign"):
                raise ValueError("All local variables must be of tf.Variable type.")
            self.register_local_var(variable)

    def register_local_var(self, var: Any) -> None:
        """This variable stays as it is."""
        self._local.add(var)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.broadcast_done:
            return
        optimizer = self.model.optimizer
        every = [*self.model.weights, *([] if optimizer is None else all_of(optimizer))]
        broadcast_variables([one for one in every if one not in self._local], self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback(Base):
    """Replaces the metrics of an epoch by their means over ranks. Put it before callbacks that decide by them. device:
    of no effect."""

    def __init__(self, device: str = "") -> None:
        super().__init__()
        del device

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        numbers = {name: float(value) for name, value in sorted((logs or {}).items())}
        if logs is None or not numbers or size() == 1:
            return
        means = reduced([tf.constant(list(numbers.values()), tf.float64)], ["metrics of an epoch"], Average,
                        engine_with_ops(global_process_set))[0]
        logs.update(zip(numbers, means.numpy().tolist()))


class LearningRateScheduleCallback(Base):
    """Sets the learning rate to initial_lr * multiplier from start_epoch on, before end_epoch.

    multiplier: a function of the epoch, or a number m, for m ** (epoch - start_epoch). staircase: once in each epoch;
    else before each batch, of an epoch with a fraction: then steps_per_epoch is needed where fit() does not know it.
    momentum_correction: scales the momentum of a batch whose learning rate changes, where it is a variable: that of
    tf.keras.optimizers.legacy."""

    def __init__(self, initial_lr: float, multiplier: Union[float, Callable[[Any], Any]], start_epoch: int = 0,
                 end_epoch: Optional[int] = None, staircase: bool = True, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase, self.momentum_correction = staircase, momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self._momentum: Optional[float] = None  # to be restored after the batch
        if callable(multiplier):
            self.multiplier = multiplier
        else:
            constant = multiplier
            self.multiplier = lambda epoch: constant ** (epoch - start_epoch)

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = (self.params or {}).get("steps")
            if not self.steps_per_epoch:
                raise ValueError(f"{type(self).__name__}: fit() does not know the steps of an epoch; give "
                                 "steps_per_epoch")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            assert self.steps_per_epoch
            self._adjust(epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(epoch)

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        before, after = learning_rate(optimizer), self.initial_lr * float(self.multiplier(epoch))
        optimizer.learning_rate = after
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and isinstance(momentum, tf.Variable) and before != 0:
            self._momentum = float(momentum.numpy())
            momentum.assign(self._momentum * after / before)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._momentum is not None:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        if logs is not None:
            logs["lr"] = learning_rate(self.model.optimizer)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from initial_lr / size() to initial_lr in the first epochs, batch by batch."""

    def __init__(self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None, verbose: int = 0) -> None:
        super().__init__(initial_lr, self._share, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self.warmup_epochs, self.verbose = warmup_epochs, verbose

    def _share(self, epoch: float) -> float:
        """Counts a batch that has begun, so that an epoch ends with a round number."""
        assert self.steps_per_epoch
        done = epoch + 1 / self.steps_per_epoch
        return (done * (size() - 1) / self.warmup_epochs + 1) / size()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch == self.warmup_epochs - 1 and self.verbose > 0 and rank() == 0:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to "
                  f"{learning_rate(self.model.optimizer):g}.")


def learning_rate(optimizer: Any) -> float:
    return float(tf.convert_to_tensor(optimizer.learning_rate).numpy())


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Keras' ModelCheckpoint of the best model. filepath, which Horovod has not, may be set later as an attribute."""

    def __init__(self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False,
                 mode: str = "auto", save_freq: Any = "epoch", filepath: Any = None) -> None:
        if filepath is None:
            filepath = "best.weights.h5" if save_weights_only else "best.keras"
        super().__init__(filepath=filepath, monitor=monitor, verbose=verbose, save_best_only=True,
                         save_weights_only=save_weights_only, mode=mode, save_freq=save_freq)
