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
from ._ray_elastic import ElasticRun, failure
from .launch._agent import Meeting, listen
from .launch._elastic import Elastic, check_sizes, check_timeout
from .launch._errors import LaunchError, SlotsError
from .launch._plan import check_count

GRACE = 5.0  #: seconds for others to fail, too, once one has
CALLS_AT_ONCE = 4  #: of an elastic job's worker: exchange() is answered while a function runs


def load() -> Any:
    return need("ray", "dtrain.ray")


class _Member:
    """What every actor can: say where it is, listen for the others, and become a rank of a job."""

    def __init__(self) -> None:
        self._listener: Optional[socket.socket] = None
        self._meeting: Optional[Meeting] = None

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

    def become_elastic(self, told: Mapping[str, str]) -> None:
        """The same in an elastic job, whose processes meet by files."""
        become(told)
        if self._meeting is None:
            self._meeting = Meeting()
        os.environ["DTRAIN_RENDEZVOUS"] = self._meeting.rendezvous

    def exchange(self, text: str) -> Optional[str]:
        """Takes the text of the coordinator's file (or ""), and returns what this process has written (Meeting)."""
        if self._meeting is None:
            return None
        return self._meeting.take(text) if text else self._meeting.find()

    def end_meeting(self) -> None:
        if self._meeting is not None:
            self._meeting.close()


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
    actors to start. Without min_workers and max_workers the number of workers is fixed; a job whose worker died is shut
    down and started again.

    min_workers, max_workers: an elastic job (docs/ELASTIC.md), which begins with num_workers. run() replaces actors that
    die, and adds others, when Ray has room, up to max_workers; the function runs on them, too. With fewer than min_workers
    for longer than elastic_timeout seconds the job ends with its first failure."""

    def __init__(self, num_workers: int, *, min_workers: Optional[int] = None, max_workers: Optional[int] = None,
                 elastic_timeout: float = 600.0, cpus_per_worker: float = 1, gpus_per_worker: float = 0,
                 memory_per_worker: Optional[int] = None, servers: int = 0, cpus_per_server: float = 1,
                 options: Optional[Mapping[str, Any]] = None, env: Optional[Mapping[str, Any]] = None,
                 spread: bool = False, timeout: float = 60.0) -> None:
        self.num_workers = check_count(num_workers, "num_workers", 1)
        self.servers = check_count(servers, "servers", 0)
        self._timeout = timeout
        self._variables = variables(options, env)
        self._elastic: Optional[Elastic] = None
        if min_workers is not None or max_workers is not None:
            least = num_workers if min_workers is None else min_workers
            most = num_workers if max_workers is None else max_workers
            check_sizes(num_workers, least, most, ("num_workers", "min_workers", "max_workers"))
            self._elastic = Elastic(least, most, check_timeout(elastic_timeout))
            self._variables = {**self._elastic.variables(), **self._variables}
        self._worker_needs: Dict[str, Any] = {"num_cpus": cpus_per_worker, "num_gpus": gpus_per_worker}
        if memory_per_worker is not None:
            self._worker_needs["memory"] = memory_per_worker
        self._server_needs: Dict[str, Any] = {"num_cpus": cpus_per_server}
        if spread:
            for needs in (self._worker_needs, self._server_needs):
                needs["scheduling_strategy"] = "SPREAD"
        self._actors: List[Any] = []
        self._extra: Optional[Dict[str, str]] = None  #: variables of start(); None: it was not called

    def start(self, executable_cls: Optional[Callable[..., Any]] = None, executable_args: Sequence[Any] = (),
              executable_kwargs: Optional[Mapping[str, Any]] = None,
              extra_env_vars: Optional[Mapping[str, Any]] = None) -> None:
        """Starts the actors. With executable_cls each worker makes an object of it, for execute()."""
        ray = load()
        if self._extra is not None:
            raise StateError("dtrain.ray: the executor has been started already")
        if not ray.is_initialized():
            ray.init()
        if self._elastic is not None and executable_cls is not None:
            raise InvalidError("executable_cls: the workers of an elastic job keep no state; use run()")
        self._extra = {key: str(value) for key, value in (extra_env_vars or {}).items()}
        try:
            self._start(ray)
            if executable_cls is not None:
                self._all("make", executable_cls, list(executable_args), dict(executable_kwargs or {}))
        except BaseException:
            self.shutdown()
            raise

    def _new_worker(self, ray: Any) -> Any:
        concurrency = {} if self._elastic is None else {"max_concurrency": CALLS_AT_ONCE}
        return ray.remote(Worker).options(max_restarts=0, **concurrency, **self._worker_needs).remote()

    def _start(self, ray: Any) -> None:
        server = ray.remote(Server).options(max_restarts=0, **self._server_needs)
        self._actors = [self._new_worker(ray) for _ in range(self.num_workers)]
        self._actors += [server.remote() for _ in range(self.servers)]
        hosts = self._there(ray, [actor.where.remote() for actor in self._actors])
        rendezvous = "" if self._elastic else ray.get(self._actors[0].listen.remote())
        ray.get([getattr(actor, "become_elastic" if self._elastic else "become").remote(
                    {**self._variables, **(self._extra or {}), **told})
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
        failed. In an elastic job: what it returns on the workers that end well, in the order of their start."""
        if self._elastic is not None:
            return self._run_elastic(self._elastic, fn, list(args or []), dict(kwargs or {}))
        return self._all("run", fn, list(args or []), dict(kwargs or {}))

    def run_remote(self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None,
                   kwargs: Optional[Mapping[str, Any]] = None) -> List[Any]:
        """As run(), but returns Ray's references at once; wait() and ray.get() take them."""
        self._refuse_elastic("run_remote")
        return [actor.run.remote(fn, list(args or []), dict(kwargs or {})) for actor in self._workers()]

    def execute(self, fn: Callable[[Any], Any]) -> List[Any]:
        """Calls fn(object of executable_cls) on every worker."""
        self._refuse_elastic("execute")
        return self._all("execute", fn)

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Calls fn(object of executable_cls) on rank 0."""
        self._refuse_elastic("execute_single")
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
        if self._elastic is not None and self._actors:
            ray.wait([actor.end_meeting.remote() for actor in self._actors], num_returns=len(self._actors), timeout=GRACE)
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        self._extra = None

    def __enter__(self) -> "Executor":
        if self._extra is None:
            self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def _refuse_elastic(self, call: str) -> None:
        if self._elastic is not None:
            raise StateError(f"dtrain.ray: {call}() is for a fixed number of workers; an elastic job has run()")

    def _run_elastic(self, elastic: Elastic, fn: Callable[..., Any], args: List[Any], kwargs: Dict[str, Any]) -> List[Any]:
        if not callable(fn):
            raise InvalidError(f"dtrain.ray: a function is needed, not {type(fn).__name__}")
        ray = load()
        servers = self._started()[len(self._actors) - self.servers:]
        workers = [actor for actor in self._actors[:len(self._actors) - self.servers] if lives(ray, actor)]
        workers += [self._new_worker(ray) for _ in range(self.num_workers - len(workers))]
        self._actors = [*workers, *servers]
        hosts = self._there(ray, [actor.where.remote() for actor in workers])
        job = ElasticRun(ray, elastic, workers, hosts, servers, lambda: self._new_worker(ray),
                         {**self._variables, **(self._extra or {})}, (fn, args, kwargs))
        try:
            return job.run()
        finally:
            living = job.living()
            for actor in living[self.num_workers:]:
                ray.kill(actor)
            self._actors = [*living[:self.num_workers], *servers]  # for the next call

    def _workers(self) -> List[Any]:
        return self._started()[:self.num_workers]

    def _started(self) -> List[Any]:
        if self._extra is None:
            raise StateError("dtrain.ray: the executor has not been started; call start()")
        return self._actors

    def _all(self, method: str, *arguments: Any) -> List[Any]:
        if arguments and not callable(arguments[0]):
            raise InvalidError(f"dtrain.ray: a function is needed, not {type(arguments[0]).__name__}")
        return self.wait([getattr(actor, method).remote(*arguments) for actor in self._workers()])


def lives(ray: Any, actor: Any) -> bool:
    try:
        ray.get(actor.where.remote())
        return True
    except ray.exceptions.RayActorError:
        return False


__all__ = ["Executor", "LaunchError", "Server", "SlotsError", "Worker"]
