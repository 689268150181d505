"""How gradients of a step are reduced: all of them in one op, by names that depend on their number alone.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
import os
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ...tensorflow._tensorflow import as_written, raw, tf
from ..common._knobs import flag
from ..common.basics import Adasum, Average
from ..common.process_sets import ProcessSet, ranks_of
from ._allreduce import divided, gathered_slices, members, reduced
from ._groups import engine_with_ops


def is_elastic() -> bool:
    return flag(os.environ, "DTRAIN_ELASTIC") or flag(os.environ, "HOROVOD_ELASTIC")


class LocalVariables:
    """Variables whose gradients stay on this rank."""

    def __init__(self) -> None:
        self._held: Dict[int, Any] = {}  # by identity: variables of Keras 3 have no ref()

    def add(self, variable: Any) -> None:
        self._held[id(raw(variable))] = variable

    def __contains__(self, variable: object) -> bool:
        return id(raw(variable)) in self._held


class Reduction(NamedTuple):
    """Settings of tapes and optimizers."""
    name: str
    compression: Any
    sparse_as_dense: bool
    op: int
    predivide: float  #: with Average: divides before the sum and multiplies after it
    process_set: ProcessSet
    scale_local: bool  #: gradients of local variables are divided by the number of ranks

    @as_written
    def __call__(self, gradients: Sequence[Any], variables: Sequence[Any], local: LocalVariables) -> List[Any]:
        """The gradients of all ranks; None where there is none, on all ranks alike."""
        given = [tf.convert_to_tensor(one) if self.sparse_as_dense and isinstance(one, tf.IndexedSlices) else one
                 for one in gradients]
        number = self.process_set.process_set_id
        if number is not None and (not self.process_set.included() or
                                   (len(ranks_of(number)) == 1 and not is_elastic())):
            return given
        engine = engine_with_ops(self.process_set)
        shared = [index for index, variable in enumerate(variables)
                  if given[index] is not None and variable not in local]
        sparse = [index for index in shared if isinstance(given[index], tf.IndexedSlices)]
        dense = [index for index in shared if index not in sparse]
        found = list(given)
        if sparse:
            for index, one in zip(sparse, gathered_slices([given[index] for index in sparse], self.op, engine)):
                found[index] = one
        if dense:
            pairs = [self.compression.compress(tf.convert_to_tensor(given[index])) for index in dense]
            before, after = (1.0 / self.predivide, self.predivide) if self.op == Average else (1.0, 1.0)
            sums = reduced([sent for sent, _ in pairs], members(f"gradients.{self.name}", len(dense)), self.op, engine,
                           before, after)
            for index, one, (_, context) in zip(dense, sums, pairs):
                found[index] = self.compression.decompress(one, context)
        if self.scale_local:
            for index, variable in enumerate(variables):
                if found[index] is not None and variable in local:
                    found[index] = shared_out(found[index], engine)
        return found


def shared_out(gradient: Any, engine: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(divided(gradient.values, engine), gradient.indices, gradient.dense_shape)
    return divided(gradient, engine)


def check_settings(op: int, predivide: float, num_groups: int, groups: Any) -> None:
    """groups have no effect: all gradients of a step travel together."""
    if predivide != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`", DeprecationWarning, stacklevel=3)
        groups = num_groups if groups is None else groups
    if groups is not None and not isinstance(groups, list) and not groups > 0:
        raise ValueError("groups should be a non-negative integer or a list of list of tf.Variable.")


def check_adasum(op: int, process_set: ProcessSet, average_aggregated_gradients: bool = False) -> None:
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("Adasum does not support average_aggregated_gradients == True")
    if op == Adasum and process_set.process_set_id != 0:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")


def variables_of(layers: Any, keras: Any) -> List[Any]:
    """The trainable variables of local layers: one layer, several, or None."""
    listed: Optional[Any] = [] if layers is None else [layers] if isinstance(layers, keras.layers.Layer) else layers
    listed = list(listed or [])
    if not all(isinstance(layer, keras.layers.Layer) for layer in listed):
        raise ValueError("All local layers must be of tf.keras.layers.Layer type.")
    return [variable for layer in listed for variable in layer.trainable_weights]
