"""Starts the workers of a job from a program, on this machine or through an engine.

    job = dtrain.launch.launch_workers(4, "train.py", args=["--epochs", "3"])
    outcome = dtrain.launch.await_workers(job, timeout_seconds=600)
    outcome.check()                        # raises the error of the worker that failed

    losses = dtrain.launch.run_cluster(4, 1, train)       # a function; what it returns, by rank

Backends: local, ssh, slurm, kubernetes, ray, spark (docs/LAUNCHING.md).
SPDX-License-Identifier: Apache-2.0
"""
from functools import partial
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from .._checks import Path
from .._durations import Duration, wait_nanoseconds
from .._errors import InvalidError
from ._backend import BACKENDS, Backend, find_backend
from ._discovery import Seeker
from ._elastic import Discovery, Elastic, check_elastic
from ._errors import (BackendError, HostError, LaunchError, LaunchInternalError, LaunchTimeoutError, ScriptError, SendError,
                      SlotsError, WorkerError)
from ._job import Job, Outcome, find_workers
from ._plan import Memory, Plan, Script, make_plan
from ._worker import State, Worker

__all__ = ["BACKENDS", "Backend", "BackendError", "HostError", "Job", "LaunchError", "LaunchInternalError", "LaunchTimeoutError",
           "Outcome", "Plan", "ScriptError", "SendError", "SlotsError", "State", "Worker", "WorkerError",
           "await_workers", "launch_workers", "make_plan", "run_cluster", "stop_workers"]

Workers = Union[Job, Worker, str, Sequence[Worker], Sequence[str]]


def launch_workers(n: int, script_or_function: Optional[Script] = None, *, args: Sequence[Any] = (),
                   kwargs: Optional[Mapping[str, Any]] = None, code: Optional[str] = None,
                   cpu: Optional[float] = None, memory: Optional[Memory] = None, gpus: int = 0,
                   env: Optional[Mapping[str, Any]] = None, servers: int = 0,
                   backend: Union[str, Backend] = "local", cwd: Optional[Path] = None, python: Optional[str] = None,
                   server_command: Optional[Sequence[str]] = None, logs: Optional[Path] = None, output: bool = True,
                   progress: bool = True, grace: float = 5.0, keep_going: bool = False,
                   elastic: Optional[Tuple[int, int]] = None, elastic_timeout: float = 600.0,
                   discovery: Optional[Discovery] = None, discovery_interval: float = 5.0, **settings: Any) -> Job:
    """Starts n workers, and servers, of one job, and returns at once.

    script_or_function: a Python script (.py), a program, or a function, which is called with args and kwargs. code:
    the text of a Python program instead. cpu: cores, memory: GiB or a text ("512MiB"), gpus, for each worker: what a
    backend does with them, docs/LAUNCHING.md says. env: variables of the workers. python: the interpreter there.
    server_command: instead of servers in Python. logs: a folder for what workers write, a file for each (default: a
    temporary folder, kept if one fails). output: also on this program's, with the label before each line. grace:
    seconds for the others when one has failed, then they are stopped; keep_going: they are not. settings: of the
    backend, such as hosts of ssh.

    elastic: (min, max), the fewest and most workers: one that fails is replaced by a newcomer while the others go on
    (docs/ELASTIC.md). With fewer than min for longer than elastic_timeout seconds the job ends with its first failure.
    discovery: a function that returns the hosts that are there now, as hosts= takes them; it is called every
    discovery_interval seconds, and the job grows and shrinks with the list. backends: local ("localhost") and ssh."""
    chosen = find_backend(backend, settings)
    plan_of = partial(make_plan, script=script_or_function, code=code, args=args, kwargs=kwargs,
                      servers=servers, cpu=cpu, memory=memory, gpus=gpus, env=env, cwd=cwd,
                      python=python or chosen.python, server_command=server_command)
    job_of = partial(Job, backend=chosen, logs=logs, output=output, progress=progress, grace=grace)
    if elastic is None:
        if discovery is not None:
            raise InvalidError("discovery: only an elastic job can change; give elastic=(min, max), too")
        return job_of(plan_of(n), keep_going=keep_going)
    if keep_going:
        raise InvalidError("keep_going: an elastic job goes on by itself; leave it out")
    return start_elastic(check_elastic(n, elastic, elastic_timeout, discovery, discovery_interval), n, chosen, plan_of,
                         job_of, env or {})


def start_elastic(elastic: Elastic, n: int, backend: Backend, plan_of: Callable[..., Plan], job_of: Callable[..., Job],
                  given: Mapping[str, Any]) -> Job:
    """With discovery the job begins with what is there: n workers at most."""
    backend.check_elastic()
    seeker = None
    if elastic.discovery is not None:
        seeker = Seeker(elastic.discovery, elastic.interval, backend.use)
        slots = sum(host.slots for host in seeker.first())
        n = min(n, slots)
    try:
        if n < elastic.least:
            raise SlotsError(f"discovery: the hosts have {n} slots, and the job needs {elastic.least} workers (elastic); "
                             "nothing was started")
        plan = plan_of(n)
        plan.elastic = True
        plan.env.update((name, value) for name, value in elastic.variables().items() if name not in given)
        return job_of(plan, elastic=elastic, seeker=seeker)
    except BaseException:
        if seeker is not None:
            seeker.close()
        raise


def await_workers(ids: Workers, wait_for_completion: bool = True, timeout_seconds: Optional[Duration] = 60, *,
                  progress: Optional[bool] = None) -> Outcome:
    """Waits until these workers (a Job, workers, or their ids) have ended; or, without wait_for_completion, until they
    run. After the timeout it returns, too: the outcome says which are running, succeeded, failed (and why), stopped
    or pending; its check() raises."""
    found = find_workers(ids)
    seconds = 0.0
    workers: List[Worker] = []
    limit = wait_nanoseconds(timeout_seconds, "timeout_seconds")
    for job, chosen in found.items():
        left = None if limit < 0 else max(0.0, limit / 1e9 - seconds)
        outcome = job.wait(left, for_completion=wait_for_completion, workers=chosen, progress=progress)
        seconds += outcome.seconds
        workers += outcome.workers
    return Outcome(workers, seconds)


def stop_workers(ids: Workers) -> None:
    """Ends these workers: TERM, then KILL 2 s later. Returns when they have ended."""
    for job, chosen in find_workers(ids).items():
        job.stop(chosen)


def run_cluster(n_workers: int, n_servers: int = 0, worker_script: Optional[Script] = None, *,
                timeout_seconds: Optional[Duration] = None, **settings: Any) -> List[Any]:
    """Runs a job from its beginning to its end, with the arguments of launch_workers(): returns what a function has
    returned on each rank (None for scripts; of an elastic job, on each worker that has ended well); raises the error of
    the worker that failed, or a LaunchTimeoutError. Nothing is left running."""
    with launch_workers(n_workers, worker_script, servers=n_servers, **settings) as job:
        return job.results(timeout_seconds)
