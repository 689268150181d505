"""Jobs of Ray actors.

    executor = dtrain.ray.Executor(num_workers=4, servers=1)
    executor.start()
    losses = executor.run(train, args=[0.1])      # on every worker; what it returns, by rank
    executor.shutdown()

In the functions `dtrain.Context().world` joins the job. Workers may be stateful (executable_cls). Needs the package ray.
SPDX-License-Identifier: Apache-2.0
"""
import os
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ._context import Context
from ._engines import Failure, become, blame, identities, variables
from ._errors import Error, InvalidError, StateError
from ._optional import need
from .launch._agent import listen
from .launch._errors import LaunchError, SlotsError
from .launch._plan import check_count

GRACE = 5.0  #: seconds for others to fail, too, once one has


def load() -> Any:
    return need("ray", "dtrain.ray")


class _Member:
    """What every actor can: say where it is, listen for the others, and become a rank of a job."""

    def __init__(self) -> None:
        self._listener: Optional[socket.socket] = None

    def where(self) -> str:
        return str(load().util.get_node_ip_address())

    def listen(self) -> str:
        """Opens the port where the job meets: a free one."""
        self._listener = listen("")
        host = self.where()
        return f"tcp://{'[' + host + ']' if ':' in host else host}:{self._listener.getsockname()[1]}"

    def become(self, told: Mapping[str, str]) -> None:
        become(told)
        if self._listener is not None:
            os.environ["DTRAIN_LISTEN_FD"] = str(self._listener.fileno())


