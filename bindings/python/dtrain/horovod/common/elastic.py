"""Elastic training: states that are committed, and the loop that restores them when workers are lost or come.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import functools
import os
from array import array
from typing import Any, Callable, Dict, List, Sequence

from ..._errors import Error
from . import _job
from ._knobs import flag
from .basics import init
from .exceptions import HorovodInternalError, HostsUpdatedInterrupt, translated
from .process_sets import global_process_set

MOST_RESETS = 3  #: in a row, without a commit, and without a worker that was lost or came


class State:
    """What run() restores and passes on. Derive from it, or use ObjectState or TorchState.

    bcast_object: a function that passes rank 0's object on to all ranks. get_rank: one that returns this rank."""

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: List[Callable[[], None]] = []
        self._commits = 0

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], None]]) -> None:
        """They are called after workers were lost or have come: to scale the learning rate, say."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state in memory, and takes in workers that wait. All ranks call it at the same place."""
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if workers wait to be taken in."""
        job = _job.current()
        if not is_elastic():
            return
        waiting = array("i", [job.world.newcomers])
        try:
            job.world.allreduce(waiting, op="max")
        except Error as error:
            raise translated(error, "commit") from error
        if waiting[0] > 0:
            raise HostsUpdatedInterrupt(False)

    def save(self) -> None:
        """Saves the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Returns to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Passes rank 0's state on to all ranks, and saves it."""
        raise NotImplementedError

    def reset(self) -> None:
        """Called after workers were lost or have come, before sync()."""


class ObjectState(State):
    """Objects, as attributes: ObjectState(hvd.broadcast_object, hvd.rank, epoch=0, batch=0)."""

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int], **kwargs: Any) -> None:
        self._saved_state: Dict[str, Any] = kwargs
        self._set_attrs()
        super().__init__(bcast_object=bcast_object, get_rank=get_rank)

    def save(self) -> None:
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self) -> None:
        self._set_attrs()

    def sync(self) -> None:
        if self._saved_state:
            self.save()
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attrs()

    def _set_attrs(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def is_elastic() -> bool:
    return flag(os.environ, "DTRAIN_ELASTIC")


def reset() -> None:
    """Goes on with the workers that live, and those that wait."""
    _job.reform()
    global_process_set.ranks = list(range(_job.current().size))


def run_fn(func: Callable[..., Any], reset_job: Callable[[], None]) -> Callable[..., Any]:
    """func(state, ...), begun again after each loss with the state of the last commit, and when workers have come with
    the state that rank 0 has. In a job that is not elastic errors are raised as anywhere else."""
    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        init()
        resets, commits = 0, state._commits
        synchronized = False
        while True:
            try:
                if not synchronized:
                    state.sync()
                synchronized = False
                return func(state, *args, **kwargs)
            except HorovodInternalError as error:
                if not (error.lost and is_elastic()):
                    raise
                resets, commits = (resets + 1 if state._commits == commits else 1), state._commits
                if resets > MOST_RESETS:
                    raise
                state.restore()
            except HostsUpdatedInterrupt as interrupt:
                synchronized = interrupt.skip_sync
            before = _job.current().size
            reset_job()
            if changed(before):
                resets = 0
            state.on_reset()
    return wrapper


def changed(before: int) -> bool:
    """Whether the last reform has lost or taken in anybody."""
    job = _job.current()
    described = job.world.changes
    return job.size != before or bool(described.get("came")) or bool(described.get("went"))
