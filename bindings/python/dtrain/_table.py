"""Tables: arrays on the servers, dense or sparse (rows by keys).

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import operator
from array import array
from functools import partial
from typing import (TYPE_CHECKING, Any, Dict, Generic, Iterable, List, Mapping, NamedTuple, Optional,
                    Tuple)

from . import _dtrain
from ._callbacks import Callback, call_with
from ._checks import check_callable, check_kind, items, kind, numbers, pack
from ._collectives import Array, Done, Found, Numbers
from ._constants import DType
from ._durations import FOREVER, Duration, nanoseconds
from ._handle import Child
from ._names import find_dtype
from ._parameters import check_names, fill
from ._request import Request, Result
from ._settings import ConsistencySettings, DTypeLike, PlaceFunction, Segment, TableSettings
from ._ways import Blocking, Started, runner

if TYPE_CHECKING:
    from typing_extensions import Unpack

NEWEST = _dtrain.DTRAIN_CHECKPOINT_NEWEST
SLICE_NS = 200 * 1000 ** 2  # of a long wait


class State(NamedTuple):
    """A state array of the rule. count: its numbers; for a sparse table, per row."""
    index: int  # type: ignore[assignment]
    name: str
    dtype: DType
    count: int  # type: ignore[assignment]


class TableOperations(Generic[Done, Found]):
    """Dense tables: operations apply to as many values as the array has, from `first` on. Sparse
    tables: to the rows of keys, a list or array of 64-bit integers (signed ones keep their bits)."""

    _run: Any  #: (function, *arguments) -> its result, or a request

    def push(self, values: Array, first: int = 0) -> Found:
        """Pushes values to the table's rule."""
        return self._run(_dtrain.dtrain_table_push, first, 0, values)

    def pull(self, out: Array, first: int = 0) -> Found:
        """Reads values."""
        return self._run(_dtrain.dtrain_table_pull, first, 0, out)

    def push_pull(self, values: Array, out: Array = None, first: int = 0) -> Found:
        """Pushes and pulls in one round trip; out None: in place. Under BSP this also ends the
        worker's clock."""
        return self._run(_dtrain.dtrain_table_push_pull, first, 0, values, out)

    def set(self, values: Array, first: int = 0) -> Found:
        """Overwrites values, whatever the rule and the clock."""
        return self._run(_dtrain.dtrain_table_set, first, 0, values)

    def push_rows(self, keys: Numbers, values: Array) -> Found:
        """Pushes rows to the table's rule; creates missing rows."""
        return self._run(_dtrain.dtrain_table_push_rows, numbers(keys, "keys"), 0, values)

    def pull_rows(self, keys: Numbers, out: Array) -> Found:
        """Reads rows; a key without a row has its initial values."""
        return self._run(_dtrain.dtrain_table_pull_rows, numbers(keys, "keys"), 0, out)

    def push_pull_rows(self, keys: Numbers, values: Array, out: Array = None) -> Found:
        """Pushes and pulls rows in one round trip; out None: in place."""
        return self._run(_dtrain.dtrain_table_push_pull_rows, numbers(keys, "keys"), 0, values, out)

    def set_rows(self, keys: Numbers, values: Array) -> Found:
        """Overwrites rows, whatever the rule and the clock."""
        return self._run(_dtrain.dtrain_table_set_rows, numbers(keys, "keys"), 0, values)

    def erase_rows(self, keys: Numbers) -> Done:
        """Drops rows and their state."""
        return self._run(_dtrain.dtrain_table_erase_rows, numbers(keys, "keys"), 0)

    def count_rows(self) -> Found:
        """Counts the rows on all servers; the result's count has the number."""
        return self._run(_dtrain.dtrain_table_count_rows)

    def clock(self) -> Done:
        """Ends this worker's clock; its pushes so far belong to that clock."""
        return self._run(_dtrain.dtrain_table_clock)

    def set_rate(self, rate: float) -> Done:
        """Replaces the learning rate."""
        return self._run(_dtrain.dtrain_table_set_rate, rate)

    def set_updates(self, count: int) -> Done:
        """Says how often the table was updated before: the next update is number count + 1."""
        return self._run(_dtrain.dtrain_table_set_updates, count)

    def pull_state(self, index: int, out: Array, first: int = 0) -> Found:
        """Reads numbers of a state array of the rule."""
        return self._run(_dtrain.dtrain_table_pull_state, index, first, 0, out)

    def set_state(self, index: int, values: Array, first: int = 0) -> Found:
        """Overwrites numbers of a state array of the rule."""
        return self._run(_dtrain.dtrain_table_set_state, index, first, 0, values)

    def pull_state_rows(self, index: int, keys: Numbers, out: Array) -> Found:
        """Reads the state of rows."""
        return self._run(_dtrain.dtrain_table_pull_state_rows, index, numbers(keys, "keys"), 0, out)

    def set_state_rows(self, index: int, keys: Numbers, values: Array) -> Found:
        """Overwrites the state of rows."""
        return self._run(_dtrain.dtrain_table_set_state_rows, index, numbers(keys, "keys"), 0,
                         values)

    def set_ready(self) -> Done:
        """Declares the table initialized; usually one worker does."""
        return self._run(_dtrain.dtrain_table_set_ready)

    def wait_ready(self) -> Done:
        """Waits until a worker has called set_ready()."""
        return self._run(_dtrain.dtrain_table_wait_ready)


