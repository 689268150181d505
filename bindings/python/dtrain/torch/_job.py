"""The job that this process is in: one context for all groups of the program. The default group is its world; groups
of some ranks are communicators of that context, and cost neither a thread nor a connection of their own.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import atexit
import os
import threading
import weakref
from datetime import timedelta
from typing import Any, Mapping, Sequence

from .._communicator import Communicator
from .._context import Context
from .._errors import Error
from ._completions import Completions
from ._errors import DtrainError, translated
from ._exchange import Exchange

FIRST_TAG = 1 << 30  #: of groups; programs that use the communicator have those before

_jobs: "weakref.WeakSet[Job]" = weakref.WeakSet()


class Job:
    """Ends with its last group."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, options: Mapping[str, Any]) -> None:
        self._exchange = Exchange(store, rank, size, timeout)
        self.process = os.getpid()
        self.size = size
        self._users = 0
        self._lock = threading.Lock()
        self.context = Context(options)
        try:
            self.world = self.context.join(allgather=self._exchange, size=size, rank=rank, timeout=timeout)
        except Error as error:
            self.context.close()
            cause = error.__cause__
            raise cause if isinstance(cause, RuntimeError) else translated(error, "joining the group") from error
        except BaseException:
            self.context.close()
            raise
        self.completions = Completions(self.context)
        _jobs.add(self)

    @property
    def here(self) -> bool:
        """False in a process that was forked since, such as a worker of a DataLoader."""
        return self.process == os.getpid()

    def enter(self) -> None:
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Ends the job when its last group has left."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.close()

    def group(self, ranks: Sequence[int], name: str, timeout: timedelta) -> Communicator:
        """A communicator of these ranks of the world. name: the same on all of them, and no other group's."""
        try:
            tag = FIRST_TAG + self._exchange.number(name, timeout)
        except Exception as error:
            raise DtrainError(f"dtrain: new group {name!r} of ranks {list(ranks)}: torch's store gave no number for it: "
                              f"{error}") from error
        try:
            return self.world.create_group(ranks, tag, timeout=timeout)
        except Error as error:
            raise translated(error, f"new group of ranks {list(ranks)}") from error

    def close(self) -> None:
        _jobs.discard(self)
        if not self.here or self.context.closed:
            return
        self.context._end()  # ends all operations
        self.completions.close()
        self.context.close()


def _end_all() -> None:
    for job in list(_jobs):
        job.close()


atexit.register(_end_all)
