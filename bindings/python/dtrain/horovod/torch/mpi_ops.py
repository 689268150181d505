"""Horovod's module of operations: what dtrain.horovod.torch offers of them, under the name by which programs import it.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any

from ..common import basics
from ..common._join import join as join_sets
from ..common._job import current
from ..common.basics import (Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
                             ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
                             local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
                             size, start_timeline, stop_timeline)
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, add_process_set, engine_of, global_process_set, remove_process_set
from ._allreduce import (allreduce, allreduce_, allreduce_async, allreduce_async_, grouped_allreduce,
                        grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_, sparse_allreduce_async)
from ._calls import Barrier
from ._gather import (allgather, allgather_async, alltoall, alltoall_async, broadcast, broadcast_, broadcast_async,
                      broadcast_async_, grouped_allgather, grouped_allgather_async, grouped_reducescatter,
                      grouped_reducescatter_async, reducescatter, reducescatter_async)
from ._handles import forget, poll, start, synchronize

__all__ = [
    "Adasum", "Average", "HorovodInternalError", "Max", "Min", "ProcessSet", "Product", "Sum", "add_process_set",
    "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall",
    "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "global_process_set",
    "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async",
    "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async",
    "remove_process_set", "rocm_built", "shutdown", "size", "sparse_allreduce_async", "start_timeline",
    "stop_timeline", "synchronize"]


def shutdown() -> None:
    """Ends the operations in flight, on all ranks. init() may be called again."""
    basics.shutdown()
    forget()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it."""
    synchronize(start(Barrier(), process_set))


def join(device: Any = -1) -> int:
    """For a rank without more data: until all ranks have called it, this one contributes zeros to the others'
    all-reduces. Returns the rank that joined last. device: of no effect."""
    del device
    return join_sets(current())
