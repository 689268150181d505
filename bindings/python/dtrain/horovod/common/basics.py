"""init() and what the process knows after it: ranks, sizes, timelines, and what this build has.

SPDX-License-Identifier: Apache-2.0
"""
import os
from typing import Any, Optional, Sequence, Union

from ..._errors import Error
from . import _job
from ._job import current
from .exceptions import translated
from .process_sets import ProcessSet, init_process_sets

Average, Sum, Adasum, Min, Max, Product = range(6)


def init(comm: Any = None, process_sets: Optional[Union[Sequence[ProcessSet], str]] = None) -> None:
    """Joins the job that the environment names (docs/JOINING.md), or that of a communicator of mpi4py. Without either
    the process is a job by itself. process_sets: sets to register; "dynamic" is always on."""
    if _job.State.job is not None:
        return
    if comm is not None and not hasattr(comm, "Get_rank"):
        if list(comm):
            raise NotImplementedError("init(comm=[...]): start processes for these ranks only, or use process_sets=")
        comm = None
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise ValueError(f'process_sets: {process_sets!r}; a list of ProcessSet, or "dynamic", is needed')
        process_sets = ()
    sets = list(process_sets or ())
    if any(not isinstance(one, ProcessSet) for one in sets):
        raise ValueError("process_sets: a list of ProcessSet is needed")
    _job.start(comm)
    try:
        init_process_sets(sets)
    except BaseException:
        shutdown()
        raise
    path = os.environ.get("HOROVOD_TIMELINE", "")
    if path and path != "DYNAMIC":
        start_timeline(path)


def shutdown() -> None:
    """Ends the operations in flight, on all ranks. init() may be called again."""
    _job.stop()


def is_initialized() -> bool:
    return _job.State.job is not None


def rank() -> int:
    return current().rank


def size() -> int:
    return current().size


def local_rank() -> int:
    """Among the ranks of this host."""
    return current().place.local_rank


def local_size() -> int:
    return current().place.local_size


def cross_rank() -> int:
    """The number of this host, among those that have a rank with this local rank."""
    return current().place.cross_rank


def cross_size() -> int:
    return current().place.cross_size


def is_homogeneous() -> bool:
    """Whether all hosts have equally many ranks."""
    return current().place.homogeneous


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Writes the timeline of rank 0, or of each rank to a file of its own if the path has %r (docs/TIMELINE.md).
    mark_cycles: of no effect; the timeline shows each bucket."""
    del mark_cycles
    job = current()
    if job.rank == 0 or "%r" in file_path:
        try:
            job.timeline.start(file_path)
        except Error as error:
            raise translated(error, f"start_timeline({file_path!r})") from error


def stop_timeline() -> None:
    """Completes the file."""
    current().timeline.stop()


def mpi_threads_supported() -> bool:
    """Operations may be submitted from any thread."""
    current()
    return True


def no(what: str) -> Any:
    def answer() -> bool:
        return False
    answer.__name__ = what
    answer.__doc__ = "False: dtrain moves and reduces data by itself."
    return answer


mpi_enabled = no("mpi_enabled")
mpi_built = no("mpi_built")
ddl_built = no("ddl_built")
ccl_built = no("ccl_built")
cuda_built = no("cuda_built")
rocm_built = no("rocm_built")


def nccl_built() -> int:
    """0: dtrain moves and reduces data by itself."""
    return 0


def gloo_enabled() -> bool:
    """True: as Horovod's Gloo, dtrain needs no MPI."""
    return True


def gloo_built() -> bool:
    """True: as Horovod's Gloo, dtrain needs no MPI."""
    return True
