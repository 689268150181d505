"""Horovod's API for TensorFlow 2: `import dtrain.horovod.tensorflow as hvd` (docs/HOROVOD.md).

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any

from ..common.exceptions import HorovodInternalError
from . import elastic
from ._allreduce import allreduce, grouped_allreduce
from ._gather import (allgather, alltoall, broadcast, broadcast_, grouped_allgather, grouped_reducescatter,
                      reducescatter)
from ._legacy import BroadcastGlobalVariablesHook, DistributedLegacyOptimizer, LegacyOptimizer
from ._reduction import Reduction, check_adasum, check_settings
from ._tape import DistributedGradientTape, PartialDistributedGradientTape
from .compression import Compression
from .functions import (allgather_object, broadcast_global_variables, broadcast_object, broadcast_object_fn,
                        broadcast_variables)
from .mpi_ops import (Adasum, Average, Max, Min, Product, ProcessSet, Sum, add_process_set, ccl_built,
                      check_num_rank_power_of_2, cross_rank, cross_size, cuda_built, ddl_built, global_process_set,
                      gloo_built, gloo_enabled, handle_average_backwards_compatibility, init, is_homogeneous,
                      is_initialized, join, local_rank, local_rank_op, local_size, local_size_op, mpi_built,
                      mpi_enabled, mpi_threads_supported, nccl_built, process_set_included_op, rank, rank_op,
                      remove_process_set, rocm_built, shutdown, size, size_op, start_timeline, stop_timeline)
from .sync_batch_norm import SyncBatchNormalization
from .util import _executing_eagerly

__all__ = [
    "Adasum", "Average", "BroadcastGlobalVariablesHook", "Compression", "DistributedGradientTape",
    "DistributedOptimizer", "HorovodInternalError", "Max", "Min", "PartialDistributedGradientTape", "ProcessSet",
    "Product", "Sum", "SyncBatchNormalization", "add_process_set", "allgather", "allgather_object", "allreduce",
    "alltoall", "broadcast", "broadcast_", "broadcast_global_variables", "broadcast_object", "broadcast_object_fn",
    "broadcast_variables", "ccl_built", "check_num_rank_power_of_2", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allreduce", "grouped_reducescatter", "handle_average_backwards_compatibility", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_rank_op", "local_size", "local_size_op", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "process_set_included_op", "rank", "rank_op", "reducescatter",
    "remove_process_set", "rocm_built", "shutdown", "size", "size_op", "start_timeline", "stop_timeline"]


def DistributedOptimizer(  # pylint: disable=invalid-name
        optimizer: Any, name: Any = None, use_locking: bool = False, device_dense: str = "", device_sparse: str = "",
        compression: Any = Compression.none, sparse_as_dense: bool = False, backward_passes_per_step: int = 1,
        op: int = Average, gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True) -> Any:
    """An optimizer with the mean of all ranks' gradients: one of Keras as dtrain.horovod.tensorflow.keras makes it, or
    one of tf.compat.v1.train, whose compute_gradients() returns the means."""
    check_settings(op, gradient_predivide_factor, num_groups, groups)
    check_adasum(op, process_set, average_aggregated_gradients)
    if not isinstance(optimizer, LegacyOptimizer):
        if op == Adasum:
            raise ValueError("op == Adasum is not supported yet with Keras")
        from .._keras import _optimizer as of_keras  # pylint: disable=import-outside-toplevel,cyclic-import
        return of_keras.DistributedOptimizer(
            optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
            backward_passes_per_step, average_aggregated_gradients, num_groups, groups, process_set,
            scale_local_gradients)
    if op == Adasum or backward_passes_per_step > 1:
        raise NotImplementedError("DistributedOptimizer of tf.compat.v1.train.Optimizer: op=Adasum and "
                                  "backward_passes_per_step are not supported; use an optimizer of Keras")
    named = name or f"Distributed{type(optimizer).__name__}"
    return DistributedLegacyOptimizer(optimizer, Reduction(named, compression, sparse_as_dense, op,
                                                           gradient_predivide_factor, process_set,
                                                           scale_local_gradients), use_locking)
