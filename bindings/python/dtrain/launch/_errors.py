"""What launching fails with; every error is a dtrain.LaunchError and a dtrain.Error.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional

from .. import _dtrain
from .._errors import (ConfigError, Error, InternalError, LimitError, NotFoundError, PeerError, TimeoutError,
                       TransportError)


class LaunchError(Error):
    """Launching workers, or waiting for them, failed. worker: the one that is to blame, if it is one."""
    status = _dtrain.DTRAIN_ERR_STATE

    def __init__(self, text: str, rank: Optional[int] = None, status: Optional[int] = None,
                 worker: Any = None) -> None:
        super().__init__(text, rank, status)
        self.worker = worker


class WorkerError(LaunchError, PeerError):
    """A worker failed. Its function's exception is the __cause__."""
    status = PeerError.status


class HostError(LaunchError, TransportError):
    """A host could not be reached, or was lost."""
    status = TransportError.status


class ScriptError(LaunchError, NotFoundError):
    """There is no such script, program or folder where the worker was to start."""
    status = NotFoundError.status


class SlotsError(LaunchError, LimitError):
    """More workers than slots."""
    status = LimitError.status


class BackendError(LaunchError, ConfigError):
    """The engine cannot be used, or refused the job."""
    status = ConfigError.status


class SendError(LaunchError, ConfigError):
    """A function cannot be sent to the workers."""
    status = ConfigError.status


class LaunchTimeoutError(LaunchError, TimeoutError):
    """Workers have not started, or not ended, in time."""
    status = TimeoutError.status


class LaunchInternalError(LaunchError, InternalError):
    """A bug in dtrain.launch."""
    status = InternalError.status
