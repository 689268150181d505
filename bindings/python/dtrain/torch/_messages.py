"""Messages between two ranks, and the barrier that names who is missing.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import time
from datetime import timedelta
from typing import Any, Iterable, List, NamedTuple

from .. import _dtrain
from .._constants import ANY_RANK
from ._errors import DtrainError
from ._lists import Lists
from ._operations import only
from ._tensors import wire
from ._torch import UNSET, torch
from ._work import Work

HERE, GO_ON = 0xfffffff0, 0xfffffff1  #: tags of the monitored barrier, beyond those of torch


class Messages(Lists):
    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        tensor = only(tensors, "tensor")
        return self._post("send", _dtrain.dtrain_send, (wire(tensor, "tensor", False).tensor, dst, tag), [tensor])

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        tensor = only(tensors, "tensor")
        array, finish = wire(tensor, "tensor", True)
        return self._post("recv", _dtrain.dtrain_recv, (array, src, tag), [tensor], finish)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self.recv(tensors, ANY_RANK, tag)

    _barriers = 0  #: monitored barriers that this rank has called

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Waits until all ranks are here. Rank 0 waits for the others' messages, and the error there names the rank
        that did not come, or with wait_all_ranks all such ranks. timeout: torch passes a Backend its options."""
        limit = getattr(timeout, "timeout", timeout)
        if limit is None or limit == UNSET:
            limit = self._timeout
        if not isinstance(limit, timedelta):
            limit = timedelta(seconds=limit)
        with self._recorded("monitored_barrier"):
            if self._comm.rank == 0:
                self._wait_for_all(limit, wait_all_ranks)
            else:
                self._report(limit)

    def _wait_for_all(self, limit: timedelta, wait_all_ranks: bool) -> None:
        deadline, number = time.monotonic() + limit.total_seconds(), self._barriers + 1
        waits = {rank: self._word_of(rank, limit) for rank in range(1, self._comm.size)}
        missing: List[int] = []
        try:
            for rank in waits:
                while came(waits[rank].request, left_of(deadline)) and int(waits[rank].number) < number:
                    waits[rank] = self._word_of(rank, limit)  # that one was late for an earlier barrier
                if int(waits[rank].number) < number:
                    missing.append(rank)
                    if not wait_all_ranks:
                        break
        except BaseException:  # Ctrl-C: the next barrier must get the messages
            cancel_all(waits.values())
            raise
        self._barriers = number
        if missing:
            cancel_all(waits.values())
            names = f"Rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
            raise DtrainError(f"dtrain: monitored_barrier: {names} failed to pass monitoredBarrier in "
                              f"{limit / timedelta(milliseconds=1):g} ms: Rank 0 timed out in monitoredBarrier (timeout)",
                              missing[0])
        for rank in waits:
            self._start(_dtrain.dtrain_send, (torch.tensor([number]), rank, GO_ON), limit)

    def _word_of(self, rank: int, limit: timedelta) -> "Word":
        """A receive of the number of the barrier at which a rank is; 0 until it has come."""
        number = torch.zeros(1, dtype=torch.int64)
        return Word(number, self._start(_dtrain.dtrain_recv, (number, rank, HERE), limit))

    def _report(self, limit: timedelta) -> None:
        """Tells rank 0 that this rank is here, and waits for its word; one for an earlier barrier came too late."""
        deadline = time.monotonic() + limit.total_seconds()
        self._barriers += 1
        own, word = torch.tensor([self._barriers]), torch.zeros(1, dtype=torch.int64)
        try:
            self._run("monitored_barrier", _dtrain.dtrain_send, (own, 0, HERE), limit)
            while int(word) < self._barriers:
                left = timedelta(microseconds=max(left_of(deadline) / 1e3, 1))
                self._run("monitored_barrier", _dtrain.dtrain_recv, (word, 0, GO_ON), left)
        except DtrainError as error:
            raise DtrainError(f"dtrain: monitored_barrier: rank {self._comm.rank} is here, but rank 0 did not say that all "
                              f"are; its error names who is missing ({error})", error.rank) from error


class Word(NamedTuple):
    number: Any
    request: Any


def left_of(deadline: float) -> int:
    """Nanoseconds."""
    return round(max(deadline - time.monotonic(), 0.0) * 1e9)


def cancel_all(waits: Iterable[Word]) -> None:
    for wait in waits:
        _dtrain.dtrain_request_cancel(wait.request)


def came(request: Any, limit_ns: int) -> bool:
    try:
        if not _dtrain.request_wait(request, limit_ns):
            return False
        _dtrain.request_result(request)
        return True
    except Exception:  # pylint: disable=broad-except
        return False