class BlockingTable(Blocking, TableOperations[None, Result]):
    """Each call returns when the operation is done."""


class StartedTable(Started, TableOperations[Request, Request]):
    """Each call starts the operation and returns its Request."""


class Table(Child, TableOperations[None, Result]):
    """Made by Communicator.table(). `start` offers the operations with requests, `using()` with
    parameters."""

    def __init__(self, comm: Any, name: str, dtype: DTypeLike, settings: Mapping[str, Any]) -> None:
        dtype = find_dtype(dtype, "dtype")
        params, place, _kept = table_params(dtype, settings)
        handle = call_with(place, _dtrain.dtrain_table_create, comm._handle, name, params)
        _dtrain.describe_handle(handle, dtype, settings.get("dim") or 0)
        super().__init__(comm._context, handle, comm)
        self.name = name
        self.dtype = dtype
        self.width = settings.get("dim") or 0  #: elements of a row; 0: the table is dense
        self._run = runner(self._handle)
        self.start = StartedTable(self, {})

    def _destroy(self) -> None:
        _dtrain.dtrain_table_destroy(self._handle)

    def using(self, *, timeout: Optional[Duration] = None, priority: Optional[int] = None,
              weight: Optional[float] = None,
              min_version: Optional[int] = None) -> "ParameterisedTable":
        """The same operations with parameters: timeout, priority, weight (of a push in an average),
        min_version (a pull waits until this many updates have been applied)."""
        return ParameterisedTable(self, {"timeout": timeout, "priority": priority, "weight": weight,
                                         "min_version": min_version})

    def set_consistency(self, **settings: "Unpack[ConsistencySettings]") -> None:
        """Changes consistency, staleness, quorum and reproducible. Collective."""
        check_names(settings, ConsistencySettings.__annotations__)
        params = fill(_dtrain.dtrain_table_params_t(), settings)
        _dtrain.dtrain_table_set_consistency(self._maker._handle, self._handle, params, None)

    def states(self) -> Dict[str, State]:
        """The rule's state arrays."""
        found: Dict[str, State] = {}
        while True:
            try:
                name, dtype, count = _dtrain.dtrain_table_describe_state(self._handle, len(found))
            except LookupError:
                return found
            found[name] = State(len(found), name, DType(dtype), count)

    def locate(self, items: Numbers) -> List[int]:
        """The numbers of the servers that hold these elements, or keys."""
        return _dtrain.dtrain_table_locate(self._handle, numbers(items, "items"), 0)

    def servers(self) -> List[Dict[str, Any]]:
        """What each server holds of the table: rank (-1: dedicated), elements, ranges, share."""
        found: List[Dict[str, Any]] = []
        while True:
            server = _dtrain.dtrain_table_server_t()
            try:
                _dtrain.dtrain_table_describe_server(self._handle, len(found), server)
            except LookupError:
                return found
            found.append({name: getattr(server, name)
                          for name in ("rank", "elements", "ranges", "share")})

    def stats(self, server: int = -1) -> Dict[str, Any]:
        """Counts of this worker's requests to one server, or to all (-1)."""
        stats = _dtrain.dtrain_table_stats_t()
        _dtrain.dtrain_stats_table(self._handle, server, stats)
        return {name: getattr(stats, name) for name in (
            "requests", "repeats", "refused", "dropped", "elements", "sent_bytes",
            "received_bytes", "latency_sum", "staleness_sum", "latency", "staleness", "stale",
            "not_finite")}

    @property
    def restored(self) -> Optional[int]:
        """The step of the checkpoint that the table was restored from (option
        checkpoint.restore)."""
        try:
            return _dtrain.dtrain_table_restored(self._handle)
        except LookupError:
            return None


