"""Starts the workers of a job from a program, on this machine or through an engine.

    job = dtrain.launch.launch_workers(4, "train.py", args=["--epochs", "3"])
    outcome = dtrain.launch.await_workers(job, timeout_seconds=600)
    outcome.check()                        # raises the error of the worker that failed

    losses = dtrain.launch.run_cluster(4, 1, train)       # a function; what it returns, by rank

Backends: local, ssh, slurm, kubernetes, ray, spark (docs/LAUNCHING.md).
SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, List, Mapping, Optional, Sequence, Union

from .._checks import Path
from .._durations import Duration, wait_nanoseconds
from ._backend import BACKENDS, Backend, find_backend
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
                   progress: bool = True, grace: float = 5.0, keep_going: bool = False, **settings: Any) -> Job:
    """Starts n workers, and servers, of one job, and returns at once.

    script_or_function: a Python script (.py), a program, or a function, which is called with args and kwargs. code:
    the text of a Python program instead. cpu: cores, memory: GiB or a text ("512MiB"), gpus, for each worker: what a
    backend does with them, docs/LAUNCHING.md says. env: variables of the workers. python: the interpreter there.
    server_command: instead of servers in Python. logs: a folder for what workers write, a file for each (default: a
    temporary folder, kept if one fails). output: also on this program's, with the label before each line. grace:
    seconds for the others when one has failed, then they are stopped; keep_going: they are not. settings: of the
    backend, such as hosts of ssh."""
    chosen = find_backend(backend, settings)
    plan = make_plan(n, script_or_function, code=code, args=args, kwargs=kwargs, servers=servers, cpu=cpu,
                     memory=memory, gpus=gpus, env=env, cwd=cwd, python=python or chosen.python,
                     server_command=server_command)
    return Job(plan, chosen, logs=logs, output=output, progress=progress, grace=grace, keep_going=keep_going)


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
    returned on each rank (None for scripts); raises the error of the worker that failed, or a LaunchTimeoutError.
    Nothing is left running."""
    with launch_workers(n_workers, worker_script, servers=n_servers, **settings) as job:
        return job.results(timeout_seconds)
