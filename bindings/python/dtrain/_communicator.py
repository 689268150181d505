"""Communicators: groups of ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _dtrain
from ._checks import Path, pack, path_text
from ._collectives import (BlockingCollectives, Collectives, PreparedCollectives,
                           StartedCollectives)
from ._compressor import Compressor
from ._constants import F32
from ._durations import Duration, nanoseconds
from ._errors import Error
from ._gradients import Gradients
from ._graph import Graph, Neighbors
from ._handle import Child
from ._parameters import fill
from ._request import Result
from ._settings import CompressionLike, DTypeLike, StreamLike, TableSettings, TopologyLike
from ._streams import find_stream
from ._table import Table
from ._ways import runner

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Communicator(Child, Collectives[None, Result]):
    """An ordered group of ranks. Its methods block. `start` offers them with requests, `prepare`
    with requests that can be started many times, `using()` with parameters:

        comm.allreduce(gradient, op=dtrain.AVG)
        request = comm.start.allreduce(gradient)
        comm.using(timeout=5.0, priority=1).start.broadcast(weights)
    """

    def __init__(self, context: Any, handle: Any) -> None:
        super().__init__(context, handle)
        self._run = runner(self._handle)
        self.start = StartedCollectives(self, {})
        self.prepare = PreparedCollectives(self, {})

    def _destroy(self) -> None:
        _dtrain.dtrain_comm_destroy(self._handle)

    def using(self, *, timeout: Optional[Duration] = None, priority: Optional[int] = None,
              prescale: Optional[float] = None, postscale: Optional[float] = None,
              stream: StreamLike = None) -> "Parameterised":
        """The same operations with parameters: timeout (infinity: none), priority (higher goes
        first), prescale and postscale (factors for floating-point inputs and results), stream (of
        CUDA, for arrays on its GPU: the operations are in the order of the stream, and only
        blocking ones wait for it; a torch.cuda.Stream, an object with __cuda_stream__, or a
        handle, where 0 and 1 are the default stream)."""
        return Parameterised(self, {"timeout": timeout, "priority": priority, "prescale": prescale,
                                    "postscale": postscale, "stream": find_stream(stream)})

    @property
    def rank(self) -> int:
        """This process's rank in the group."""
        return _dtrain.dtrain_comm_rank(self._handle)

    @property
    def size(self) -> int:
        """The number of ranks in the group."""
        return _dtrain.dtrain_comm_size(self._handle)

    def split(self, color: Optional[int], key: int = 0) -> Optional["Communicator"]:
        """Creates one communicator per color, its ranks ordered by (key, rank); a rank without a
        color gets None. Collective."""
        return self._made(_dtrain.dtrain_comm_split(self._handle, -1 if color is None else color,
                                                    key))

    def subset(self, ranks: Sequence[int]) -> Optional["Communicator"]:
        """Creates a communicator of these ranks in this order; other ranks get None. All ranks call
        it."""
        return self._made(_dtrain.dtrain_comm_subset(self._handle, pack("i", ranks, "ranks")))

    def create_group(self, ranks: Sequence[int], tag: int = 0, *,
                     timeout: Optional[Duration] = None) -> "Communicator":
        """Creates a communicator of these ranks in this order, by these ranks alone: each of them
        gives the same list and tag. Other ranks take no part. Works when this communicator is
        broken, too."""
        return self._made(_dtrain.dtrain_comm_create_group(
            self._handle, pack("i", ranks, "ranks"), tag, nanoseconds(timeout)))

    def duplicate(self) -> "Communicator":
        """Creates a communicator of the same ranks, with a separate order of calls. Collective."""
        return self._made(_dtrain.dtrain_comm_duplicate(self._handle))

    def shrink(self) -> "Communicator":
        """Creates a communicator of the ranks that are alive, to continue after a PeerError. All of
        them call it."""
        return self._made(_dtrain.dtrain_comm_shrink(self._handle))

    def reform(self, *, min_size: Optional[int] = None, max_size: Optional[int] = None,
               leave: bool = False, timeout: Optional[Duration] = None) -> Optional["Communicator"]:
        """The next generation of an elastic job: the workers that live, and newcomers. All living
        workers call it. min_size: waits for newcomers if there are fewer workers. A worker that
        leaves by it gets None."""
        params = fill(_dtrain.dtrain_reform_params_t(),
                      {"min_size": min_size, "max_size": max_size, "timeout": timeout})
        params.leaves = 1 if leave else 0
        return self._made(_dtrain.dtrain_comm_reform(self._handle, params))

    @property
    def newcomers(self) -> int:
        """How many processes wait to be taken in by reform()."""
        return _dtrain.dtrain_comm_newcomers(self._handle)

    @property
    def changes(self) -> Dict[str, Any]:
        """How the reform that made this communicator has changed the job: generation, size, ranks
        (the old ones; None for newcomers), came, went. Empty: no reform made it."""
        described: Dict[str, Any] = json.loads(_dtrain.dtrain_comm_changes(self._handle))
        return described

    def abort(self, reason: Optional[str] = None) -> None:
        """Ends every operation on all ranks with an AbortedError and this reason."""
        _dtrain.dtrain_comm_abort(self._handle, reason)

    @property
    def error(self) -> Optional[Error]:
        """The error that broke the communicator; None while it is intact."""
        if self._handle is None:
            return None
        try:
            _dtrain.dtrain_comm_status(self._handle)
        except Error as error:
            return error
        return None

    @property
    def failed(self) -> List[int]:
        """The ranks that failed."""
        return _dtrain.failed_ranks(self._handle)

    def table(self, name: str, *, dtype: DTypeLike = F32,
              **settings: "Unpack[TableSettings]") -> Table:
        """Creates a table of the job, dense (length=...) or sparse (dim=...). Settings have the
        names of dtrain_table_params_t: rule, learning_rate, consistency, ... segments is a list of
        dicts, place a function (first, count, servers) -> server. Collective."""
        return Table(self, name, dtype, settings)

    def gradients(self, *, bucket_bytes: Optional[int] = None, cycle: Optional[Duration] = None,
                  stall_warn: Optional[Duration] = None,
                  stall_fail: Optional[Duration] = None) -> Gradients:
        """Creates a queue of named tensors that ranks submit in any order. Collective."""
        return Gradients(self, {"bucket_bytes": bucket_bytes, "cycle": cycle,
                                "stall_warn": stall_warn, "stall_fail": stall_fail})

    def compressor(self, kind: CompressionLike, count: int, *, feedback: bool = True,
                   stochastic: bool = False, block: Optional[int] = None,
                   rank: Optional[int] = None, rows: Optional[int] = None,
                   matrices: Optional[Sequence[Tuple[int, int]]] = None,
                   seed: Optional[int] = None, ratio: Optional[float] = None) -> Compressor:
        """Creates a compressor, which all-reduces vectors of count f32 with fewer bytes sent.
        feedback: what a step does not send is added to the next one; stochastic: INT8 rounds at
        random; block, rank, rows, ratio: for the kinds that use them (docs/COMPRESSION.md).
        matrices: POWERSGD of a vector that consists of several, as (rows, columns). Collective."""
        return Compressor(self, kind, count, {
            "feedback": feedback, "stochastic": stochastic, "block": block, "rank": rank,
            "rows": rows, "matrices": matrices, "seed": seed, "ratio": ratio})

    def graph(self, topology: TopologyLike, *, neighbors: Optional[Neighbors] = None,
              self_weight: Optional[float] = None, out_neighbors: Optional[Sequence[int]] = None,
              rows_only: bool = False, signed: bool = False) -> Graph:
        """Creates a graph: which ranks average with which. With CUSTOM each rank passes its
        neighbors, as {rank: weight} with its self_weight, or ranks alone for Metropolis-Hastings
        weights of edges that go both ways. out_neighbors, the ranks that name this rank, are only
        checked. rows_only: columns of the matrix need not sum to 1; signed: weights may be
        negative. Collective."""
        return Graph(self, topology, {
            "neighbors": neighbors, "self_weight": self_weight, "out_neighbors": out_neighbors,
            "rows_only": rows_only, "signed": signed})

    def tune(self, path: Path) -> None:
        """Measures the network between the ranks, for the option "tuning.file". Collective."""
        _dtrain.dtrain_comm_tune(self._handle, path_text(path))

    def _made(self, handle: Any) -> Any:
        return None if handle is None else Communicator(self._context, handle)


class Parameterised(BlockingCollectives):
    """A communicator's operations with parameters."""

    def __init__(self, owner: Communicator, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, settings)
        self.start = StartedCollectives(owner, settings)
        self.prepare = PreparedCollectives(owner, settings)
