"""A job that was launched: its workers, waiting for them, and its end.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import os
import pathlib
import secrets
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Union, overload

from .._checks import Path, path_text
from .._durations import Duration, wait_nanoseconds
from .._errors import AbortedError, InvalidError, IoError, PeerError
from ._backend import Backend
from ._errors import LaunchError, LaunchTimeoutError
from ._loop import STOP_LIMIT, Loop
from ._output import Log
from ._plan import Plan
from ._worker import ENDED, State, Worker


def blame(worker: Worker) -> "tuple[bool, bool, float]":
    """Sorts failures: those that only noticed another's come later."""
    return (isinstance(worker.error, (PeerError, AbortedError)), worker.signal is None, worker.ended_at or 0.0)


class Outcome:
    """What await_workers() has found: workers by their state. It is true if all have succeeded."""

    def __init__(self, workers: Sequence[Worker], seconds: float) -> None:
        self.workers = list(workers)
        self.states = {worker.id: worker.state for worker in workers}
        self.seconds = seconds  #: how long it took

    def _of(self, state: State) -> List[Worker]:
        return [worker for worker in self.workers if self.states[worker.id] == state]

    @property
    def pending(self) -> List[Worker]:
        return self._of(State.PENDING)

    @property
    def running(self) -> List[Worker]:
        return self._of(State.RUNNING)

    @property
    def succeeded(self) -> List[Worker]:
        return self._of(State.SUCCEEDED)

    @property
    def failed(self) -> List[Worker]:
        """First the one to blame."""
        return sorted(self._of(State.FAILED), key=blame)

    @property
    def stopped(self) -> List[Worker]:
        return self._of(State.STOPPED)

    def __bool__(self) -> bool:
        return len(self.succeeded) == len(self.workers)

    def check(self) -> "Outcome":
        """Raises the error of the worker that failed or was stopped, or a LaunchTimeoutError for those that have not
        ended."""
        if self.failed:
            raise failure(self.failed)
        ended = [worker for worker in self.stopped if worker.rank is not None]
        if ended:
            raise LaunchError(f"{ended[0].name} was stopped: {ended[0].reason}", ended[0].rank, worker=ended[0])
        if self.running or self.pending:
            late = ", ".join(f"{worker.name} ({worker.state}{' at ' + worker.address if worker.address else ''})"
                             for worker in (self.pending + self.running)[:8])
            raise LaunchTimeoutError(
                f"{len(self.running + self.pending)} of {len(self.workers)} workers have not ended within "
                f"{self.seconds:.1f} s: {late}; wait longer (timeout_seconds), or end them (stop_workers)",
                worker=(self.pending + self.running)[0])
        return self

    def __str__(self) -> str:
        return summary(self.states.values()) + f" after {self.seconds:.1f} s"


def failure(failed: Sequence[Worker]) -> LaunchError:
    worker = failed[0]
    others = f"; {len(failed) - 1} more failed" if len(failed) > 1 else ""
    error = worker.kind(f"{worker.describe_end()}{others}; all it has written: {worker.log_path}", worker.rank,
                        worker=worker)
    error.__cause__ = worker.error
    return error


def summary(states: Iterable[State]) -> str:
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "none"


class Progress:
    """A line on stderr when something has changed, but not too often; quiet without a name."""
    EVERY = 0.5  #: seconds

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin = self.shown_at = time.monotonic()
        self.shown = ""

    def show(self, text: str, now: bool) -> None:
        seconds = time.monotonic()
        if not self.name or text == self.shown or not now and seconds < self.shown_at + self.EVERY:
            return
        self.shown, self.shown_at = text, seconds
        print(f"dtrain.launch: {self.name}: {text} ({seconds - self.begin:.1f} s)", file=sys.stderr, flush=True)


