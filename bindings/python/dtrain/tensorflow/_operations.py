"""Collectives as ops: in eager code, in tf.function, and in graphs of TensorFlow 1.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List, Optional, Sequence, Tuple

from .._communicator import Communicator
from .._constants import AVG, SUM, Op
from .._durations import Duration, nanoseconds
from .._gradients import Gradients
from .._names import find
from .._settings import OpLike
from ._library import name_of, ops
from ._tensorflow import as_written, tf
from ._world import world

LAST = "dtrain_last_op"


@as_written
def run(function: Any, /, *arguments: Any, thing: Any, timeout: Optional[Duration] = None, **attributes: Any) -> Any:
    """Runs an op, or adds it to the graph. tf.function keeps the order of such ops by itself; in graphs of TensorFlow 1
    each waits for the one before, as ranks that ran them in different orders would wait for each other."""
    attributes.update(group=name_of(thing), timeout=nanoseconds(timeout))
    if tf.executing_eagerly():
        return function(*arguments, **attributes)
    graph = tf.compat.v1.get_default_graph()
    if graph.building_function:
        return function(*arguments, **attributes)
    before = graph.get_collection_ref(LAST)
    with graph.control_dependencies(before):
        made = function(*arguments, **attributes)
    first = tf.nest.flatten(made)[0]
    before[:] = [first if isinstance(first, tf.Operation) else first.op]
    return made


def tensors_of(values: Any) -> List[Any]:
    return [tf.convert_to_tensor(value) for value in tf.nest.flatten(values)]


@as_written
def allreduce(values: Any, op: OpLike = SUM, comm: Optional[Communicator] = None, *, prescale: Any = None,
              postscale: Any = None, timeout: Optional[Duration] = None) -> Any:
    """The sum, or another op, over all ranks' tensors. values: a tensor, or any structure of tensors, which travel
    together. prescale and postscale, numbers or tensors, multiply inputs and results of floating-point types.
    tf.IndexedSlices are gathered."""
    comm, number = world(comm), find(Op, op, "op")
    flat = tf.nest.flatten(values)
    dense = [value for value in flat if not isinstance(value, tf.IndexedSlices)]
    results = []
    if dense:
        factors = [] if prescale is None and postscale is None else [
            tf.cast(1.0 if factor is None else factor, tf.float64) for factor in (prescale, postscale)]
        results = list(run(ops.dtrain_allreduce, tensors_of(dense), factors, thing=comm, timeout=timeout, op=number))
    reduced = []
    for value in flat:
        if isinstance(value, tf.IndexedSlices):
            scale = 1.0 if prescale is None else prescale
            scale = scale if postscale is None else scale * postscale
            reduced.append(gather_slices(value, number, comm, scale, timeout))
        else:
            reduced.append(results.pop(0))
    return tf.nest.pack_sequence_as(values, reduced)


def gather_slices(slices: Any, op: int, comm: Communicator, scale: Any, timeout: Optional[Duration]) -> Any:
    """The sum or mean of sparse gradients: all ranks' rows after each other; repeated indices add up."""
    if op not in (SUM, AVG):
        raise ValueError(f"op: {Op(op).name}; tf.IndexedSlices have a sum and an average only")
    indices, rows = allgather([slices.indices, slices.values], comm, timeout=timeout)
    if op == AVG:
        scale = scale / comm.size
    if not isinstance(scale, float) or scale != 1.0:
        rows = rows * tf.cast(scale, rows.dtype)
    return tf.IndexedSlices(rows, indices, slices.dense_shape)


@as_written
def submit(values: Any, names: Any, queue: Gradients, op: OpLike = AVG, *, priority: int = 0,
           timeout: Optional[Duration] = None) -> Any:
    """As allreduce(), by names and in any order: ranks need not run these ops in the same order (docs/GRADIENTS.md).
    names: one for each tensor of values."""
    flat, spelled = tensors_of(values), [str(name) for name in tf.nest.flatten(names)]
    reduced = run(ops.dtrain_submit, flat, thing=queue, timeout=timeout, names=spelled, op=find(Op, op, "op"),
                  priority=priority)
    return tf.nest.pack_sequence_as(values, list(reduced))


