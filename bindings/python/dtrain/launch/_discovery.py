"""Asks a function of the program which hosts are there now, again and again, in a thread of its own.

SPDX-License-Identifier: Apache-2.0
"""
import threading
import time
from typing import Callable, List, Optional, Sequence

from .._errors import Error
from ._elastic import Discovery
from ._errors import BackendError
from ._hosts import Host, parse_hosts

PATIENCE = 30.0  #: seconds that a call may take


class Seeker:
    """Calls discovery every `interval` seconds. What it returns or raises is read by the job's thread; a call that
    hangs keeps only the thread of the seeker busy."""

    def __init__(self, discovery: Discovery, interval: float, check: Callable[[Sequence[Host]], None]) -> None:
        self.discovery = discovery
        self.interval = interval
        self.check = check
        self.warned = ""
        self._changed = threading.Condition()
        self._hosts: Optional[List[Host]] = None
        self._error: Optional[Exception] = None
        self._called_at = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dtrain-discovery", daemon=True)

    def first(self) -> List[Host]:
        """Starts the thread, and waits for the first list; its error is the caller's."""
        self._called_at = time.monotonic()
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._hosts is not None or self._error is not None, PATIENCE)
            hosts = self._hosts
        if hosts is not None:
            return hosts
        self.close()
        raise BackendError(f"{self.problem(time.monotonic() + PATIENCE)}; nothing was started") from self._error

    def close(self) -> None:
        self._over.set()

    def hosts(self) -> List[Host]:
        """The last list that was right."""
        with self._changed:
            assert self._hosts is not None
            return self._hosts

    def problem(self, now: float) -> str:
        """What is wrong with discovery now; "" if nothing."""
        with self._changed:
            if self._called_at and now - self._called_at >= PATIENCE:
                return f"discovery: the call of {name_of(self.discovery)} has not returned for {PATIENCE:g} s"
            error = self._error
        if error is None:
            return ""
        if isinstance(error, Error):
            return f"discovery: {name_of(self.discovery)} returned what cannot be used: {error}"
        return f"discovery: {name_of(self.discovery)} raised {type(error).__name__}: {error}"

    def warning(self, now: float) -> str:
        """The problem, once for each text."""
        text = self.problem(now)
        if text == self.warned:
            return ""
        self.warned = text
        return f"{text}; the last list of hosts stays" if text else ""

    def _run(self) -> None:
        while not self._over.is_set():
            hosts, error = None, None
            with self._changed:
                self._called_at = time.monotonic()
            try:
                hosts = parse_hosts(self.discovery())
                self.check(hosts)
            except Exception as raised:
                hosts, error = None, raised
            with self._changed:
                self._called_at = 0.0
                self._hosts, self._error = hosts or self._hosts, error
                self._changed.notify_all()
            self._over.wait(self.interval)


def name_of(discovery: Discovery) -> str:
    return str(getattr(discovery, "__qualname__", None) or type(discovery).__name__)
