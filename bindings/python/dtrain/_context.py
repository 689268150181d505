"""Contexts: transports, memory, and how to join or serve a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import atexit
import json
import os
import re
import sys
import time
from datetime import timedelta
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Union

from . import _arrays, _dtrain, _errors, _gpus
from ._callbacks import Callback, call_with
from ._checks import Path, check_callable, check_kind, check_mapping, path_text
from ._communicator import Communicator
from ._constants import F32, Op
from ._durations import Duration, exact
from ._handle import Closeable
from ._memory import DeviceMemory, Memory, Registration
from ._names import find_op
from ._parameters import fill
from ._request import Reactor, Result
from ._server import Server
from ._settings import DTypeLike

_dtrain.use_package(_errors.make_error, _arrays.adapt, Result, Op, find_op,
                    _arrays.Typed, _gpus.check)

#: Each rank passes some bytes and gets those of all ranks, in rank order.
AllGather = Callable[[bytes], List[bytes]]
LogSink = Callable[[str, str], None]
LEVELS = {_dtrain.DTRAIN_LOG_ERROR: "error", _dtrain.DTRAIN_LOG_WARN: "warn",
          _dtrain.DTRAIN_LOG_INFO: "info", _dtrain.DTRAIN_LOG_DEBUG: "debug"}
ROLES = {_dtrain.DTRAIN_ROLE_WORKER: "worker", _dtrain.DTRAIN_ROLE_SERVER: "server",
         _dtrain.DTRAIN_ROLE_EVALUATOR: "evaluator"}


def check_sized(size: Optional[int], **others: Optional[int]) -> None:
    """Refuses other settings without a size: then they come from the environment."""
    for name, value in others.items():
        if size is None and value is not None:
            raise _errors.InvalidError(f"{name}: {value!r}, without the job's size; give size, too")


class Option(NamedTuple):
    key: str
    default: str
    text: str
    value: str  #: from the environment, or the file that it names


def all_blobs(allgather: AllGather, size: Optional[int], mine: bytes) -> List[bytes]:
    blobs = list(allgather(mine))
    if len(blobs) != size:
        raise ValueError(f"allgather returned bytes of {len(blobs)} ranks, not {size}")
    if any(not isinstance(blob, bytes) or len(blob) != len(mine) for blob in blobs):
        raise ValueError("allgather returned bytes whose lengths differ from this rank's")
    return blobs


def version() -> str:
    """The version of the library."""
    return _dtrain.dtrain_version_string()


def describe_options() -> List[Option]:
    """All options, with their defaults and descriptions."""
    found: List[Option] = []
    bag = _dtrain.dtrain_options_create()
    try:
        while True:
            _, key, default, text = _dtrain.dtrain_options_describe(len(found))
            found.append(Option(key, default, text, _dtrain.dtrain_options_get(bag, key)))
    except _errors.NotFoundError:
        return found
    finally:
        _dtrain.dtrain_options_destroy(bag)


DURATION = re.compile(r"\d+(ns|us|ms|s|min)")


def option_text(value: Any, default: str) -> str:
    """The text of an option's value. A number is in seconds if the option's default is a
    duration."""
    if isinstance(value, bool):
        return ("no", "yes")[value]
    if isinstance(value, timedelta) or (isinstance(value, (int, float)) and DURATION.fullmatch(default)):
        return f"{exact(value, 'options')}ns"
    return str(value)


def make_options(path: Optional[Path], settings: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    bag = _dtrain.dtrain_options_create()
    try:
        fill_options(bag, path, settings, named)
    except BaseException:
        _dtrain.dtrain_options_destroy(bag)
        raise
    return bag


def fill_options(bag: Any, path: Optional[Path], settings: Mapping[str, Any],
                 named: Mapping[str, Any]) -> None:
    if path is not None:
        _dtrain.dtrain_options_load(bag, path_text(path, "options_file"))
    defaults = {option.key: option.default for option in describe_options()}
    keys = {key.replace(".", "_"): key for key in defaults}
    for key, value in [*settings.items(), *((keys.get(n, n), v) for n, v in named.items())]:
        _dtrain.dtrain_options_set(bag, check_kind(key, str, "options"),
                                   option_text(value, defaults.get(key, "")))


def describe_join(rendezvous: Optional[str] = None, *, size: Optional[int] = None,
                  rank: Optional[int] = None, servers: Optional[int] = None) -> Dict[str, Any]:
    """How Context.join() with the same arguments would join from this process: as what, where, and
    what says so or stands against it; and what each launcher's environment says here."""
    check_sized(size, rank=rank, servers=servers)
    params = fill(_dtrain.dtrain_comm_params_t(), {"size": size, "rank": rank, "servers": servers})
    described: Dict[str, Any] = json.loads(_dtrain.dtrain_join_describe(rendezvous, params))
    return described


