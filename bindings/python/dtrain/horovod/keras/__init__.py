"""Horovod's API for Keras: `import dtrain.horovod.keras as hvd` (docs/HOROVOD.md).

SPDX-License-Identifier: Apache-2.0
"""
from .._keras._calls import (PartialDistributedOptimizer, allgather, allreduce, broadcast,
                            broadcast_global_variables, load_model, reducescatter)
from .._keras._optimizer import DistributedOptimizer
from ..tensorflow import (Adasum, Average, Compression, ProcessSet, Sum, add_process_set, ccl_built, cross_rank,
                          cross_size, cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled, init,
                          is_initialized, local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported,
                          nccl_built, rank, remove_process_set, rocm_built, shutdown, size, start_timeline,
                          stop_timeline)
from . import callbacks, elastic

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "PartialDistributedOptimizer", "ProcessSet", "Sum",
    "add_process_set", "allgather", "allreduce", "broadcast", "broadcast_global_variables", "callbacks", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built",
    "gloo_enabled", "init", "is_initialized", "load_model", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "rank", "reducescatter", "remove_process_set", "rocm_built", "shutdown",
    "size", "start_timeline", "stop_timeline"]
