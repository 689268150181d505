"""Operations in flight.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import asyncio
from typing import Any, Dict, Generator, List, NamedTuple, Optional

from . import _dtrain
from ._durations import Duration, wait_nanoseconds
from ._handle import Uncopied


class Result(NamedTuple):
    """What a finished operation tells."""
    bytes: int    #: moved into the caller's buffer (receive, pull)
    peer: int     #: the sender of what was received, else -1
    version: int  #: of tables: the version read or made
    count: int    # type: ignore[assignment]  #: of rows, where they were counted


class Request(Uncopied):
    """An operation in flight. It keeps the buffers of the operation, also when nobody keeps it:
    they are the library's until it has finished. Await it, or wait() for it."""
    __slots__ = ("_capsule", "_waiters", "__weakref__")

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule
        self._waiters: List["asyncio.Future[None]"] = []

    def done(self) -> bool:
        """Whether it has finished, well or not."""
        return _dtrain.request_wait(self._capsule, 0)

    def wait(self, timeout: Optional[Duration] = None) -> Result:
        """Its result, or the exception that it ended in. TimeoutError when it has not finished in
        so many seconds; it then goes on. Ctrl-C ends the wait, not the operation."""
        if not _dtrain.request_wait(self._capsule, wait_nanoseconds(timeout)):
            waited = f"{timeout} s" if isinstance(timeout, (int, float)) else str(timeout)
            raise TimeoutError(f"not finished after {waited}; the operation goes on")
        return self.result()

    def result(self) -> Result:
        """As wait(), but a StateError when it has not finished."""
        return _dtrain.request_result(self._capsule)

    def cancel(self) -> None:
        """Asks for an early end: it still finishes, with a CanceledError if nothing was done yet. A
        StateError for what other ranks may have begun (collectives)."""
        _dtrain.dtrain_request_cancel(self._capsule)

    def start(self) -> None:
        """Begins a prepared operation, once more."""
        _dtrain.request_start(self._capsule)

    def __await__(self) -> Generator[Any, None, Result]:
        if not self.done():
            yield from self._finished()
        return self.result()

    def _finished(self) -> Generator[Any, None, None]:
        """Started outside of an event loop: a thread waits for it."""
        loop = asyncio.get_running_loop()
        yield from loop.run_in_executor(None, _dtrain.request_wait, self._capsule, -1)


class LoopRequest(Request):
    """Started in an event loop, which its completion queue wakes."""
    __slots__ = ("_loop",)

    def __init__(self, capsule: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(capsule)
        self._loop = loop

    def _finished(self) -> Generator[Any, None, None]:
        if asyncio.get_running_loop() is not self._loop:
            yield from super()._finished()
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        yield from waiter

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


class Reactor:
    """A completion queue whose descriptor an event loop watches."""

    def __init__(self, context: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = _dtrain.dtrain_cq_create(context._handle, 1 << 14)
        self._loop = loop
        self._requests: Dict[int, LoopRequest] = {}
        self._tag = 0
        self._descriptor = _dtrain.dtrain_cq_fd(self.queue)
        loop.add_reader(self._descriptor, self.drain)

    def next_tag(self) -> int:
        self._tag += 1
        return self._tag

    def watch(self, tag: int, capsule: Any) -> LoopRequest:
        request = self._requests[tag] = LoopRequest(capsule, self._loop)
        return request

    def drain(self) -> None:
        for tag in _dtrain.poll_tags(self.queue):
            self._requests.pop(tag)._wake()

    def close(self) -> None:
        """Once all operations have ended."""
        if not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        while True:
            tags = _dtrain.poll_tags(self.queue)
            for tag in tags:
                request = self._requests.pop(tag)
                if not self._loop.is_closed():
                    request._wake()
            if not tags:
                break
        _dtrain.dtrain_cq_destroy(self.queue)