class Worker(_Member):
    """An actor that runs functions as one rank of a job."""

    def __init__(self) -> None:
        super().__init__()
        self._executable: Any = None

    def make(self, kind: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._executable = kind(*args, **kwargs)

    def run(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return function(*args, **kwargs)

    def execute(self, function: Callable[[Any], Any]) -> Any:
        return function(self._executable)


class Server(_Member):
    """An actor that serves the tables of the jobs at one rendezvous, one after another:

    server = ray.remote(dtrain.ray.Server).remote()
    server.serve.remote("tcp://host:port", size=4, servers=1, index=0)
    """

    def __init__(self) -> None:
        super().__init__()
        self._error = ""
        self._jobs = 0

    def serve(self, rendezvous: Optional[str] = None, **job: int) -> None:
        """Returns at once; of a job that the environment describes without arguments."""
        threading.Thread(target=self._serve, args=(rendezvous, job), name="dtrain-server", daemon=True).start()

    def _serve(self, rendezvous: Optional[str], job: Dict[str, int]) -> None:
        while True:
            try:
                with Context() as context:
                    context.serve(rendezvous, **job, timeout=float("inf")).wait()
                self._jobs += 1
            except Error as error:  # of one job; the next one is served
                self._error = str(error)
                time.sleep(0.1)

    def state(self) -> Dict[str, Any]:
        """How many jobs it has served to their end, and the last error."""
        return {"jobs": self._jobs, "error": self._error}


class Executor:
    """Runs functions on the workers of a job, which are Ray actors.

    cpus_per_worker, gpus_per_worker, memory_per_worker (bytes): what Ray reserves. servers: actors that serve tables.
    options: of dtrain, such as {"op.timeout": "30s"}. env: variables. spread: over nodes. timeout: seconds for the
    actors to start. The number of workers is fixed; a job whose worker died is shut down and started again."""

    def __init__(self, num_workers: int, *, cpus_per_worker: float = 1, gpus_per_worker: float = 0,
                 memory_per_worker: Optional[int] = None, servers: int = 0, cpus_per_server: float = 1,
                 options: Optional[Mapping[str, Any]] = None, env: Optional[Mapping[str, Any]] = None,
                 spread: bool = False, timeout: float = 60.0) -> None:
        self.num_workers = check_count(num_workers, "num_workers", 1)
        self.servers = check_count(servers, "servers", 0)
        self._timeout = timeout
        self._variables = variables(options, env)
        self._worker_needs: Dict[str, Any] = {"num_cpus": cpus_per_worker, "num_gpus": gpus_per_worker}
        if memory_per_worker is not None:
            self._worker_needs["memory"] = memory_per_worker
        self._server_needs: Dict[str, Any] = {"num_cpus": cpus_per_server}
        if spread:
            for needs in (self._worker_needs, self._server_needs):
                needs["scheduling_strategy"] = "SPREAD"
        self._actors: List[Any] = []

    def start(self, executable_cls: Optional[Callable[..., Any]] = None, executable_args: Sequence[Any] = (),
              executable_kwargs: Optional[Mapping[str, Any]] = None,
              extra_env_vars: Optional[Mapping[str, Any]] = None) -> None:
        """Starts the actors. With executable_cls each worker makes an object of it, for execute()."""
        ray = load()
        if self._actors:
            raise StateError("dtrain.ray: the executor has been started already")
        if not ray.is_initialized():
            ray.init()
        try:
            self._start(ray, {key: str(value) for key, value in (extra_env_vars or {}).items()})
            if executable_cls is not None:
                self._all("make", executable_cls, list(executable_args), dict(executable_kwargs or {}))
        except BaseException:
            self.shutdown()
            raise

    def _start(self, ray: Any, extra: Dict[str, str]) -> None:
        worker = ray.remote(Worker).options(max_restarts=0, **self._worker_needs)
        server = ray.remote(Server).options(max_restarts=0, **self._server_needs)
        self._actors = [worker.remote() for _ in range(self.num_workers)]
        self._actors += [server.remote() for _ in range(self.servers)]
        hosts = self._there(ray, [actor.where.remote() for actor in self._actors])
        rendezvous = ray.get(self._actors[0].listen.remote())
        ray.get([actor.become.remote({**self._variables, **extra, **told})
                 for actor, told in zip(self._actors, identities(hosts, self.num_workers, rendezvous))])
        ray.get([actor.serve.remote() for actor in self._actors[self.num_workers:]])

    def _there(self, ray: Any, asked: List[Any]) -> List[str]:
        """Where the actors are, once all have started."""
        there, missing = ray.wait(asked, num_returns=len(asked), timeout=self._timeout)
        if missing:
            has = {name: count for name, count in ray.available_resources().items() if name in ("CPU", "GPU", "memory")}
            raise SlotsError(f"dtrain.ray: {len(missing)} of {len(asked)} actors have not started within "
                             f"{self._timeout:g} s; each worker needs {self._worker_needs}, each server "
                             f"{self._server_needs}, and the cluster has {has} left: ask for less, or wait longer "
                             "(timeout)")
        return [str(where) for where in ray.get(asked)]

    def run(self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None,
            kwargs: Optional[Mapping[str, Any]] = None) -> List[Any]:
        """Calls fn with args and kwargs on every worker; what it returns, by rank. A WorkerError names the rank that
        failed."""
        return self._all("run", fn, list(args or []), dict(kwargs or {}))

    def run_remote(self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None,
                   kwargs: Optional[Mapping[str, Any]] = None) -> List[Any]:
        """As run(), but returns Ray's references at once; wait() and ray.get() take them."""
        return [actor.run.remote(fn, list(args or []), dict(kwargs or {})) for actor in self._workers()]

    def execute(self, fn: Callable[[Any], Any]) -> List[Any]:
        """Calls fn(object of executable_cls) on every worker."""
        return self._all("execute", fn)

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Calls fn(object of executable_cls) on rank 0."""
        return self.wait([self._workers()[0].execute.remote(fn)])[0]

    def wait(self, references: Sequence[Any]) -> List[Any]:
        """What run_remote() has started, by rank; as run() does."""
        ray = load()
        pending = {reference: rank for rank, reference in enumerate(references)}
        values: Dict[int, Any] = {}
        failures: List[Failure] = []
        give_up = float("inf")
        while pending and time.monotonic() < give_up:
            done, _ = ray.wait(list(pending), num_returns=1, timeout=0.5 if failures else 5.0)
            for reference in done:
                rank = pending.pop(reference)
                try:
                    values[rank] = ray.get(reference)
                except ray.exceptions.RayError as error:
                    failures.append(failure(ray, rank, error))
                    give_up = min(give_up, time.monotonic() + GRACE)
        if failures:
            raise blame("dtrain.ray", failures, self.num_workers)
        return [values[rank] for rank in range(len(references))]

    def shutdown(self) -> None:
        """Ends all actors."""
        ray = load()
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def __enter__(self) -> "Executor":
        if not self._actors:
            self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def _workers(self) -> List[Any]:
        if not self._actors:
            raise StateError("dtrain.ray: the executor has not been started; call start()")
        return self._actors[:self.num_workers]

    def _all(self, method: str, *arguments: Any) -> List[Any]:
        if arguments and not callable(arguments[0]):
            raise InvalidError(f"dtrain.ray: a function is needed, not {type(arguments[0]).__name__}")
        return self.wait([getattr(actor, method).remote(*arguments) for actor in self._workers()])


def failure(ray: Any, rank: int, error: BaseException) -> Failure:
    """What Ray says of a call that failed."""
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        text = f"{type(cause).__name__}: {cause}"
        return Failure(rank, text, cause, traceback=str(getattr(error, "traceback_str", "")))
    lost = isinstance(error, ray.exceptions.RayActorError)
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    text = f"its actor has died: {first}; shutdown() and start() make a new job" if lost else first
    return Failure(rank, text, error, lost)


__all__ = ["Executor", "LaunchError", "Server", "SlotsError", "Worker"]
