"""All-gather, broadcast, all-to-all and reduce-scatter, with gradients. Ranks run them in the same order.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
from typing import Any, List, Optional, Sequence

from ..._constants import Op
from ...tensorflow._library import ops
from ...tensorflow._operations import broadcast as copies_of
from ...tensorflow._operations import gather_rows, run, scatter_rows, set_shape
from ...tensorflow._tensorflow import as_written, raw, tf
from ..common._engine import Engine
from ..common.basics import Adasum, Average, Sum
from ..common.process_sets import ProcessSet, global_process_set
from ._allreduce import OPS, reduced_in_order, scaled
from ._groups import engine_with_ops
from .compression import Compression

# ---- all-gather ----


def allgather(tensor: Any, name: Optional[str] = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> Any:
    """The ranks' tensors, one after the other along the first dimension, which may differ. name and ignore_name_scope
    have no effect."""
    return grouped_allgather([tensor], name, ignore_name_scope, process_set)[0]


@as_written
def grouped_allgather(tensors: Sequence[Any], name: Optional[str] = None, ignore_name_scope: bool = False,
                      process_set: ProcessSet = global_process_set) -> List[Any]:
    """allgather() of several tensors, in one op; all ranks give equally many."""
    del name, ignore_name_scope
    comm = engine_with_ops(process_set).comm

    @tf.custom_gradient
    def function(*inputs: Any) -> Any:
        found, rows = gather_rows(list(inputs), comm, None)

        def gradient(*gradients: Any) -> Any:
            """This rank's rows of the mean of the ranks' gradients."""
            dense = [tf.cast(tf.convert_to_tensor(one), tensor.dtype) for one, tensor in zip(gradients, inputs)]
            return scatter_rows(dense, [rows], Op.AVG, comm, None)
        return found, gradient
    return list(function(*[tf.convert_to_tensor(tensor) for tensor in tensors]))


# ---- broadcast ----


def root_in(engine: Engine, root_rank: int) -> int:
    if root_rank not in engine.ranks:
        raise ValueError(f"broadcast: root_rank {root_rank} is none of the ranks {engine.ranks}")
    return engine.ranks.index(root_rank)


@as_written
def broadcast(tensor: Any, root_rank: int, name: Optional[str] = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> Any:
    """The root's tensor. root_rank is a rank of the whole job. name and ignore_name_scope have no effect."""
    del name, ignore_name_scope
    engine = engine_with_ops(process_set)
    root = root_in(engine, root_rank)

    @tf.custom_gradient
    def function(value: Any) -> Any:
        def gradient(given: Any) -> Any:
            mean = reduced_in_order([tf.convert_to_tensor(given)], Op.AVG, engine)[0]
            mine = tf.equal(run(ops.dtrain_rank, thing=engine.comm)[0], root)
            return tf.where(mine, mean, tf.zeros_like(mean))
        return copies_of(value, root, engine.comm), gradient
    return function(tf.convert_to_tensor(tensor))


def broadcast_(variables: Sequence[Any], root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> List[Any]:
    """Gives the variables the root's values, in one op. Returns the values."""
    del name
    assigned = assign_root_values(variables, root_rank, process_set)
    with tf.control_dependencies([] if tf.executing_eagerly() else [tf.group(*assigned)]):
        return [raw(variable).read_value() for variable in variables]


@as_written
def assign_root_values(variables: Sequence[Any], root_rank: int, process_set: ProcessSet) -> List[Any]:
    engine = engine_with_ops(process_set)
    targets = [raw(variable) for variable in variables]
    targets = [target for target in targets if target.dtype != tf.string]
    if not targets:
        return []
    values = copies_of([target.read_value() for target in targets], root_in(engine, root_rank), engine.comm)
    return [target.assign(value) for target, value in zip(targets, values)]


# ---- all-to-all ----


@as_written
def alltoall(tensor: Any, splits: Any = None, name: Optional[str] = None, ignore_name_scope: bool = False,
             process_set: ProcessSet = global_process_set) -> Any:
    """Rows of the first dimension for each rank: splits[r] for rank r, or equally many. With splits the result is the
    tensor and how many rows came from each rank, else the tensor. name and ignore_name_scope have no effect."""
    del name, ignore_name_scope
    engine = engine_with_ops(process_set)
    given = tf.zeros([0], tf.int64) if splits is None else tf.convert_to_tensor(splits)
    if not given.dtype.is_integer:
        raise ValueError(f"alltoall: splits of {given.dtype.name}; integers are needed")

    @tf.custom_gradient
    def function(value: Any, counts: Any) -> Any:
        found, received = run(ops.dtrain_alltoall, value, tf.cast(counts, tf.int64), thing=engine.comm)
        if value.shape.rank is not None:
            set_shape(found, [None, *value.shape[1:]])

        def gradient(given: Any, _: Any) -> Any:
            """What came goes back to where it came from."""
            dense = tf.cast(tf.convert_to_tensor(given), value.dtype)
            return run(ops.dtrain_alltoall, dense, received, thing=engine.comm)[0], None
        return (found, tf.cast(received, tf.int32)), gradient
    sent = tf.convert_to_tensor(tensor)
    if splits is not None and sent.shape.rank != 0:
        sent = sent[:tf.reduce_sum(given)]  # rows that no rank gets
    found, received = function(sent, given)
    return found if splits is None else (found, received)


# ---- reduce-scatter ----


def reducescatter(tensor: Any, device_dense: str = "", compression: Any = Compression.none, op: int = Average,
                  name: Optional[str] = None, process_set: ProcessSet = global_process_set,
                  ignore_name_scope: bool = False, prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> Any:
    """This rank's rows of the mean (or another op) of the ranks' tensors. If the rows are no multiple of the ranks, the
    first ranks get one more. device_dense, name and ignore_name_scope have no effect."""
    del name, ignore_name_scope
    return grouped_reducescatter([tensor], device_dense, compression, op, process_set, prescale_factor,
                                 postscale_factor)[0]


@as_written
def grouped_reducescatter(tensors: Sequence[Any], device_dense: str = "", compression: Any = Compression.none,
                          op: int = Average, process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> List[Any]:
    """reducescatter() of several tensors, in one op; all ranks give equally many."""
    del device_dense
    if op not in OPS or op == Adasum:
        raise NotImplementedError("reducescatter: op must be Average, Sum, Min, Max or Product")
    if not len(tensors):  # pylint: disable=use-implicit-booleaness-not-len
        return list(tensors)
    engine = engine_with_ops(process_set)

    @tf.custom_gradient
    def function(*inputs: Any) -> Any:
        parts = scatter_rows([scaled(tensor, prescale_factor) for tensor in inputs], [], OPS[op], engine.comm, None)

        def gradient(*gradients: Any) -> Any:
            dense = [scaled(tf.cast(tf.convert_to_tensor(one), tensor.dtype), prescale_factor * postscale_factor)
                     for one, tensor in zip(gradients, inputs)]
            if op == Sum:
                size = run(ops.dtrain_rank, thing=engine.comm)[1]
                dense = [one * tf.cast(size, one.dtype) for one in dense]
            return gather_rows(dense, engine.comm, None)[0]
        return [scaled(part, postscale_factor) for part in parts], gradient
    pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    found = list(function(*[sent for sent, _ in pairs]))
    return [compression.decompress(part, context) for part, (_, context) in zip(found, pairs)]
