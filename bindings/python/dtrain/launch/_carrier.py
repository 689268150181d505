"""What carries the agents of a job: a process of this machine that is an agent (local), leads to one (ssh), or
leads to all (srun); or a thread that passes on what an engine offers.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shlex
import subprocess
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type

from ._errors import LaunchError

AGENT = pathlib.Path(__file__).with_name("_agent.py").read_bytes()
#: Reads the agent's text from stdin, no byte more.
BOOT = """import sys
f = open(0, "rb", 0, closefd=False)
n, s = int(f.readline() or 0), b""
while len(s) < n: s += f.read(n - len(s)) or sys.exit(1)
exec(compile(s, "dtrain-agent", "exec"))"""
HELLO = b"%d\n" % len(AGENT) + AGENT


def agent_command(python: str, marker: str, *options: str) -> List[str]:
    """Starts an agent whose text comes through stdin (HELLO)."""
    return [python, "-c", BOOT, marker, *options]


class Carrier:
    """Bytes from and to the agents of some workers. The job's thread opens it, reads `output` and writes what is
    in `pending` to `input`; both are descriptors that do not block."""

    def __init__(self, indices: Sequence[int], lane: str = "") -> None:
        self.indices = list(indices)
        self.lane = lane  #: of those of one lane only a few start at the same time
        self.output = -1
        self.input = -1
        self.pending = bytearray()
        self.opened_at: Optional[float] = None
        self.kill_at: Optional[float] = None

    def open(self) -> None:
        """Starts it; a LaunchError if that is impossible."""
        raise NotImplementedError

    def kill(self) -> None:
        """Ends it at once; the agents end because their stdin does."""

    def gone(self) -> bool:
        """Whether it has ended although its output may not have: a process that an agent left behind holds it."""
        return False

    def close(self) -> None:
        for descriptor in {self.output, self.input} - {-1}:
            os.close(descriptor)
        self.output = self.input = -1

    def explain(self) -> Tuple[Type[LaunchError], str]:
        """Why the output has ended although an agent has not said that its worker has: the kind of error,
        and the text."""
        return LaunchError, "its agent has ended without a word"

    def split(self, line: bytes) -> Tuple[int, bytes]:
        """Which worker has written a line, and the line."""
        return self.indices[0], line


class Process(Carrier):
    """A child process whose stdin and stdout are the agents'."""

    def __init__(self, indices: Sequence[int], command: Sequence[str], lane: str = "",
                 environment: Optional[Dict[str, str]] = None) -> None:
        super().__init__(indices, lane)
        self.command = list(command)
        self.environment = environment
        self.child: Optional["subprocess.Popen[bytes]"] = None

    def open(self) -> None:
        try:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, env=self.environment, bufsize=0,
                                          start_new_session=True)
        except OSError as error:
            raise LaunchError(f"cannot run {self.command[0]}: {error}") from error
        assert self.child.stdin is not None and self.child.stdout is not None
        self.output, self.input = os.dup(self.child.stdout.fileno()), os.dup(self.child.stdin.fileno())
        self.child.stdout.close()
        self.child.stdin.close()
        for descriptor in (self.output, self.input):
            os.set_blocking(descriptor, False)

    def kill(self) -> None:
        if self.child is not None and self.child.poll() is None:
            self.child.kill()

    def gone(self) -> bool:
        return self.child is not None and self.child.poll() is not None

    def close(self) -> None:
        super().close()
        if self.child is not None:
            self.status()

    def status(self) -> int:
        """How the process has ended; it is killed if it does not within a second."""
        assert self.child is not None
        try:
            return self.child.wait(1)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()

    def explain(self) -> Tuple[Type[LaunchError], str]:
        return LaunchError, f"{shlex.quote(self.command[0])} has ended with status {self.status()} before its worker"


class Labeled(Process):
    """A process that carries all agents, with "INDEX: " before each line of output."""

    LABEL = re.compile(rb" *(\d+): ?(.*)", re.DOTALL)

    def split(self, line: bytes) -> Tuple[int, bytes]:
        found = self.LABEL.match(line)
        if found is None or int(found.group(1)) >= len(self.indices):
            return -1, line  # what the carrier itself says
        return int(found.group(1)), found.group(2)


class Relay(Carrier):
    """Pipes that a thread fills and empties: relay(input, output) gets two descriptors that block, and returns when
    input or its agent has ended. What it raises explains the end."""

    def __init__(self, indices: Sequence[int], relay: Callable[[int, int], None], lane: str = "") -> None:
        super().__init__(indices, lane)
        self.relay = relay
        self.error: Optional[BaseException] = None
        self.thread: Optional[threading.Thread] = None

    def open(self) -> None:
        theirs_in, self.input = os.pipe()
        self.output, theirs_out = os.pipe()
        os.set_blocking(self.input, False)
        os.set_blocking(self.output, False)

        def run() -> None:
            try:
                self.relay(theirs_in, theirs_out)
            except BaseException as error:  # explain() says it
                self.error = error
            finally:
                os.close(theirs_in)
                os.close(theirs_out)
        self.thread = threading.Thread(target=run, name="dtrain-relay", daemon=True)
        self.thread.start()

    def explain(self) -> Tuple[Type[LaunchError], str]:
        if isinstance(self.error, LaunchError):
            return type(self.error), self.error.text
        return LaunchError, str(self.error) if self.error else "its agent has ended without a word"
