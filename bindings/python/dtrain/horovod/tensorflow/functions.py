"""Broadcasts of variables and objects.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from array import array
from typing import Any, Callable, Iterable, List, Optional

from ..._errors import Error
from ...tensorflow._tensorflow import tf
from ..common._pickles import dumped, loaded
from ..common.exceptions import translated
from ..common.process_sets import ProcessSet, engine_of, global_process_set
from ._agreement import agree
from ._gather import assign_root_values, root_in


def broadcast_variables(variables: Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set,
                        inplace: bool = False) -> Any:
    """Gives variables (of TensorFlow or Keras) the root's values, in one op. Returns the op in graphs of TensorFlow
    1. inplace has no effect."""
    del inplace
    assigned = assign_root_values(list(variables), root_rank, process_set)
    return None if tf.executing_eagerly() else tf.group(*assigned)


def broadcast_global_variables(root_rank: int) -> Any:
    """For graphs of TensorFlow 1."""
    if tf.executing_eagerly():
        raise RuntimeError("hvd.broadcast_global_variables() does not support eager execution. Please use "
                           "`hvd.broadcast_variables(<model/optimizer variables>)` instead.")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


def broadcast_object(obj: Any, root_rank: int = 0, session: Any = None, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, on all ranks. It is pickled, so ranks must trust each other. session, name: of no effect."""
    del session, name
    engine = engine_of(process_set)
    root = root_in(engine, root_rank)
    is_root = engine.comm.rank == root
    data = bytearray(dumped(obj)) if is_root else bytearray()
    length = array("q", [len(data)])
    try:
        agree(engine.comm, f"broadcast_object from rank {root_rank}")
        engine.comm.broadcast(length, root=root)
        data = data if is_root else bytearray(length[0])
        if length[0] > 0:
            engine.comm.broadcast(data, root=root)
    except Error as error:
        raise translated(error, "broadcast_object") from error
    return obj if is_root else loaded(data)


def broadcast_object_fn(root_rank: int = 0, session: Any = None, name: Optional[str] = None,
                        process_set: ProcessSet = global_process_set) -> Callable[[Any], Any]:
    """A function that broadcasts an object."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj: Any, session: Any = None, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks. They are pickled, so ranks must trust each other. session, name: of no effect."""
    del session, name
    comm = engine_of(process_set).comm
    data = bytearray(dumped(obj))
    lengths = array("q", bytes(8 * comm.size))
    try:
        agree(comm, "allgather_object")
        comm.allgather(array("q", [len(data)]), lengths)
        whole = bytearray(sum(lengths))
        comm.allgatherv(data, whole, list(lengths))
    except Error as error:
        raise translated(error, "allgather_object") from error
    ends = [sum(lengths[:index + 1]) for index in range(comm.size)]
    return [loaded(memoryview(whole)[end - length:end]) for end, length in zip(ends, lengths)]
