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
from .._errors import InvalidError, IoError
from ._backend import Backend
from ._discovery import Seeker
from ._elastic import Elastic, Policy
from ._elastic_loop import ElasticLoop
from ._errors import LaunchError, LaunchTimeoutError
from ._loop import STOP_LIMIT, Loop
from ._output import Log
from ._plan import Plan
from ._worker import ENDED, State, Worker, blame


class Outcome:
    """What await_workers() has found: workers by their state. It is true if all have succeeded."""

    def __init__(self, workers: Sequence[Worker], seconds: float) -> None:
        self.workers = list(workers)
        self.states = {worker.id: worker.state for worker in workers}
        self.replaced = [worker for worker in workers if worker.replaced]  #: without which an elastic job went on
        self.seconds = seconds  #: how long it took

    def _of(self, state: State) -> List[Worker]:
        return [worker for worker in self.workers if self.states[worker.id] == state and worker not in self.replaced]

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
        succeeded = len(self.succeeded)
        return succeeded == len(self.workers) - len(self.replaced) and (succeeded > 0 or not self.workers)

    def check(self) -> "Outcome":
        """Raises the error of the worker that failed or was stopped, or a LaunchTimeoutError for those that have not
        ended."""
        if self.failed:
            raise failure(self.failed)
        ended = [worker for worker in self.stopped if not worker.server]
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
        return summary(self.workers) + f" after {self.seconds:.1f} s"


def failure(failed: Sequence[Worker]) -> LaunchError:
    worker = failed[0]
    others = f"; {len(failed) - 1} more failed" if len(failed) > 1 else ""
    error = worker.kind(f"{worker.describe_end()}{others}; all it has written: {worker.log_path}", worker.rank,
                        worker=worker)
    error.__cause__ = worker.error
    return error


def summary(workers: Iterable[Worker]) -> str:
    counts = Counter("replaced" if worker.replaced else str(worker.state) for worker in workers)
    return ", ".join(f"{counts[state]} {state}" for state in [*map(str, State), "replaced"] if counts[state]) or "none"


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
    """The workers of a job, its servers, and newcomers to an elastic job. `with` stops it at its end."""

    def __init__(self, plan: Plan, backend: Backend, *, logs: Optional[Path] = None, output: bool = True,
                 progress: bool = True, grace: float = 5.0, keep_going: bool = False,
                 elastic: Optional[Elastic] = None, seeker: Optional[Seeker] = None) -> None:
        backend.check(plan)
        self.id = secrets.token_hex(4)
        self.plan = plan
        self.backend = backend
        self.progress = progress
        self._kept = logs is not None
        self.logs = self._make_folder(logs)
        self._output = output
        self._log = Log(self.logs, "launch", output)
        self._own: List[Worker] = []
        for i in range(plan.workers):
            self._add(str(i), rank=i)
        for i in range(plan.servers):
            self._add(f"s{i}")
        self._changed = threading.Condition()
        self._pid = os.getpid()
        marker = f"@dtrain-{secrets.token_hex(8)}"
        common = (plan, backend, self._own, backend.carriers(plan, self.id, marker), marker, self._changed,
                  self._log.write, grace, keep_going)
        self._loop = Loop(*common) if elastic is None else self._make_loop(common, elastic, seeker)
        _jobs[self.id] = self
        self._loop.start()

    def _add(self, label: str, rank: Optional[int] = None) -> Worker:
        worker = Worker(self.id, len(self._own), label, Log(self.logs, label, self._output), rank=rank,
                        elastic=self.plan.elastic)
        self._own.append(worker)
        return worker

    def _make_loop(self, common: Sequence[Any], elastic: Elastic, seeker: Optional[Seeker]) -> Loop:
        hosts = self.backend.slots(self.plan.workers) if seeker is None else seeker.hosts()
        policy = Policy(elastic, hosts, self.plan.workers if seeker is None else None)
        return ElasticLoop(*common, elastic=elastic, policy=policy, seeker=seeker,
                           newcomer=lambda: self._add(str(len(self._own) - self.plan.servers)))

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
        return iter(list(self._own))  # newcomers may come

    def __repr__(self) -> str:
        return f"<job {self.id}, {self.plan.what}: {summary(self)}>"

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    @property
    def ids(self) -> List[str]:
        return [worker.id for worker in self]

    @property
    def generations(self) -> int:
        """How many generations of an elastic job have formed, as far as its agents have said."""
        return self._loop.formed

    def wait(self, timeout: Optional[Duration] = None, *, for_completion: bool = True,
             workers: Optional[Sequence[Worker]] = None, progress: Optional[bool] = None) -> Outcome:
        """Waits until all (with those that come meanwhile) or these workers have ended, or, without for_completion,
        started; or until the time is over."""
        limit = wait_nanoseconds(timeout)
        begin = time.monotonic()
        end = None if limit < 0 else begin + limit / 1e9
        line = Progress(self.plan.what if (self.progress if progress is None else progress) else "")
        with self._changed:
            while True:
                chosen = list(self._own if workers is None else workers)
                done = all(worker.state in ENDED or not for_completion and worker.state == State.RUNNING
                           for worker in chosen)
                left = 1.0 if end is None else end - time.monotonic()
                over = done or left <= 0 or not self._loop.is_alive()
                line.show(summary(chosen), over)
                if over:
                    break
                self._changed.wait(min(left, 1.0))
            outcome = Outcome(chosen, time.monotonic() - begin)
        if all(worker.state in ENDED for worker in self._own):
            self._loop.join(2 * STOP_LIMIT)
        return outcome

    def stop(self, workers: Optional[Sequence[Worker]] = None) -> None:
        """Ends all or these: TERM, and KILL 2 s later. Returns when they have ended."""
        if os.getpid() != self._pid:
            return  # a forked child has the job's objects, but not its thread
        why = "stopped by its launcher"
        if workers is None:
            self._loop.request_end(why)
        else:
            self._loop.request_stop([worker.index for worker in workers], why)
        self.wait(3 * STOP_LIMIT, workers=workers, progress=False)

    def results(self, timeout: Optional[Duration] = None) -> List[Any]:
        """What a function has returned on each rank, once all have ended; raises the error of the one that failed. Of
        an elastic job: on each worker that has ended well."""
        outcome = self.wait(timeout).check()
        return [worker.result for worker in outcome.succeeded if not worker.server]

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return
        self.stop()
        self._log.close()
        if not self._kept and all(worker.state == State.SUCCEEDED for worker in self):
            shutil.rmtree(self.logs, ignore_errors=True)


_jobs: Dict[str, Job] = {}


def find_workers(ids: Any) -> Dict[Job, Optional[List[Worker]]]:
    """The workers that a Job, a Worker, an id, or a list of these names, by their jobs; None: all of a job."""
    job = ids if isinstance(ids, Job) else _jobs.get(ids) if isinstance(ids, str) else None
    if job is not None:
        return {job: None}
    found: Dict[Job, List[Worker]] = {}
    for one in [ids] if isinstance(ids, (str, Worker)) else ids:
        name = one.id if isinstance(one, Worker) else str(one)
        job = _jobs.get(name.partition(".")[0])
        chosen = [worker for worker in job or () if name in (worker.id, worker.id.partition(".")[0])]
        if job is None or not chosen:
            raise InvalidError(f"{name!r} is not the id of a worker that this program has launched")
        found.setdefault(job, []).extend(chosen)
    return dict(found)


def _stop_at_exit() -> None:
    for job in list(_jobs.values()):
        job._end()


atexit.register(_stop_at_exit)
