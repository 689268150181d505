"""Process sets: operations of some of the ranks.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Iterable, List, Optional, Sequence, Union

from ..._communicator import Communicator
from ..._errors import Error
from ._engine import Engine
from ._job import current
from .exceptions import HorovodInternalError, translated


class ProcessSet:
    """Some ranks, in ascending order. Give it to init(), or to add_process_set()."""
    process_set_id: Optional[int] = None
    ranks: Optional[List[int]] = None
    mpi_comm: Any = None

    def __init__(self, ranks_or_comm: Union[Iterable[int], Any]) -> None:
        if not isinstance(ranks_or_comm, Iterable):
            raise ValueError("ProcessSet: a list of ranks is needed; dtrain has no communicators of MPI")
        ranks = list(ranks_or_comm)
        if any(not isinstance(rank, int) or isinstance(rank, bool) for rank in ranks):
            raise ValueError(f"ProcessSet: a list of ranks is needed, not {ranks!r}")
        self.ranks = sorted(ranks)

    def _invalidate(self) -> None:
        self.process_set_id = None

    def size(self) -> Optional[int]:
        """The number of its ranks; None before it is registered."""
        if self.process_set_id is None:
            return None
        return len(ranks_of(self.process_set_id))

    def rank(self) -> Optional[int]:
        """This process's place in the set. Operations, such as broadcast, count ranks of the whole job."""
        if self.process_set_id is None:
            return None
        ranks = ranks_of(self.process_set_id)
        if current().rank not in ranks:
            raise ValueError("Process is not part of provided process set.")
        return ranks.index(current().rank)

    def included(self) -> Optional[bool]:
        """Whether this process is in the set."""
        return None if self.ranks is None else current().rank in self.ranks

    @property
    def communicator(self) -> Communicator:
        """Of the global set: the communicator of all ranks, for what Horovod has no calls for, such as tables. All
        ranks make the same calls on it, in the same order. It is another one after workers were lost or have come
        (hvd.elastic)."""
        if self.process_set_id != 0:
            raise ValueError(f"{self} has no communicator for programs; split the one of global_process_set")
        return current().world

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def ranks_of(number: int) -> List[int]:
    try:
        return current().sets[number]
    except KeyError:
        raise ValueError("Process set does not exist or has not been registered.") from None


def engine_of(process_set: ProcessSet) -> Engine:
    """For an operation of this rank."""
    number = process_set.process_set_id
    job = current()
    engine = None if number is None else job.engines.get(number)
    if engine is None:
        why = "has not been registered, or was removed" if number not in job.sets else f"does not have rank {job.rank}"
        raise HorovodInternalError(f"{process_set} {why}")
    return engine


def number_of(ranks: Sequence[int]) -> Optional[int]:
    """Of the set that has these ranks already."""
    return next((number for number, others in current().sets.items() if others == list(ranks)), None)


def init_process_sets(process_sets: Sequence[ProcessSet]) -> None:
    """Registers what init() was given."""
    global_process_set.ranks = list(range(current().size))
    for one in process_sets:
        one._invalidate()
    for one in process_sets:
        add_process_set(one)


def add(ranks: Sequence[int]) -> int:
    job = current()
    if not ranks or ranks[0] < 0 or ranks[-1] >= job.size or len(set(ranks)) != len(ranks):
        raise ValueError(f"process set {list(ranks)}: different ranks from 0 to {job.size - 1} are needed, at least "
                         "one")
    try:
        return job.add_set(ranks)
    except Error as error:
        raise translated(error, f"process set {list(ranks)}") from error


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """All ranks of the job call it alike, also those outside the set."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    assert process_set.ranks is not None
    if number_of(process_set.ranks) is not None:
        raise ValueError(f"Attempted to add a duplicate process set: {process_set}")
    process_set.process_set_id = add(process_set.ranks)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """All ranks of the job call it alike. False: there is no such set, or it is the global one."""
    number = process_set.process_set_id
    if number is None or number == 0:
        return False
    process_set._invalidate()
    if number not in current().sets:
        return False
    current().remove_set(number)
    return True
