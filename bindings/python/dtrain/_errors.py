"""One exception for each status of the C API.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import builtins
from typing import Any, Dict, Optional, Tuple, Type

from . import _dtrain


class Error(Exception):
    """The error of a call of the library.

    status: the status number of the C API (0 if there is none); name: its name there; text: what
    failed, where, and what to do; rank: the rank that failed, if the library knows it.
    """
    status: int = 0

    def __init__(self, text: str, rank: Optional[int] = None, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.text = text
        self.rank = rank
        if status is not None:
            self.status = status

    @property
    def name(self) -> str:
        return _dtrain.dtrain_status_name(self.status)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.text, self.rank, self.status)


class InvalidError(Error, ValueError):
    """Invalid argument."""
    status = _dtrain.DTRAIN_ERR_INVALID


class NoMemoryError(Error, MemoryError):
    """Out of memory."""
    status = _dtrain.DTRAIN_ERR_NO_MEMORY


class UnsupportedError(Error, NotImplementedError):
    """Not supported."""
    status = _dtrain.DTRAIN_ERR_UNSUPPORTED


class VersionError(Error):
    """Version mismatch."""
    status = _dtrain.DTRAIN_ERR_VERSION


class StateError(Error):
    """Wrong state: closed, not finished, made before a fork, ..."""
    status = _dtrain.DTRAIN_ERR_STATE


class BusyError(Error):
    """Resource busy."""
    status = _dtrain.DTRAIN_ERR_BUSY


class TimeoutError(Error, builtins.TimeoutError):  # pylint: disable=redefined-builtin
    """Timed out."""
    status = _dtrain.DTRAIN_ERR_TIMEOUT


class CanceledError(Error):
    """Canceled."""
    status = _dtrain.DTRAIN_ERR_CANCELED


class TruncatedError(Error):
    """Buffer too small."""
    status = _dtrain.DTRAIN_ERR_TRUNCATED


class NotFoundError(Error, LookupError):
    """Not found."""
    status = _dtrain.DTRAIN_ERR_NOT_FOUND


class LimitError(Error):
    """Limit exceeded."""
    status = _dtrain.DTRAIN_ERR_LIMIT


class CorruptError(Error):
    """Corrupt data."""
    status = _dtrain.DTRAIN_ERR_CORRUPT


class ConfigError(Error):
    """Bad configuration."""
    status = _dtrain.DTRAIN_ERR_CONFIG


class IoError(Error, OSError):
    """System call failed."""
    status = _dtrain.DTRAIN_ERR_IO


class TransportError(Error):
    """Transport failed."""
    status = _dtrain.DTRAIN_ERR_TRANSPORT


class AuthError(Error):
    """Authentication failed."""
    status = _dtrain.DTRAIN_ERR_AUTH


class PeerError(Error):
    """Peer failed; call Communicator.shrink() to continue."""
    status = _dtrain.DTRAIN_ERR_PEER


class AbortedError(Error):
    """Communicator aborted."""
    status = _dtrain.DTRAIN_ERR_ABORTED


class MismatchError(Error):
    """Ranks made different calls."""
    status = _dtrain.DTRAIN_ERR_MISMATCH


class FencedError(Error):
    """The group went on without this rank."""
    status = _dtrain.DTRAIN_ERR_FENCED


class DeviceError(Error):
    """Device failed."""
    status = _dtrain.DTRAIN_ERR_DEVICE


class InternalError(Error):
    """Bug in dtrain."""
    status = _dtrain.DTRAIN_ERR_INTERNAL


BY_STATUS: Dict[int, Type[Error]] = {
    kind.status: kind for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Error) and kind is not Error}


def make_error(status: int, text: str, rank: Optional[int]) -> Error:
    """Makes the error of a status. A newer library may have statuses that are unknown here."""
    return BY_STATUS.get(status, Error)(text, rank, status)
