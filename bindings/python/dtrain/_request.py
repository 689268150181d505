"""Requests: operations in flight.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import asyncio
from typing import Any, Dict, Generator, List, NamedTuple, Optional

from . import _dtrain
from ._durations import Duration, wait_nanoseconds
from ._handle import Uncopied


class Result(NamedTuple):
    """The outcome of a finished operation."""
    bytes: int    #: moved into the caller's buffer (receive, pull)
    peer: int     #: the sender of what was received, else -1
    version: int  #: of tables: the version that was read or made
    count: int    # type: ignore[assignment]  #: of rows, for count_rows()


class Request(Uncopied):
    """An operation in flight. Its buffers belong to the library until it has finished; they stay
    alive even if the request is dropped. Await it, or call wait()."""
    __slots__ = ("_capsule", "_waiters", "__weakref__")

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule
        self._waiters: List["asyncio.Future[None]"] = []

    def done(self) -> bool:
        """Whether it has finished, successfully or not."""
        return _dtrain.request_wait(self._capsule, 0)

    def wait(self, timeout: Optional[Duration] = None) -> Result:
        """Waits for the operation; returns its result or raises its error. Raises a TimeoutError if
        it has not finished after timeout; the operation then continues. Ctrl-C ends only the
        wait."""
        if not _dtrain.request_wait(self._capsule, wait_nanoseconds(timeout)):
            waited = f"{timeout} s" if isinstance(timeout, (int, float)) else str(timeout)
            raise TimeoutError(f"not finished after {waited}; the operation continues")
        return self.result()

    def result(self) -> Result:
        """As wait(), but raises a StateError if the operation has not finished."""
        return _dtrain.request_result(self._capsule)

    def cancel(self) -> None:
        """Asks the operation to end early: it still finishes, with a CanceledError if nothing was
        done yet. StateError: it is a collective that other ranks may have begun."""
        _dtrain.dtrain_request_cancel(self._capsule)

    def start(self) -> None:
        """Starts a prepared operation again."""
        _dtrain.request_start(self._capsule)

    def __await__(self) -> Generator[Any, None, Result]:
        if not self.done():
            yield from self._finished()
        return self.result()

    def _finished(self) -> Generator[Any, None, None]:
        """The request was started outside of an event loop: waits in a thread."""
        loop = asyncio.get_running_loop()
        yield from loop.run_in_executor(None, _dtrain.request_wait, self._capsule, -1)


class LoopRequest(Request):
    """A request that was started in an event loop; its completion queue wakes the loop."""
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
        """Call it when all operations have ended."""
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
