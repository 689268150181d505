"""The functions of dtrain.horovod.keras and dtrain.horovod.tensorflow.keras.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Optional, Sequence

from ...tensorflow._tensorflow import KERAS3, keras, tf
from ..common.basics import Average
from ..common.process_sets import ProcessSet, global_process_set
from ..tensorflow import functions
from ..tensorflow._allreduce import allreduce as reduce_tensor
from ..tensorflow._gather import allgather as gather_tensor
from ..tensorflow._gather import broadcast as copy_tensor
from ..tensorflow._gather import reducescatter as scatter_tensor
from ..tensorflow._reduction import variables_of
from ..tensorflow.compression import Compression
from ._optimizer import DistributedOptimizer


def PartialDistributedOptimizer(  # pylint: disable=invalid-name
        optimizer: Any, name: Any = None, device_dense: str = "", device_sparse: str = "",
        compression: Any = Compression.none, sparse_as_dense: bool = False, gradient_predivide_factor: float = 1.0,
        op: int = Average, backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
        groups: Any = None, process_set: ProcessSet = global_process_set, local_layers: Any = None,
        scale_local_gradients: bool = True) -> Any:
    """DistributedOptimizer() with local layers, whose gradients stay on this rank."""
    made = DistributedOptimizer(optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,
                                gradient_predivide_factor, op, backward_passes_per_step,
                                average_aggregated_gradients, 0, groups, process_set, scale_local_gradients)
    for variable in variables_of(local_layers, keras):
        made.register_local_var(variable)
    return made


def broadcast_global_variables(root_rank: int) -> Any:
    """For graphs of TensorFlow 1."""
    return functions.broadcast_global_variables(root_rank)


def allreduce(value: Any, name: Optional[str] = None, average: Optional[bool] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, op: Optional[int] = None, compression: Any = Compression.none) -> Any:
    """The mean (or another op) of the ranks' values, which are tensors or become such."""
    return reduce_tensor(tf.constant(value), average, name=name, prescale_factor=prescale_factor,
                         postscale_factor=postscale_factor, op=op, compression=compression)


def allgather(value: Any, name: Optional[str] = None) -> Any:
    """The ranks' values, one after the other along the first dimension."""
    return gather_tensor(tf.constant(value), name)


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    """The root's value."""
    return copy_tensor(tf.constant(value), root_rank, name)


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> Any:
    """This rank's rows of the mean (or another op) of the ranks' values."""
    return scatter_tensor(tf.constant(value), name=name, op=op)


def load_model(filepath: Any, custom_optimizers: Optional[Sequence[Any]] = None,
               custom_objects: Optional[Dict[str, Any]] = None, compression: Any = Compression.none,
               legacy_opts: bool = False) -> Any:
    """A saved model, whose optimizer, with its state, becomes a DistributedOptimizer. custom_optimizers: classes that
    Keras does not know. legacy_opts: of no effect; the file says what the optimizer is."""
    del legacy_opts
    known = {kind.__name__: kind for kind in custom_optimizers or ()}
    model = keras.models.load_model(filepath, custom_objects={**known, **(custom_objects or {})})
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        DistributedOptimizer(optimizer, compression=compression)
        if KERAS3:
            model.jit_compile = False  # load_model() has compiled it as it was
    return model
