"""Tapes whose gradients are those of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List, Optional, Tuple

from ...tensorflow._tensorflow import keras, tf
from ..common.basics import Average
from ..common.process_sets import ProcessSet, global_process_set
from ._reduction import LocalVariables, Reduction, check_adasum, check_settings, variables_of
from .compression import Compression


class Distributed:
    """What such a tape is besides a tape."""
    _reduction: Reduction
    _local: LocalVariables

    def register_local_source(self, source: Any) -> None:
        """The gradients of this variable stay on this rank."""
        self._local.add(source)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, use_generic_names: bool = False,
                 **more: Any) -> Any:
        """The mean (or another op) of the ranks' gradients. use_generic_names: of no effect."""
        del use_generic_names
        tape: Any = super()
        flat = tf.nest.flatten(sources)
        gradients = tape.gradient(target, flat, output_gradients, **more)
        return tf.nest.pack_sequence_as(sources, self._reduction(gradients, flat, self._local))

    def get_local_and_global_gradients(self, target: Any, sources: Any, output_gradients: Any = None,
                                       use_generic_names: bool = False) -> Tuple[List[Any], List[Any]]:
        """Pairs of variables and gradients: those that stay on this rank, and all others."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        return ([(source, one) for source, one in pairs if source in self._local],
                [(source, one) for source, one in pairs if source not in self._local])


def DistributedGradientTape(  # pylint: disable=invalid-name
        gradtape: Any, device_dense: str = "", device_sparse: str = "", compression: Any = Compression.none,
        sparse_as_dense: bool = False, op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: Any = None, process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True) -> Any:
    """The tape, with gradient() that returns the mean (or another op) of all ranks' gradients, which travel in one op.

    compression: Compression.fp16, say. sparse_as_dense: gradients of embeddings are added up as dense ones; else their
    rows are gathered. gradient_predivide_factor: with Average, divides before the sum and multiplies after.
    scale_local_gradients: divides gradients of local sources by the number of ranks. groups, device_dense and
    device_sparse have no effect."""
    del device_dense, device_sparse
    check_settings(op, gradient_predivide_factor, num_groups, groups)
    check_adasum(op, process_set)
    kind = type(gradtape)
    made: Any = object.__new__(type(kind.__name__, (Distributed, kind), {}))
    made.__dict__.update(gradtape.__dict__)
    made._reduction = Reduction("DistributedGradientTape", compression, sparse_as_dense, op, gradient_predivide_factor,
                                process_set, scale_local_gradients)
    made._local = LocalVariables()
    return made


def PartialDistributedGradientTape(  # pylint: disable=invalid-name
        gradtape: Any, device_dense: str = "", device_sparse: str = "", compression: Any = Compression.none,
        sparse_as_dense: bool = False, op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: Any = None, process_set: ProcessSet = global_process_set, local_layers: Any = None,
        scale_local_gradients: bool = True) -> Any:
    """DistributedGradientTape() with local layers, whose gradients stay on this rank."""
    made = DistributedGradientTape(gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
                                   gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    for variable in variables_of(local_layers, keras):
        made.register_local_source(variable)
    return made
