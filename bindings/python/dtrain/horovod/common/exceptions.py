"""The errors that Horovod's programs catch.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Optional, Sequence

from ..._errors import AbortedError, CanceledError, Error, PeerError, TransportError
from ..._errors import TimeoutError as DtrainTimeoutError

#: After these a job that goes on without the lost ranks may succeed. Others are faults of the program.
LOSSES = (PeerError, AbortedError, CanceledError, DtrainTimeoutError, TransportError)


class HorovodInternalError(RuntimeError):
    """An operation failed. `rank` is the rank that caused it, if it is known, and __cause__ the library's error."""

    def __init__(self, text: object = "", rank: Optional[int] = None, lost: bool = False) -> None:
        super().__init__(str(text))
        self.rank = rank
        self.lost = lost  #: whether hvd.elastic.run restores the last commit and goes on


class RefusedError(HorovodInternalError, ValueError):
    """The ranks' calls do not fit together, or one of them has wrong arguments. All ranks get it."""


class HostsUpdatedInterrupt(RuntimeError):
    """Raised by State.commit() and State.check_host_updates() when workers have come."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("workers wait to be taken in")
        self.skip_sync = skip_sync


def translated(error: BaseException, what: str, ranks: Sequence[int] = ()) -> HorovodInternalError:
    """The error of the library as Horovod's programs know it. ranks: of the process set, if there is one; the library
    numbers them from 0."""
    if isinstance(error, HorovodInternalError):
        return error
    text = f"{what}: {error}"
    if not isinstance(error, Error):
        return HorovodInternalError(text)
    rank = error.rank
    if list(ranks) != list(range(len(ranks))):
        text = f"{what}: in process set {list(ranks)}, whose ranks are numbered from 0 here: {error}"
        rank = None if rank is None or not 0 <= rank < len(ranks) else ranks[rank]
    return HorovodInternalError(text, rank, isinstance(error, LOSSES))
