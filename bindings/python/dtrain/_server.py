"""Parameter servers within a program; the program dtrain-server is a stand-alone one.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import time
from typing import Any, List, Optional

from . import _dtrain
from ._durations import Duration, wait_nanoseconds
from ._handle import Child

SLICE = 0.02  #: seconds between two checks for signals


def server_weights(workers: int, dedicated: int, serving: int) -> List[int]:
    """The setting `weights` of tables for `dedicated` servers followed by `serving` workers that
    serve: it minimizes the load of the busiest link."""
    return _dtrain.dtrain_server_weights(workers, dedicated, serving)


class Server(Child):
    """A parameter server that serves in the background. Made by Context.serve()."""

    def __init__(self, context: Any, handle: Any) -> None:
        super().__init__(context, handle)

    def _destroy(self) -> None:
        _dtrain.dtrain_server_destroy(self._handle)

    def wait(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until all workers have left and returns whether they have; raises the error if the
        job failed."""
        limit = wait_nanoseconds(timeout)
        end = float("inf") if limit < 0 else time.monotonic() + limit / 1e9
        while True:
            left = min(SLICE, max(0.0, end - time.monotonic()))
            if _dtrain.dtrain_server_wait(self._handle, int(left * 1e9)) == _dtrain.DTRAIN_OK:
                return True
            if time.monotonic() >= end:
                return False

    def stats(self) -> str:
        """What the server has counted, as text for Prometheus."""
        return _dtrain.dtrain_stats_server(self._handle)
