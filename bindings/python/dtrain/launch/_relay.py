"""Passes on bytes between an agent that is a child process and whatever leads to the launcher. For backends whose
engine runs Python functions where the workers are to be.

SPDX-License-Identifier: Apache-2.0
"""
import os
import select
import subprocess
from typing import Callable, List, Optional

MOST = 1 << 16


def start_agent(command: List[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data):]


def relay(left_in: int, left_out: int, right_in: int, right_out: int, hang_up: Callable[[], None]) -> None:
    """left_in to right_out and right_in to left_out, until right_in has ended. hang_up(): says to the right side that
    left_in has ended."""
    sources = {left_in: right_out, right_in: left_out}
    while right_in in sources:
        ready, _, _ = select.select(list(sources), [], [])
        for source in ready:
            try:
                data = os.read(source, MOST)
                if data:
                    write_all(sources[source], data)
                    continue
            except OSError:
                pass
            if source == left_in:
                hang_up()
            del sources[source]


def closed(descriptor: int) -> bool:
    """Whether the other end of a pipe is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


class Child:
    """An agent with which an actor exchanges bytes."""

    def __init__(self, command: List[str]) -> None:
        self._agent = start_agent(command)

    def exchange(self, data: Optional[bytes], seconds: float) -> Optional[bytes]:
        """Sends bytes (None: the end), and returns what comes within this time; None at the end."""
        assert self._agent.stdin is not None and self._agent.stdout is not None
        try:
            if data is None:
                self._agent.stdin.close()
            elif data:
                write_all(self._agent.stdin.fileno(), data)
        except OSError:
            pass  # it has ended, as its output says
        ready, _, _ = select.select([self._agent.stdout], [], [], seconds)
        return os.read(self._agent.stdout.fileno(), MOST) or None if ready else b""
