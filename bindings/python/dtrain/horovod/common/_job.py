"""The job that this process is in, from init() to shutdown(): its ranks, its hosts, and an engine for each process set.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import atexit
import os
import socket
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..._communicator import Communicator
from ..._context import Context, describe_join
from ..._errors import Error
from ._engine import Engine, groups_of, nothing
from ._knobs import queue_settings
from .exceptions import translated

HOST_BYTES = 256
NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."


class Place(NamedTuple):
    """Where this rank is among the hosts. The cross ranks are those of the same local rank."""
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    homogeneous: bool


def host_name() -> str:
    return os.environ.get("HOROVOD_HOSTNAME") or socket.gethostname()


def place_of(rank: int, hosts: Sequence[str]) -> Place:
    """hosts: of all ranks."""
    groups = list(groups_of([(host, other) for other, host in enumerate(hosts)]).values())
    mine = next(index for index, ranks in enumerate(groups) if rank in ranks)
    local_rank, local_size = groups[mine].index(rank), len(groups[mine])
    across = [index for index, ranks in enumerate(groups) if len(ranks) > local_rank]
    return Place(local_rank, local_size, across.index(mine), len(across), len({len(ranks) for ranks in groups}) == 1)


class Timeline:
    """The file of this rank."""

    def __init__(self, context: Context, engines: Dict[int, Engine]) -> None:
        self._context, self._engines = context, engines
        self._path: Optional[str] = None

    def start(self, path: str) -> None:
        """Ends the one before. Of process sets that are added later the names are not written."""
        self.stop()
        self._context.start_timeline(path)
        self._path = path
        for engine in self._engines.values():
            engine.mark = self._context.mark_timeline

    def stop(self) -> None:
        path, self._path = self._path, None
        if path is None:
            return
        for engine in self._engines.values():
            engine.mark = nothing
        self._context.stop_timeline()
        if "%r" not in path:  # where Horovod's programs look for it
            os.replace(f"{path}.0.json", path)


class Job:
    """world: the communicator for calls that all ranks make in one order, in the program's thread."""

    def __init__(self, context: Optional[Context], world: Communicator) -> None:
        self.context = context  #: None: it belongs to the caller
        self.world = world
        self.process = os.getpid()
        self.rank, self.size = world.rank, world.size
        self.place = place_of(self.rank, self._hosts())
        self.engines: Dict[int, Engine] = {}  #: by the number of the process set
        self.timeline = Timeline(world._context, self.engines)
        self.sets: Dict[int, List[int]] = {}  #: their ranks
        self._next = 0
        self.add_set(range(self.size))

    def _hosts(self) -> List[str]:
        mine = bytearray(host_name().encode()[:HOST_BYTES].ljust(HOST_BYTES, b"\0"))
        found = bytearray(HOST_BYTES * self.size)
        self.world.allgather(mine, found)
        return [bytes(found[at:at + HOST_BYTES]).rstrip(b"\0").decode(errors="replace")
                for at in range(0, len(found), HOST_BYTES)]

    def add_set(self, ranks: Sequence[int]) -> int:
        """All ranks of the job call it alike. Returns the set's number."""
        ranks = sorted(ranks)
        comm = self.world.subset(ranks)
        number = self._next
        self._next += 1
        self.sets[number] = list(ranks)
        if comm is not None:
            self.engines[number] = Engine(comm, ranks, queue_settings())
        return number

    def remove_set(self, number: int) -> None:
        """All ranks of the job call it alike."""
        self.world.barrier()
        del self.sets[number]
        engine = self.engines.pop(number, None)
        if engine is not None:
            engine.close()

    def close_engines(self) -> None:
        self.timeline.stop()
        for number in sorted(self.engines, reverse=True):
            self.engines.pop(number).close()

    def close(self) -> None:
        if self.process != os.getpid():
            return  # of the parent, before a fork
        self.close_engines()
        if self.context is not None:
            self.context.close()


class State:
    """What this process knows. The world outlives shutdown(), so that init() works again under every launcher."""
    job: Optional[Job] = None
    kept: Optional[Job] = None
    described: Dict[str, Any] = {}  #: how the environment said that the world is joined


def current() -> Job:
    if State.job is None:
        raise ValueError(NOT_INITIALIZED)
    return State.job


def start(comm: Any = None) -> Job:
    """comm: None: the job that the environment names; or a communicator of mpi4py, by which the ranks meet."""
    queue_settings()  # refuses wrong ones before others wait for this rank
    described = describe_join() if comm is None else {}
    kept, State.kept = State.kept, None
    if kept is not None:
        # Ray and Spark use processes again, for other jobs.
        same = comm is None and kept.process == os.getpid() and described == State.described
        if same and kept.world.error is None:
            State.job = Job(kept.context, kept.world)
            return State.job
        kept.close()
    State.described = described
    context = Context()
    try:
        if comm is None:
            world = context.world
        else:
            world = context.join(size=comm.Get_size(), rank=comm.Get_rank(), allgather=comm.allgather)
        State.job = Job(context, world)
    except Error as error:
        context.close()
        raise translated(error, "hvd.init()") from error
    except BaseException:
        context.close()
        raise
    return State.job


def stop() -> None:
    """Ends the operations; the world stays, for another init()."""
    job, State.job = State.job, None
    if job is None or job.process != os.getpid():
        return
    job.close_engines()
    State.kept = job


def reform() -> None:
    """The next generation of an elastic job: without the ranks that are lost, and with those that wait."""
    job = State.job or State.kept
    if job is None:
        start()
        return
    State.job = State.kept = None
    job.close_engines()
    try:
        world = job.world.reform()
    except Error as error:
        State.kept = job
        raise translated(error, "hvd.elastic: taking in and leaving out workers") from error
    job.world.close()
    assert world is not None  # only None for a worker that leaves
    State.job = Job(job.context, world)


def end_all() -> None:
    for job in (State.job, State.kept):
        if job is not None:
            job.close()
    State.job = State.kept = None


atexit.register(end_all)
