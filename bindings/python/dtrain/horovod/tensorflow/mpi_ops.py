"""Horovod's module of operations: what dtrain.horovod.tensorflow offers of them, under the name by which programs
import it.

SPDX-License-Identifier: Apache-2.0
"""
from ..common.basics import (Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
                             ddl_built, gloo_built, gloo_enabled, is_homogeneous, is_initialized, local_rank,
                             local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
                             shutdown, size, start_timeline, stop_timeline)
from ..common.process_sets import ProcessSet, global_process_set, remove_process_set
from ._allreduce import handle_average_backwards_compatibility
from ._gather import allgather, alltoall, broadcast, broadcast_, grouped_allgather
from ._groups import add_process_set, init
from ._job_ops import join, local_rank_op, local_size_op, process_set_included_op, rank_op, size_op

__all__ = [
    "Adasum", "Average", "Max", "Min", "ProcessSet", "Product", "Sum", "add_process_set", "allgather",
    "alltoall", "broadcast", "broadcast_", "ccl_built", "check_num_rank_power_of_2", "cross_rank",
    "cross_size", "cuda_built", "ddl_built", "global_process_set", "gloo_built", "gloo_enabled",
    "grouped_allgather", "handle_average_backwards_compatibility", "init", "is_homogeneous", "is_initialized", "join",
    "local_rank", "local_rank_op", "local_size", "local_size_op", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "process_set_included_op", "rank", "rank_op", "remove_process_set", "rocm_built", "shutdown", "size",
    "size_op", "start_timeline", "stop_timeline"]


def check_num_rank_power_of_2(num_rank: int) -> bool:
    return num_rank > 0 and num_rank & (num_rank - 1) == 0
