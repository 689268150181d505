"""Jobs in tasks of Spark.

    losses = dtrain.spark.run(train, args=[0.1], num_proc=4)   # on every rank; what it returns, by rank

The tasks are one barrier stage: Spark starts all of them or none. In the function `dtrain.Context().world` joins the
job. Needs the package pyspark, and dtrain on the executors.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pickle
import secrets
import socket
import sys
import time
import traceback
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._context import Context
from ._durations import Duration, wait_nanoseconds
from ._engines import Failure, becoming, blame, identities, variables
from ._optional import need
from .launch._agent import listen
from .launch._errors import BackendError, LaunchError, LaunchTimeoutError, SlotsError
from .launch._plan import check_count

FIRST_EXECUTOR, MORE_EXECUTORS = 60.0, 5.0  #: seconds that they have to come
Answer = Tuple[int, bool, bytes]  #: index of the process, whether it succeeded, pickled


def load() -> Any:
    return need("pyspark", "dtrain.spark")


def find_context(spark: Any = None) -> Any:
    """A SparkContext: of a SparkSession, as given, or the program's."""
    if spark is not None:
        return getattr(spark, "sparkContext", spark)
    pyspark = load()
    found = pyspark.SparkContext._active_spark_context
    return found if found is not None else pyspark.SparkContext.getOrCreate()


class Task:
    """What a task of the barrier stage does: become a rank, or a server."""

    def __init__(self, call: bytes, workers: int, given: Mapping[str, str]) -> None:
        self.call = call
        self.workers = workers
        self.given = dict(given)
        self.path = [os.path.abspath(entry) for entry in sys.path]  # where the function's modules may be

    def __call__(self, _: Iterable[Any]) -> Iterator[Answer]:
        context = load().BarrierTaskContext.get()
        index = int(context.partitionId())
        listener = listen("") if index == 0 else None
        try:
            with becoming({**self.given, **self.meet(context, index, listener)}):
                if listener is not None:
                    os.environ["DTRAIN_LISTEN_FD"] = str(listener.fileno())
                yield index, *self.run(index)
        finally:
            if listener is not None:
                listener.close()

    def meet(self, context: Any, index: int, listener: Optional[socket.socket]) -> Dict[str, str]:
        """Rank 0's port is open before the others hear of it."""
        address = context.getTaskInfos()[index].address.rpartition(":")[0] or socket.gethostname()
        port = listener.getsockname()[1] if listener is not None else 0
        told = [json.loads(text) for text in context.allGather(json.dumps([address, port]))]
        host, port = told[0]
        rendezvous = f"tcp://{'[' + host + ']' if ':' in host and host[0] != '[' else host}:{port}"
        return identities([address for address, _ in told], self.workers, rendezvous)[index]

    def run(self, index: int) -> Tuple[bool, bytes]:
        """A failure is an answer, too: Spark would run the whole stage again."""
        dumps = load().cloudpickle.dumps
        try:
            if index >= self.workers:
                with Context() as context:
                    context.serve().wait()
                return True, dumps(None)
            sys.path.extend(entry for entry in self.path if entry not in sys.path)
            function, args, kwargs = pickle.loads(self.call)
            return True, dumps(function(*args, **kwargs))
        except Exception as error:
            print(traceback.format_exc(), file=sys.stderr)
            return False, dumps((f"{type(error).__name__}: {error}", packed(error, dumps), traceback.format_exc()))


def packed(error: BaseException, dumps: Callable[[Any], bytes]) -> Optional[bytes]:
    """Some exceptions can be sent, but not received."""
    try:
        data = dumps(error)
        pickle.loads(data)
        return data
    except Exception:
        return None


def check_slots(context: Any, tasks: int) -> None:
    """Spark itself would try for minutes, and run nothing. Executors have some time to come."""
    begin = time.monotonic()
    while True:
        try:
            scala = context._jsc.sc()
            slots = int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
        except Exception:  # not a public part of Spark
            return
        if tasks <= slots:
            return
        if time.monotonic() > begin + (MORE_EXECUTORS if slots > 0 else FIRST_EXECUTOR):
            raise SlotsError(f"dtrain.spark: {tasks} processes, but the executors run {slots} tasks at the same time; take "
                             "fewer (num_proc, servers), or more executors or cores")
        time.sleep(0.2)


def collect(context: Any, work: Callable[..., Any], tasks: int, what: str, timeout: Optional[Duration]) -> List[Any]:
    """What a barrier stage of so many tasks yields; it is canceled after the timeout, and when this call is
    interrupted."""
    group = f"dtrain-{secrets.token_hex(4)}"
    limit = wait_nanoseconds(timeout)
    found: List[Any] = []
    failed: List[BaseException] = []

    def run() -> None:
        try:
            context.setJobGroup(group, f"dtrain: {what}", True)
            found.extend(context.parallelize(range(tasks), tasks).barrier().mapPartitions(work).collect())
        except BaseException as error:
            failed.append(error)
    thread = load().InheritableThread(target=run)
    thread.daemon = True
    thread.start()
    try:
        thread.join(None if limit < 0 else limit / 1e9)
        if thread.is_alive():
            raise LaunchTimeoutError(f"dtrain.spark: {what} has not ended within {limit / 1e9:g} s (timeout); it is "
                                     "canceled")
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failed:
        raise BackendError(f"dtrain.spark: the stage of {what} failed: {reason(failed[0])}") from failed[0]
    return found


def reason(error: BaseException) -> str:
    """The line of Spark's text that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "SparkException" in line or "Job aborted" in line]
    return (named or lines or [type(error).__name__])[0][:1000]


def run(fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None,
        num_proc: Optional[int] = None, *, servers: int = 0, spark: Any = None,
        options: Optional[Mapping[str, Any]] = None, env: Optional[Mapping[str, Any]] = None,
        timeout: Optional[Duration] = None) -> List[Any]:
    """Calls fn with args and kwargs on num_proc ranks (default: as many as Spark runs tasks, without the servers), and
    returns what it returns, by rank. servers: further tasks, which serve tables. spark: a session or context. options:
    of dtrain, such as {"op.timeout": "30s"}. env: variables. A WorkerError names the rank that failed."""
    context = find_context(spark)
    check_count(servers, "servers", 0)
    workers = check_count(context.defaultParallelism - servers if num_proc is None else num_proc, "num_proc", 1)
    check_slots(context, workers + servers)
    call = load().cloudpickle.dumps((fn, tuple(args), dict(kwargs or {})))
    what = f"function {getattr(fn, '__qualname__', fn)}"
    answers: List[Answer] = sorted(collect(context, Task(call, workers, variables(options, env)), workers + servers, what,
                                           timeout), key=lambda answer: answer[0])
    failures = []
    for index, succeeded, data in answers:
        if not succeeded:
            text, cause, trace = pickle.loads(data)
            failures.append(Failure(index, text, None if cause is None else pickle.loads(cause), traceback=trace))
    if failures:
        raise blame("dtrain.spark", failures, workers)
    return [pickle.loads(data) for _, _, data in answers[:workers]]


__all__ = ["BackendError", "LaunchError", "LaunchTimeoutError", "SlotsError", "run"]