def allgather(values: Any, comm: Optional[Communicator] = None, *, timeout: Optional[Duration] = None) -> Any:
    """All ranks' tensors after each other, by their first dimension, which may differ. values: a tensor, or any
    structure of tensors."""
    return gather_rows(values, comm, timeout)[0]


@as_written
def gather_rows(values: Any, comm: Optional[Communicator], timeout: Optional[Duration]) -> Tuple[Any, Any]:
    """What allgather() returns, and how many rows came from each rank: [tensors, ranks]."""
    comm, flat = world(comm), tensors_of(values)
    gathered, rows = run(ops.dtrain_allgather, flat, thing=comm, timeout=timeout)
    for tensor, whole in zip(flat, gathered):
        if tensor.shape.rank is not None:
            set_shape(whole, [None, *tensor.shape[1:]])
    return tf.nest.pack_sequence_as(values, list(gathered)), rows


@as_written
def broadcast(values: Any, root: int = 0, comm: Optional[Communicator] = None, *,
              timeout: Optional[Duration] = None) -> Any:
    """Rank root's tensors, on all ranks. The others pass tensors of the same types and shapes."""
    comm, flat = world(comm), tensors_of(values)
    if not 0 <= root < comm.size:
        raise ValueError(f"root: {root}; the ranks are 0 to {comm.size - 1}")
    copies = run(ops.dtrain_broadcast, flat, thing=comm, timeout=timeout, root=root)
    return tf.nest.pack_sequence_as(values, list(copies))


@as_written
def reducescatter(values: Any, op: OpLike = SUM, comm: Optional[Communicator] = None, *,
                  rows: Optional[Sequence[int]] = None, timeout: Optional[Duration] = None) -> Any:
    """This rank's rows of the sum, or another op, over all ranks' tensors. rows: how many each rank gets; None: equal
    parts, and the first ranks one more where they are not even."""
    comm, flat = world(comm), tensors_of(values)
    given = [] if rows is None else [tf.tile(tf.reshape(tf.cast(rows, tf.int64), [1, comm.size]), [len(flat), 1])]
    parts = scatter_rows(flat, given, find(Op, op, "op"), comm, timeout)
    return tf.nest.pack_sequence_as(values, parts)


def scatter_rows(flat: List[Any], given: List[Any], op: int, thing: Any, timeout: Optional[Duration]) -> List[Any]:
    parts = list(run(ops.dtrain_reduce_scatter, flat, given, thing=thing, timeout=timeout, op=op))
    for tensor, part in zip(flat, parts):
        if tensor.shape.rank is not None:
            set_shape(part, [None, *tensor.shape[1:]])
    return parts


@as_written
def alltoall(values: Any, splits: Optional[Any] = None, comm: Optional[Communicator] = None, *,
             timeout: Optional[Duration] = None) -> Any:
    """(what came from all ranks, in their order, how many rows came from each). splits: how many rows go to each rank;
    None: equal parts."""
    comm, tensor = world(comm), tf.convert_to_tensor(values)
    splits = tf.zeros([0], tf.int64) if splits is None else tf.cast(splits, tf.int64)
    exchanged, received = run(ops.dtrain_alltoall, tensor, splits, thing=comm, timeout=timeout)
    if tensor.shape.rank is not None:
        set_shape(exchanged, [None, *tensor.shape[1:]])
    set_shape(received, [comm.size])
    return exchanged, received


@as_written
def barrier(comm: Optional[Communicator] = None, *, timeout: Optional[Duration] = None) -> Any:
    """Waits until all ranks have come."""
    return run(ops.dtrain_barrier, thing=world(comm), timeout=timeout)


def set_shape(tensor: Any, shape: List[Any]) -> None:
    if not tf.executing_eagerly():
        tensor.set_shape(shape)
