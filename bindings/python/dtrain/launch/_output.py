"""What workers write: a file for each, its last lines in memory, and all of it on this program's output, with
the worker's label before each line.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys
import threading
from collections import deque
from typing import Deque, List, Optional

TAIL = 200  #: lines
LONGEST = 1 << 16  #: bytes of a line; longer ones are cut into several


class Log:
    """What one worker has written."""

    def __init__(self, folder: pathlib.Path, label: str, echo: bool) -> None:
        self.path = folder / f"{label}.log"
        self.label = label
        self.echo = echo
        self._file = open(self.path, "wb")
        self._lines: Deque[str] = deque(maxlen=TAIL)
        self._lock = threading.Lock()

    def write(self, line: bytes, whole: bool = True) -> None:
        """A line without its end. whole: it had one."""
        text = line.decode(errors="replace")
        with self._lock:
            if not self._file.closed:
                self._file.write(line + b"\n" * whole)
                self._file.flush()
            self._lines.append(text)
        if self.echo:
            echo(f"[{self.label}] {text}\n")

    def tail(self, count: int) -> List[str]:
        with self._lock:
            return list(self._lines)[-count:] if count > 0 else []

    def close(self) -> None:
        with self._lock:
            self._file.close()


def echo(text: str) -> None:
    """One write, so that lines stay whole. An output that is closed ends no job."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass


class Lines:
    """Cuts what arrives into lines."""

    def __init__(self) -> None:
        self._pending = b""

    def add(self, data: bytes) -> List[bytes]:
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > LONGEST:
            lines.append(self._pending)
            self._pending = b""
        return lines

    def rest(self) -> Optional[bytes]:
        """A last line without an end."""
        rest, self._pending = self._pending, b""
        return rest or None
