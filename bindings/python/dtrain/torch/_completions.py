"""Completes the futures of operations, from one thread for a job. It sleeps while nobody has asked for a future.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import threading
from typing import Any, Dict, List, Optional

from .. import _dtrain

DEPTH = 1 << 14  #: operations in flight, and ended ones that nobody has taken from the queue
DRAIN_EVERY = 256
SLICE_NS = 100_000_000  #: of the thread's waits, after which it looks whether the job ends


class Completions:
    """All operations of a job go through one completion queue. What it says is a hint: that the work of this request
    may have ended."""

    def __init__(self, context: Any) -> None:
        self.queue = _dtrain.dtrain_cq_create(context._handle, DEPTH)
        self._wanted: Dict[int, Any] = {}  # works, by the addresses of their requests
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._closing = False
        self._posted = 0

    def posted(self, count: int = 1) -> None:
        """Called for each operation. The queue has room for many, so it is emptied only now and then."""
        self._posted += count
        if self._posted >= DRAIN_EVERY:
            self._posted = 0
            self.drain()

    def want(self, work: Any, addresses: List[int]) -> None:
        with self._changed:
            for address in addresses:
                self._wanted[address] = work
        if work.is_completed():  # its events may be gone
            self._complete(work)
            return
        with self._changed:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="dtrain.torch", daemon=True)
                self._thread.start()
            self._changed.notify()

    def drain(self) -> None:
        while True:
            addresses = _dtrain.poll_requests(self.queue, 0)
            self._handle(addresses)
            if not addresses:
                return

    def close(self) -> None:
        """Called when no operation is in flight any more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.drain()
        for work in set(self._wanted.values()):
            self._complete(work)
        _dtrain.dtrain_cq_destroy(self.queue)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._wanted and not self._closing:
                    self._changed.wait()
                if self._closing:
                    return
            self._handle(_dtrain.poll_requests(self.queue, SLICE_NS))

    def _handle(self, addresses: List[int]) -> None:
        for address in addresses:
            work = self._wanted.get(address)
            if work is not None and work.is_completed():
                self._complete(work)

    def _complete(self, work: Any) -> None:
        """Whoever takes the work out of the table completes its future, so this happens once."""
        with self._changed:
            mine = [address for address, one in self._wanted.items() if one is work]
            for address in mine:
                del self._wanted[address]
        if mine or not work.requests:
            work.complete_future()
