"""What the process knows of the job, as ops: in graphs they ask when they run. And join().

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Callable, Optional

from ...tensorflow._library import name_of, ops
from ...tensorflow._operations import run
from ...tensorflow._tensorflow import tf
from ..common import basics
from ..common._job import current
from ..common.process_sets import global_process_set
from ._groups import engine_with_ops, ranks_of, register


def asked(function: Callable[[], int], name: Optional[str] = None) -> Any:
    """A scalar. In graphs a function of Python is called each time, on any rank and without the others."""
    if tf.executing_eagerly():
        return tf.constant(function(), tf.int32)
    found = tf.numpy_function(lambda: tf.int32.as_numpy_dtype(function()), [], tf.int32, name=name)
    found.set_shape([])
    return found


def rank_op(name: Optional[str] = None) -> Any:
    """rank()."""
    return asked(basics.rank, name)


def local_rank_op(name: Optional[str] = None) -> Any:
    """local_rank()."""
    return asked(basics.local_rank, name)


def local_size_op(name: Optional[str] = None) -> Any:
    """local_size()."""
    return asked(basics.local_size, name)


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """The number of ranks of a process set."""
    return asked(lambda: len(ranks_of(process_set_id)), name)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """1 if this rank is in the process set, else 0; -1 if there is no job, -2 if there is no such set."""
    def included() -> int:
        if not basics.is_initialized():
            return -1
        members = current().sets.get(process_set_id)
        return -2 if members is None else int(current().rank in members)
    return asked(included, name)


def join() -> Any:
    """For a rank without more data: until all ranks have called it, this one contributes zeros to the others'
    all-reduces, and their other operations fail, in all its process sets. Returns the rank that joined last. A function
    that was traced before a set was added does not know the set."""
    register()
    engine = engine_with_ops(global_process_set)
    sets = [other for number, other in sorted(current().engines.items()) if number != 0]
    return run(ops.dtrain_join, thing=engine.comm, queue=name_of(engine.queue),
               sets=[name_of(other.comm) for other in sets], set_queues=[name_of(other.queue) for other in sets])