def role() -> str:
    """As what the environment starts this process: "worker" (also where nothing tells), "server", or
    "evaluator", which is no member of the job and follows its checkpoints (wait_checkpoint())."""
    return ROLES[_dtrain.dtrain_join_role()]


class Context(Closeable):
    """Opens the transports. Options are named with underscores for dots, as in the environment, or
    by their exact keys: Context(op_timeout="10s"), Context({"op.timeout": "10s"}). options_file has
    lines "key = value"; arguments override it. Use it in `with`: at its end everything made with
    the context is closed."""

    def __init__(self, options: Mapping[str, Any] = {}, /, *, log: Optional[LogSink] = None,
                 options_file: Optional[Path] = None, **named: Any) -> None:
        check_mapping(options, "options")
        check_callable(log, "log")
        self._children: List[Any] = []
        self._reactors: Dict[Any, Reactor] = {}
        self._world: Optional[Communicator] = None
        self._log: Any = None
        bag = make_options(options_file, options, named)
        try:
            self._handle = _dtrain.dtrain_context_create(_dtrain.DTRAIN_API_VERSION, bag)
        finally:
            _dtrain.dtrain_options_destroy(bag)
        _open.add(self)
        if log is not None:
            self.set_log(log)

    def join(self, rendezvous: Optional[str] = None, *, size: Optional[int] = None,
             rank: Optional[int] = None, servers: Optional[int] = None,
             timeout: Optional[Duration] = None, allgather: Optional[AllGather] = None,
             newcomer: bool = False) -> Communicator:
        """Joins a job: by the environment, "tcp://host:port", "file:///dir/name", or by bytes that
        `allgather` exchanges ("oob"). Collective. newcomer: it has no rank yet, and waits until the
        workers of a running elastic job take it in (Communicator.reform())."""
        exchange = None
        check_sized(size, rank=rank, servers=servers)
        if newcomer:
            size = _dtrain.DTRAIN_NEWCOMER
        if allgather is not None:
            check_callable(allgather, "allgather")
            exchange = Callback(partial(all_blobs, allgather, size))
            rendezvous = rendezvous or "oob"
        params = fill(_dtrain.dtrain_comm_params_t(),
                      {"size": size, "rank": rank, "servers": servers, "timeout": timeout,
                       "oob": exchange, "oob_arg": exchange})
        return Communicator(self, call_with(exchange, _dtrain.dtrain_comm_create, self._handle,
                                            rendezvous, params))

    def serve(self, rendezvous: Optional[str] = None, *, size: Optional[int] = None,
              servers: Optional[int] = None, index: Optional[int] = None,
              timeout: Optional[Duration] = None) -> Server:
        """Joins a job as a parameter server, which then serves in the background."""
        check_sized(size, servers=servers, index=index)
        params = fill(_dtrain.dtrain_server_params_t(), {"size": size, "servers": servers,
                                                         "index": index, "timeout": timeout})
        return Server(self, _dtrain.dtrain_server_create(self._handle, rendezvous, params))

    @property
    def world(self) -> Communicator:
        """All workers of the job that the environment names (without one, this process alone). The
        first use joins it."""
        if self._world is None or self._world.closed:
            self._world = self.join()
        return self._world

    @property
    def rank(self) -> int:
        return self.world.rank

    @property
    def size(self) -> int:
        return self.world.size

    def describe(self) -> Dict[str, Any]:
        """What this build and machine can do: transports, kernels, limits."""
        return json.loads(_dtrain.dtrain_context_describe(self._handle))

    def progress(self) -> int:
        """Does some work and returns how much; needed with the option progress=manual."""
        return _dtrain.dtrain_context_progress(self._handle)

    def allocate(self, size: int) -> Memory:
        """Allocates memory (size in bytes); collectives between ranks of one host need not copy
        it."""
        return Memory(self, size)

    def device_memory(self, shape: Union[int, Sequence[int]], dtype: DTypeLike = F32, device: int = 0, *,
                      shared: bool = False) -> DeviceMemory:
        """Allocates an array in the memory of a GPU, of which operations need not ask the driver whose it is.
        shared: other processes can map it."""
        return DeviceMemory(self, shape, dtype, device, shared)

    def register(self, array: Any, *, shared: bool = False) -> Registration:
        """Registers an array's memory with the transports. shared: moves its pages into memory that
        the host's other ranks can map. No thread may write to the pages during this call. Of an array on a GPU
        operations need not ask the driver then; shared: other processes can map it."""
        return Registration(self, array, shared)

    def start_timeline(self, path: Path) -> None:
        """Writes a timeline of this rank to a file, for ui.perfetto.dev; %r in path is the rank."""
        _dtrain.dtrain_timeline_start(self._handle, path_text(path))

    def mark_timeline(self, name: str) -> None:
        """Marks this moment in the timeline under the given name."""
        _dtrain.dtrain_timeline_mark(self._handle, name)

    def stop_timeline(self) -> None:
        """Ends the timeline and closes its file."""
        _dtrain.dtrain_timeline_stop(self._handle)

    def device_stats(self, index: int) -> Dict[str, int]:
        """How the index-th transport of describe() has handled the program's memory: bytes copied,
        or used by the network in place; registrations, and counts of their cache."""
        stats = _dtrain.dtrain_device_stats_t()
        _dtrain.dtrain_stats_device(self._handle, index, stats)
        return {name: getattr(stats, name) for name in (
            "copied", "in_place", "registrations", "registered_bytes", "cache_entries",
            "cache_bytes", "cache_hits", "cache_misses", "cache_evictions")}

    def set_log(self, sink: Optional[LogSink]) -> None:
        """Calls sink(level, line) for each line of the log, from any thread; it must not call
        dtrain. Its exceptions go to sys.unraisablehook. None: back to stderr."""
        check_callable(sink, "sink")

        def put(level: int, line: str) -> None:
            if sink is not None:
                sink(LEVELS.get(level, str(level)), line)
        wanted = None if sink is None else put
        _dtrain.dtrain_context_set_log(self._handle, wanted)
        self._log = wanted

    def _end(self) -> None:
        """Ends all operations and callbacks."""
        for child in self._children[::-1]:
            if not isinstance(child, Memory):
                child.close()
        self.set_log(None)

    def _destroy(self) -> None:
        for child in self._children[::-1]:
            child.close()
        for loop, reactor in list(self._reactors.items()):
            reactor.close()
            del self._reactors[loop]
        _dtrain.dtrain_context_destroy(self._handle)
        _open.discard(self)

    def _reactor(self, loop: Any) -> Reactor:
        reactor = self._reactors.get(loop)
        if reactor is None:
            reactor = self._reactors[loop] = Reactor(self, loop)
        return reactor


_open: Set[Context] = set()


def _close_at_exit() -> None:
    """Closes all contexts: operations in flight would otherwise write to memory that the
    interpreter has freed. Operations of daemon threads are aborted."""
    deadline = time.monotonic() + 5
    for context in list(_open):
        while True:
            try:
                if any(isinstance(child, Memory) and child.viewed for child in context._children):
                    context._end()  # the viewed memory stays
                else:
                    context.close()
                break
            except _errors.BusyError as error:
                if time.monotonic() > deadline:
                    print(f"dtrain: a context could not be closed at exit: {error}", file=sys.stderr)
                    break
                for child in context._children:
                    if isinstance(child, Communicator):
                        child.abort("the interpreter of one rank ended")
                time.sleep(0.01)


atexit.register(_close_at_exit)
os.register_at_fork(after_in_child=_open.clear)  # contexts belong to the parent
