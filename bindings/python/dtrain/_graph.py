"""Graphs: averages with neighbors instead of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Generic, Iterable, List, Mapping, Optional, Union

from . import _dtrain
from ._checks import pack
from ._collectives import Array, Done
from ._constants import Topology
from ._durations import Duration
from ._errors import InvalidError
from ._handle import Child
from ._names import find
from ._parameters import fill
from ._request import Request
from ._settings import StreamLike, TopologyLike
from ._streams import find_stream
from ._ways import Blocking, Prepared, Started, runner

#: The ranks whose values this rank gets, with the weights of these edges or without.
Neighbors = Union[Mapping[int, float], Iterable[int]]


class GraphOperations(Generic[Done]):
    """Collectives of the graph's communicator that wait for neighbors only."""

    _run: Any  #: (function, *arguments) -> its result, or a request

    def average(self, array: Array, out: Array = None) -> Done:
        """out (None: in place) = the weighted mean of this rank's array and the in-neighbors'
        arrays."""
        return self._run(_dtrain.dtrain_neighbor_average, array, out)

    def allgather(self, array: Array, out: Array) -> Done:
        """out = the in-neighbors' arrays, in the order of their ranks."""
        return self._run(_dtrain.dtrain_neighbor_allgather, array, out)

    def alltoall(self, array: Array, out: Array) -> Done:
        """Sends a block of array to each out-neighbor; gets a block of out from each
        in-neighbor."""
        return self._run(_dtrain.dtrain_neighbor_alltoall, array, out)


class BlockingGraph(Blocking, GraphOperations[None]):
    """Each call returns when the operation is done."""


class StartedGraph(Started, GraphOperations[Request]):
    """Each call starts the operation and returns its Request."""


class PreparedGraph(Prepared, GraphOperations[Request]):
    """Each call prepares the operation; Request.start() starts it, as often as it is called."""


class Graph(Child, GraphOperations[None]):
    """Made by Communicator.graph(). `start`, `prepare` and `using()` work as for communicators."""

    def __init__(self, comm: Any, topology: TopologyLike, settings: Mapping[str, Any]) -> None:
        params, _kept = graph_params(topology, **settings)
        super().__init__(comm._context, _dtrain.dtrain_graph_create(comm._handle, params), comm)
        self._run = runner(self._handle)
        self.start = StartedGraph(self, {})
        self.prepare = PreparedGraph(self, {})

    def _destroy(self) -> None:
        _dtrain.dtrain_graph_destroy(self._handle)

    def using(self, *, timeout: Optional[Duration] = None, priority: Optional[int] = None,
              stream: StreamLike = None) -> "ParameterisedGraph":
        """The same operations with a timeout, a priority (higher goes first), or on a stream of
        CUDA (Communicator.using())."""
        return ParameterisedGraph(self, {"timeout": timeout, "priority": priority,
                                         "stream": find_stream(stream)})

    @property
    def in_neighbors(self) -> Dict[int, float]:
        """The ranks whose values this rank gets, with their weights."""
        return _dtrain.graph_neighbors(self._handle, _dtrain.DTRAIN_GRAPH_IN)

    @property
    def out_neighbors(self) -> Dict[int, float]:
        """The ranks that get this rank's value, with its weights there."""
        return _dtrain.graph_neighbors(self._handle, _dtrain.DTRAIN_GRAPH_OUT)

    @property
    def self_weight(self) -> float:
        """The weight of this rank's value."""
        return _dtrain.dtrain_graph_self_weight(self._handle)

    def spectral_gap(self) -> float:
        """How fast averages converge to the mean: 1 at once, 0 never. Up to 256 ranks."""
        return _dtrain.dtrain_graph_spectral_gap(self._handle)


class ParameterisedGraph(BlockingGraph):
    """A graph's operations with parameters."""

    def __init__(self, owner: Graph, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, settings)
        self.start = StartedGraph(owner, settings)
        self.prepare = PreparedGraph(owner, settings)


def graph_params(topology: TopologyLike, neighbors: Optional[Neighbors] = None,
                 self_weight: Optional[float] = None,
                 out_neighbors: Optional[Iterable[int]] = None, rows_only: bool = False,
                 signed: bool = False) -> Any:
    """Returns dtrain_graph_params_t, and the arrays that it points to."""
    number = find(Topology, topology, "topology")
    if (neighbors is not None) != (number == Topology.CUSTOM):
        raise InvalidError("neighbors: Topology.CUSTOM requires them, other topologies have none")
    params = fill(_dtrain.dtrain_graph_params_t(), {
        "kind": number, "self_weight": self_weight,
        "flags": (_dtrain.DTRAIN_GRAPH_ROWS_ONLY if rows_only else 0)
        | (_dtrain.DTRAIN_GRAPH_SIGNED if signed else 0)})
    kept: List[Any] = []

    def give(field: str, code: str, values: Any, name: str) -> int:
        kept.append(pack(code, values, name))
        setattr(params, field, kept[-1].buffer_info()[0])
        return len(kept[-1])
    if neighbors is not None:
        params.in_count = give("in_neighbors", "i", neighbors, "neighbors")
        if isinstance(neighbors, Mapping):
            give("in_weights", "d", neighbors.values(), "neighbors")
    if out_neighbors is not None:
        params.out_count = give("out_neighbors", "i", out_neighbors, "out_neighbors")
    return params, kept