class ParameterisedTable(BlockingTable):
    """A table's operations with parameters."""

    def __init__(self, owner: Table, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, settings)
        self.start = StartedTable(owner, settings)


def table_params(dtype: DType, given: Mapping[str, Any]) -> Tuple[Any, Optional[Callback], List[Any]]:
    """Returns dtrain_table_params_t, its callback, and the arrays that it points to."""
    check_names(given, TableSettings.__annotations__, " of tables")
    settings = dict(given)
    kept: List[Any] = []
    segments = settings.pop("segments", None)
    if segments is not None:
        parts = [segment_bytes(segment) for segment in items(segments, "segments")]
        kept.append(array("B", b"".join(parts)))
        settings.update(segments=kept[-1].buffer_info()[0], segment_count=len(parts))
    weights = settings.pop("weights", None)
    if weights is not None:
        kept.append(pack("I", weights, "weights"))
        settings.update(weights=kept[-1].buffer_info()[0], weight_count=len(kept[-1]))
    place = None
    if settings.get("place") is not None:
        check_callable(settings["place"], "place")
        place = Callback(partial(checked_place, settings["place"]))
        settings.update(place=place, place_arg=place)
    return fill(_dtrain.dtrain_table_params_t(), {"dtype": dtype, **settings}), place, kept


def checked_place(place: PlaceFunction, *arguments: int) -> int:
    return operator.index(place(*arguments))


def segment_bytes(segment: Any) -> bytes:
    if not isinstance(segment, Mapping):
        raise TypeError(f"segments: dicts are needed, not {kind(segment)}")
    check_names(segment, Segment.__annotations__, " of segments")
    return _dtrain.segment_bytes(fill(_dtrain.dtrain_segment_t(), segment))


def checkpoint_params(timeout: Optional[Duration], every_steps: int = 0,
                      every: Optional[Duration] = None) -> Any:
    return fill(_dtrain.dtrain_checkpoint_params_t(),
                {"timeout": timeout, "every_steps": every_steps, "every": every})


def handles_of(tables: Iterable[Table]) -> List[Any]:
    return [check_kind(table, Table, "tables")._handle for table in items(tables, "tables")]


def save_checkpoint(tables: Iterable[Table], step: int, *, every_steps: int = 0,
                    every: Optional[Duration] = None, timeout: Optional[Duration] = None) -> bool:
    """Writes tables to the folder of the option checkpoint.directory. Called by one worker. With
    every_steps or every, only if this many steps or this time has passed since the last checkpoint;
    returns False if no checkpoint was due."""
    return _dtrain.dtrain_checkpoint_save(handles_of(tables), step,
                                          checkpoint_params(timeout, every_steps, every))


def restore_checkpoint(tables: Iterable[Table], step: Optional[int] = None, *,
                       timeout: Optional[Duration] = None) -> int:
    """Restores tables from a checkpoint, by default the newest. Called by one worker. Returns its
    step."""
    return _dtrain.dtrain_checkpoint_restore(handles_of(tables), NEWEST if step is None else step,
                                             checkpoint_params(timeout))


def wait_checkpoint(tables: Iterable[Table], after: Optional[int] = None, *, timeout: Duration) -> int:
    """Waits until the newest checkpoint that has all tables is not that of the step `after` (None:
    until there is one), and returns its step. An evaluator calls it for tables that it has made in a
    job of its own, and then restore_checkpoint(). Logs now and then for what it waits."""
    left, step = nanoseconds(timeout), NEWEST if after is None else after
    handles = handles_of(tables)
    while True:  # in slices, so that Python can run signal handlers
        piece = SLICE_NS if left == FOREVER else min(left, SLICE_NS)
        try:
            return _dtrain.dtrain_checkpoint_wait(handles, step, checkpoint_params(f"{piece}ns"))
        except TimeoutError:
            if left == piece:
                raise
            left -= 0 if left == FOREVER else piece


def newest_checkpoint(table: Table) -> Optional[int]:
    """The step of the newest complete checkpoint that has the table; None if there is none."""
    try:
        return _dtrain.dtrain_checkpoint_newest(check_kind(table, Table, "table")._handle)
    except LookupError:
        return None
