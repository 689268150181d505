"""Optimizers of Keras that apply the gradients of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, List, Sequence

from ...tensorflow._tensorflow import KERAS3, raw, tf
from ..common.basics import Average, Sum
from ..common.process_sets import ProcessSet, global_process_set
from ..tensorflow._reduction import LocalVariables, Reduction, check_settings
from ..tensorflow.compression import Compression
from ..tensorflow.gradient_aggregation import LocalGradientAggregation

LOCAL, HELPER = "_hvd_local", "_hvd_helper"


class Shared:
    """Of the class made for an optimizer. Settings are the class's, so that from_config() makes another such optimizer;
    they are kept out of what Keras tracks and saves."""
    _hvd_reduction: Reduction
    _hvd_passes: int
    _hvd_average: bool

    def register_local_var(self, var: Any) -> None:
        """The gradients of this variable stay on this rank."""
        kept(self, LOCAL, LocalVariables).add(var)

    @property
    def _agg_helper(self) -> Any:
        if self._hvd_passes == 1:
            return None
        return kept(self, HELPER, lambda: LocalGradientAggregation(
            self._hvd_reduction, self._hvd_passes, self._hvd_average, kept(self, LOCAL, LocalVariables)))

    def _hvd_reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        if self._agg_helper is not None:
            return self._agg_helper.compute_gradients(list(gradients), list(variables))
        return self._hvd_reduction(list(gradients), list(variables), kept(self, LOCAL, LocalVariables))


def kept(optimizer: Any, name: str, make: Any) -> Any:
    found = optimizer.__dict__.get(name)
    if found is None:
        found = make()
        object.__setattr__(optimizer, name, found)
    return found


class OfKeras3(Shared):
    """Keras 3 gives gradients to apply(), in fit() as in loops of programs."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        mine: Any = self
        variables = list(mine._trainable_variables if trainable_variables is None else trainable_variables)
        parent: Any = super()
        gradients = self._hvd_reduced(list(grads), variables)
        if self._agg_helper is None:
            return parent.apply(gradients, trainable_variables)
        if not mine.built:
            with tf.init_scope():
                mine.build(variables)
        return self._agg_helper.apply_gradients(lambda: parent.apply(gradients, trainable_variables),
                                                raw(mine.iterations))


class OfKeras2(Shared):
    """As in Horovod: minimize() and fit() compute gradients by these methods, and apply_gradients() takes them as they
    are."""

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None, **more: Any) -> Any:
        return self._compute_gradients(loss, var_list, tape=tape, **more)

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None) -> Any:
        parent: Any = super()
        if tape is None and not callable(loss):
            raise ValueError("compute_gradients: give a tape, or a loss that can be called")
        tape = tf.GradientTape() if tape is None else tape
        if hasattr(parent, "_compute_gradients"):  # of tf.keras.optimizers.legacy
            pairs = parent._compute_gradients(loss, var_list, grad_loss, tape=tape)
        else:
            pairs = parent.compute_gradients(loss, var_list, tape=tape)
        gradients, variables = zip(*pairs)
        return list(zip(self._hvd_reduced(gradients, variables), variables))

    def get_gradients(self, loss: Any, params: Any) -> Any:
        parent: Any = super()
        return self._hvd_reduced(parent.get_gradients(loss, params), params)

    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **more: Any) -> Any:
        parent: Any = super()
        pairs = list(grads_and_vars)
        if self._agg_helper is None:
            return parent.apply_gradients(pairs, *arguments, **more)
        mine: Any = self
        if hasattr(mine, "build") and not getattr(mine, "_built", False):
            with tf.init_scope():
                mine.build([variable for _, variable in pairs])
        return self._agg_helper.apply_gradients(lambda: parent.apply_gradients(pairs, *arguments, **more),
                                                mine.iterations)


def distributed(optimizer: Any, settings: Dict[str, Any]) -> Any:
    """The optimizer itself, in a class made of its own. It is saved as what it was."""
    kind = getattr(type(optimizer), "_dtrain_kind", type(optimizer))
    part: Any = OfKeras3 if KERAS3 else OfKeras2
    made = type(kind.__name__, (part, kind), {**settings, "__module__": kind.__module__, "__doc__": kind.__doc__,
                                              "_dtrain_kind": kind, "_dtrain_again": staticmethod(
                                                  lambda other: distributed(other, settings))})
    object.__setattr__(optimizer, "__class__", made)
    return optimizer


def DistributedOptimizer(  # pylint: disable=invalid-name
        optimizer: Any, name: Any = None, device_dense: str = "", device_sparse: str = "",
        compression: Any = Compression.none, sparse_as_dense: bool = False, gradient_predivide_factor: float = 1.0,
        op: int = Average, backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True) -> Any:
    """Makes an optimizer of Keras apply the mean of all ranks' gradients, which travel in one op, and returns it: the
    same object, with its state. It is saved as what it was.

    compression: Compression.fp16, say. sparse_as_dense: gradients of embeddings are added up as dense ones; else their
    rows are gathered. gradient_predivide_factor: divides before the sum and multiplies after. backward_passes_per_step:
    how many batches add up before gradients are reduced; average_aggregated_gradients: and are divided by that.
    scale_local_gradients: divides gradients of local variables by the number of ranks. groups, device_dense and
    device_sparse have no effect."""
    del device_dense, device_sparse
    if op not in (Average, Sum):
        raise ValueError("op currently only supports Average and Sum")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    check_settings(op, gradient_predivide_factor, num_groups, groups)
    named = name or f"Distributed{getattr(type(optimizer), '_dtrain_kind', type(optimizer)).__name__}"
    return distributed(optimizer, {
        "_hvd_reduction": Reduction(named, compression, sparse_as_dense, op, gradient_predivide_factor, process_set,
                                    scale_local_gradients),
        "_hvd_passes": backward_passes_per_step, "_hvd_average": average_aggregated_gradients})
