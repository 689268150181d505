"""What is known of the processes of a job.

SPDX-License-Identifier: Apache-2.0
"""
import enum
import pathlib
import signal
from typing import Any, Dict, List, Optional, Tuple

from .._errors import AbortedError, PeerError
from ._errors import LaunchError
from ._output import Log


class State(str, enum.Enum):
    PENDING = "pending"  #: not started yet: waiting for a host, a slot or the engine
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"  #: by stop_workers(), or since another worker failed

    def __str__(self) -> str:
        return self.value


#: States that last.
ENDED = (State.SUCCEEDED, State.FAILED, State.STOPPED)


class Worker:
    """A process of a job: a worker, or a server. A newcomer to an elastic job has a number that counts on, and no rank
    that is known here: the ranks of elastic jobs change."""

    def __init__(self, job: str, index: int, label: str, log: Log, *, rank: Optional[int] = None,
                 elastic: bool = False) -> None:
        self.index = index  #: in the job: workers, then servers, then newcomers
        self.rank = rank  #: that it starts with; None: a server, or a newcomer
        self.label = label  #: before its lines of output: its number, "s0" for a server
        self.server = label.startswith("s")
        self.newcomer = rank is None and not self.server
        self.id = f"{job}.{label}"
        self.name = f"server {label[1:]}" if self.server else f"worker {label}" if elastic else f"rank {rank}"
        self.replaced = False  #: it failed, or its host is gone, and its elastic job went on without it
        self.log = log
        self.state = State.PENDING
        self.host: Optional[str] = None
        self.pid: Optional[int] = None
        self.exit_status: Optional[int] = None  #: 128 and the signal for one that was killed
        self.signal: Optional[int] = None  #: the one that killed it
        self.reason = ""  #: why it failed or was stopped
        self.traceback = ""  #: of a function
        self.result: Any = None  #: of a function
        self.error: Optional[BaseException] = None  #: what a function raised
        self.kind = LaunchError
        self.ended_at: Optional[float] = None  #: time.monotonic()

    @property
    def address(self) -> Optional[str]:
        """"host:pid", once it runs."""
        return None if self.pid is None else f"{self.host}:{self.pid}"

    @property
    def log_path(self) -> pathlib.Path:
        return self.log.path

    def tail(self, lines: int = 20) -> List[str]:
        """The last lines that it has written, 200 at most; `log_path` has all."""
        return self.log.tail(lines)

    def describe_end(self) -> str:
        """Why it failed: "rank 1 on alpha: exit status 3; its last line: ..."."""
        text = f"{self.name} on {self.host}" if self.host else self.name
        text = f"{text}: {self.reason}"
        last = next((line.strip() for line in reversed(self.tail()) if line.strip()), "")
        return f"{text}; its last line: {last}" if last and last not in self.reason else text

    def as_dict(self) -> Dict[str, Any]:
        return {"id": self.id, "rank": self.rank, "state": str(self.state),
                "replaced": self.replaced, "address": self.address,
                "exit_status": self.exit_status, "signal": self.signal, "reason": self.reason,
                "log": str(self.log_path)}

    def __repr__(self) -> str:
        where = f" at {self.address}" if self.address else ""
        why = f": {self.reason}" if self.reason else ""
        return f"<{self.name} of job {self.id.rsplit('.', 1)[0]}: {self.state}{where}{why}>"


def blame(worker: Worker) -> Tuple[bool, bool, float]:
    """Sorts failures: those that only noticed another's come later."""
    return (isinstance(worker.error, (PeerError, AbortedError)), worker.signal is None, worker.ended_at or 0.0)


def describe_status(status: int, killer: int) -> str:
    """"exit status 3", "killed by signal 9 (SIGKILL)"."""
    if not killer:
        return f"exit status {status}"
    try:
        return f"killed by signal {killer} ({signal.Signals(killer).name})"
    except ValueError:
        return f"killed by signal {killer}"