class Job(Sequence[Worker]):
    """The workers of a job, then its servers. `with` stops it at its end."""

    def __init__(self, plan: Plan, backend: Backend, *, logs: Optional[Path] = None, output: bool = True,
                 progress: bool = True, grace: float = 5.0, keep_going: bool = False) -> None:
        backend.check(plan)
        self.id = secrets.token_hex(4)
        self.plan = plan
        self.backend = backend
        self.progress = progress
        self._kept = logs is not None
        self.logs = self._make_folder(logs)
        self._log = Log(self.logs, "launch", output)
        self._own = [Worker(self.id, i, plan.workers, Log(self.logs, label(plan, i), output))
                     for i in range(plan.members)]
        self._changed = threading.Condition()
        self._pid = os.getpid()
        marker = f"@dtrain-{secrets.token_hex(8)}"
        self._loop = Loop(plan, backend, self._own, backend.carriers(plan, self.id, marker), marker, self._changed,
                          self._log.write, grace, keep_going)
        _jobs[self.id] = self
        self._loop.start()

    def _make_folder(self, logs: Optional[Path]) -> pathlib.Path:
        try:
            if logs is None:
                return pathlib.Path(tempfile.mkdtemp(prefix=f"dtrain-{self.id}-"))
            folder = pathlib.Path(path_text(logs, "logs"))
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        except OSError as error:
            raise IoError(f"logs: the folder for what workers write cannot be made: {error}") from error

    @overload
    def __getitem__(self, index: int) -> Worker: ...

    @overload
    def __getitem__(self, index: slice) -> List[Worker]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Worker, List[Worker]]:
        return self._own[index]

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._own)

    def __repr__(self) -> str:
        return f"<job {self.id}, {self.plan.what}: {summary(worker.state for worker in self._own)}>"

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    @property
    def ids(self) -> List[str]:
        return [worker.id for worker in self._own]

    def wait(self, timeout: Optional[Duration] = None, *, for_completion: bool = True,
             workers: Optional[Sequence[Worker]] = None, progress: Optional[bool] = None) -> Outcome:
        """Waits until all have ended (or, without for_completion, started), or the time is over."""
        chosen = list(self._own if workers is None else workers)
        limit = wait_nanoseconds(timeout)
        begin = time.monotonic()
        end = None if limit < 0 else begin + limit / 1e9
        line = Progress(self.plan.what if (self.progress if progress is None else progress) else "")
        with self._changed:
            while True:
                done = all(worker.state in ENDED or not for_completion and worker.state == State.RUNNING
                           for worker in chosen)
                left = 1.0 if end is None else end - time.monotonic()
                over = done or left <= 0 or not self._loop.is_alive()
                line.show(summary(worker.state for worker in chosen), over)
                if over:
                    break
                self._changed.wait(min(left, 1.0))
            outcome = Outcome(chosen, time.monotonic() - begin)
        if all(worker.state in ENDED for worker in self._own):
            self._loop.join(2 * STOP_LIMIT)
        return outcome

    def stop(self, workers: Optional[Sequence[Worker]] = None) -> None:
        """Ends them: TERM, and KILL 2 s later. Returns when they have ended."""
        chosen = list(self._own if workers is None else workers)
        if os.getpid() != self._pid:
            return  # a forked child has the job's objects, but not its thread
        self._loop.request_stop([worker.index for worker in chosen], "stopped by its launcher")
        self.wait(3 * STOP_LIMIT, workers=chosen, progress=False)

    def results(self, timeout: Optional[Duration] = None) -> List[Any]:
        """What a function has returned on each rank, once all have ended; raises the error of the one that failed."""
        self.wait(timeout).check()
        return [worker.result for worker in self._own[:self.plan.workers]]

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return
        self.stop()
        self._log.close()
        if not self._kept and all(worker.state == State.SUCCEEDED for worker in self._own):
            shutil.rmtree(self.logs, ignore_errors=True)


def label(plan: Plan, index: int) -> str:
    return str(index) if index < plan.workers else f"s{index - plan.workers}"


_jobs: Dict[str, Job] = {}


def find_workers(ids: Any) -> Dict[Job, List[Worker]]:
    """The workers that a Job, a Worker, an id, or a list of these names, by their jobs."""
    if isinstance(ids, Job):
        return {ids: list(ids)}
    found: Dict[Job, List[Worker]] = {}
    for one in [ids] if isinstance(ids, (str, Worker)) else ids:
        name = one.id if isinstance(one, Worker) else str(one)
        job = _jobs.get(name.partition(".")[0])
        chosen = [worker for worker in job or () if name in (worker.id, worker.id.partition(".")[0])]
        if job is None or not chosen:
            raise InvalidError(f"{name!r} is not the id of a worker that this program has launched")
        found.setdefault(job, []).extend(chosen)
    return found


def _stop_at_exit() -> None:
    for job in list(_jobs.values()):
        job._end()


atexit.register(_stop_at_exit)
