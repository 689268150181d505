"""Operations in flight, as torch's Work: requests of the library, and a future only where somebody asks for one.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from datetime import timedelta
from threading import Lock
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .. import _dtrain
from ._errors import DtrainError, translated
from ._tensors import storage_of
from ._torch import c10d, torch

NO_TIMEOUT = timedelta(0)
KEPT = 4096
Requests = Tuple[Any, ...]


class Work(c10d.Work):  # type: ignore[misc]
    """One operation. It may have several requests: of lists of tensors that travel each by itself."""

    def __init__(self, what: str, requests: Requests, tensors: Any, finish: Optional[Callable[[], Any]],
                 completions: Any, arrays: Sequence[Any] = ()) -> None:
        """arrays: the tensors that the requests use."""
        super().__init__()
        self._what = what
        self.requests = requests
        self._memory = [(storage, storage.data_ptr()) for storage in map(storage_of, arrays)]
        self._tensors = tensors
        self._finish = finish
        self._completions = completions
        self._error: Optional[BaseException] = None
        self._ended = False
        self._source = -1
        self._lock = None if finish is None else Lock()
        self._future: Any = None
        self._keeper: Optional[Dict[int, Any]] = None

    def keep(self, keeper: Dict[int, Any]) -> None:
        """Keeps this object alive until somebody has waited for it: before torch 2.0 the C++ object does not do this,
        and without it waits forever. Works that nobody waits for are kept up to a number."""
        self._keeper = keeper
        keeper[id(self)] = self
        if len(keeper) > KEPT:
            keeper.pop(next(iter(keeper)), None)

    def wait(self, timeout: Any = NO_TIMEOUT) -> bool:
        """Waits until the operation has ended; raises its error. timeout 0: as long as the operation itself may take."""
        if self._keeper is not None:
            self._keeper.pop(id(self), None)
        limit = -1
        if timeout is not NO_TIMEOUT and timeout:
            limit = round(timeout.total_seconds() * 1e9)
        if not self._ended:
            for request in self.requests:
                if not _dtrain.request_wait(request, limit):
                    raise DtrainError(f"dtrain: {self._what}: Timed out after {timeout}, the argument of wait(); "
                                      "the operation continues")
            self._settle()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self._ended:
            for request in self.requests:
                if not _dtrain.request_wait(request, 0):
                    return False
            self._settle()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error if self.is_completed() else None

    def result(self) -> List[Any]:
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        """The sender of what was received."""
        self.wait()
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """A torch.futures.Future of the list of tensors."""
        if self._future is None:
            source: Any = torch.futures.Future(**devices_of(self._tensors))
            # An exception that Python sets would be a value to C++ (DDP), so a callback raises it.
            self._future = source.then(unwrapped)
            self._source_future = source
            self._completions.want(self, [_dtrain.request_address(request) for request in self.requests])
        return self._future

    def complete_future(self) -> None:
        """Called once, when all requests have ended."""
        if self._keeper is not None:
            self._keeper.pop(id(self), None)
        self._source_future.set_result(self._tensors if self._error is None else self._error)

    def _settle(self) -> None:
        """Takes the outcome of the ended requests."""
        if self._lock is None:
            self._take()
            return
        with self._lock:
            if not self._ended:
                self._take()

    def _take(self) -> None:
        error: Optional[BaseException] = None
        for request in self.requests:
            try:
                self._source = _dtrain.request_result(request).peer
            except Exception as failed:  # pylint: disable=broad-except
                error = error or translated(failed, self._what)
        for storage, address in self._memory:
            if storage.data_ptr() != address:
                error = error or DtrainError(f"dtrain: {self._what}: a tensor was resized while the operation used its "
                                             "memory, so the result is lost; wait for the operation before")
        if error is None and self._finish is not None:
            try:
                self._finish()
            except Exception as failed:  # pylint: disable=broad-except
                error = failed
        self._error = error
        self._finish = None
        self._memory = []
        self._ended = True


def devices_of(tensors: Any) -> Dict[str, Any]:
    """What torch wants to know of a future whose tensors are on GPUs."""
    flat = [one for some in tensors for one in (some if isinstance(some, (list, tuple)) else [some])]
    found = {one.device for one in flat if one.is_cuda}
    return {"devices": sorted(found, key=str)} if found else {}


def unwrapped(future: Any) -> Any:
    value = future.value()
    if isinstance(value, BaseException):
        raise value
    return value

