"""One operation of one rank, from its submission to its end. The packages of frameworks derive what runs it.

SPDX-License-Identifier: Apache-2.0
"""
import threading
from array import array
from typing import Any, Optional, Sequence

from ... import _dtrain
from ..._communicator import Communicator
from ..._errors import MismatchError
from ._request import Request
from .exceptions import RefusedError, translated


class Call:
    """name: what ranks know it by, with its kind. The engine sets the rest."""

    def __init__(self, request: Request, name: Optional[str]) -> None:
        self.request = request
        self.given = name is not None
        self.name = name or ""
        self.ranks: Sequence[int] = ()  #: of the process set
        self.awaited = False  #: the program waits for it at once
        self.direct: Any = None  #: the request of the queue that reduces the tensor itself
        self.token: Any = None  #: the request of the queue that says that all ranks are there
        self.presence: "Optional[array[int]]" = None  #: of the token: 1 for each rank that has submitted
        self.error: Optional[BaseException] = None
        self._done = threading.Event()
        self._settled = False

    # ---- for frameworks ----

    @property
    def array(self) -> Any:
        """What an all-reduce adds up, or None if the queue cannot: then run() does everything."""
        return None

    @property
    def out(self) -> Any:
        """Where the sum belongs; None: into the array itself."""
        return None

    @property
    def op(self) -> Any:
        return None

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        """Runs the operation, in the engine's thread, after the requests of all ranks have been found to fit."""

    def finish(self) -> None:
        """What the operation still needs when its result is there: it runs in the thread that waits."""

    def unwell(self, error: BaseException) -> BaseException:
        """The error as the program should see it."""
        if isinstance(error, MismatchError):
            return RefusedError(f"{self.name}: the ranks' calls do not fit together: this rank has {self.request.dtype}"
                                f"{list(self.request.shape)}, others have another tensor, or the one of before "
                                f"({error})")
        return translated(error, self.name, self.ranks)

    # ---- for the engine and for handles ----

    def end(self, error: Optional[BaseException] = None) -> None:
        self.error = error
        self._done.set()

    def ended(self) -> bool:
        if self.direct is not None:
            return bool(_dtrain.request_wait(self.direct, 0))
        return self._done.is_set()

    def wait(self) -> None:
        """Returns when the operation has ended; raises its error."""
        if self._settled:
            return
        if self.direct is not None:
            try:
                _dtrain.request_wait(self.direct, -1)
                _dtrain.request_result(self.direct)
            except Exception as error:
                raise self.unwell(error) from error
        else:
            self._done.wait()
            if self.error is not None:
                raise self.unwell(self.error) from self.error
        self.finish()
        self._settled = True
