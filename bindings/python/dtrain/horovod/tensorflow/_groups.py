"""The names by which ops of TensorFlow find the gradient queue and the communicator of a process set. They depend on
the set's number alone, so functions that were traced go on after shutdown() and init(), and in an elastic job's next
generation.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, List, Optional, Sequence, Union

from ...tensorflow import _library
from ...tensorflow._tensorflow import tf
from ..common import _job, basics, process_sets
from ..common._engine import Engine
from ..common.process_sets import ProcessSet


def register() -> None:
    """Makes the process sets of this rank known to ops."""
    for number, engine in _job.current().engines.items():
        register_one(number, engine)


def register_one(number: int, engine: Engine) -> None:
    _library.name_of(engine.queue, f"horovod.{number}.queue")
    _library.name_of(engine.comm, f"horovod.{number}")


def engine_with_ops(process_set: ProcessSet) -> Engine:
    """Of the set, for an operation of this rank."""
    number = process_set.process_set_id
    engine = None if number is None else _job.current().engines.get(number)
    if number is None or engine is None:
        if number is None or number not in _job.current().sets:
            raise ValueError(f"{process_set} has not been registered, or was removed")
        raise tf.errors.InvalidArgumentError(None, None, f"{process_set} does not have rank {basics.rank()}")
    register_one(number, engine)
    return engine


def init(comm: Any = None, process_sets: Optional[Union[Sequence[ProcessSet], str]] = None) -> None:
    """Joins the job that the environment names (docs/JOINING.md), or that of a communicator of mpi4py. Without either
    the process is a job by itself. process_sets: sets to register; "dynamic" is always on."""
    basics.init(comm, process_sets)
    register()


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """All ranks of the job call it alike, also those outside the set."""
    made = process_sets.add_process_set(process_set)
    register()
    return made


def ranks_of(process_set_id: int) -> List[int]:
    return process_sets.ranks_of(process_set_id)
