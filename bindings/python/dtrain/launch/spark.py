"""Workers in tasks of Spark, one barrier stage: each task starts an agent and passes its bytes on to this program, to
which it connects.

SPDX-License-Identifier: Apache-2.0
"""
import os
import secrets
import socket
import threading
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional

from .. import spark as engine
from . import _backend
from ._agent import listen
from ._carrier import Carrier, Relay, agent_command
from ._errors import BackendError, HostError, LaunchError
from ._plan import Plan
from ._relay import closed, relay, start_agent

HELLO_LIMIT = 10.0  #: seconds for a connection to say which task it comes from


class Task:
    """What a task does. The token keeps strangers out."""

    def __init__(self, python: str, marker: str, host: str, port: int, token: str) -> None:
        self.python, self.marker, self.host, self.port, self.token = python, marker, host, port, token

    def __call__(self, _: Iterable[Any]) -> Iterator[int]:
        context = engine.load().BarrierTaskContext.get()
        index = int(context.partitionId())
        address = context.getTaskInfos()[index].address.rpartition(":")[0]
        context.barrier()
        with socket.create_connection((self.host, self.port), 30) as line:
            line.settimeout(None)
            line.sendall(f"{self.token} {index}\n".encode())
            agent = start_agent(agent_command(self.python, self.marker, "--address", address))
            assert agent.stdin is not None and agent.stdout is not None
            relay(line.fileno(), line.fileno(), agent.stdout.fileno(), agent.stdin.fileno(), agent.stdin.close)
            yield agent.wait()


class Backend(_backend.Backend):
    """spark: a session or context; without one the program's."""
    name = "spark"
    instead_of_elastic = "use backend \"ssh\", or dtrain.ray.Executor: a barrier stage has a fixed number of tasks"
    start_timeout = None  # tasks wait for executors

    def __init__(self, spark: Any = None) -> None:
        self.spark = spark
        self.lines: Dict[int, socket.socket] = {}
        self.changed = threading.Condition()
        self.failed: Optional[BaseException] = None
        self.done = False
        self.group = f"dtrain-{secrets.token_hex(4)}"

    def check(self, plan: Plan) -> None:
        self.context = engine.find_context(self.spark)
        engine.check_slots(self.context, plan.members)
        if plan.gpus:
            raise BackendError("gpus: in Spark, tasks have the GPUs that spark.task.resource.gpu.amount says")
        plan.cwd = plan.cwd or os.getcwd()

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        host = self.context.getConf().get("spark.driver.host") or "127.0.0.1"
        self.listener = listen("")
        token = secrets.token_hex(16)
        task = Task(plan.python, marker, host.strip("[]"), self.listener.getsockname()[1], token)
        threading.Thread(target=self.accept, args=(token, plan.members), daemon=True).start()
        thread = engine.load().InheritableThread(target=self.run, args=(task, plan.members, f"{plan.what}, job {job}"))
        thread.daemon = True
        thread.start()
        return [Relay([index], lambda left_in, left_out, i=index: self.pump(i, left_in, left_out))  # type: ignore[misc]
                for index in range(plan.members)]

    def run(self, task: Task, members: int, what: str) -> None:
        """The stage, until all agents have ended."""
        try:
            self.context.setJobGroup(self.group, f"dtrain: {what}", True)
            self.context.parallelize(range(members), members).barrier().mapPartitions(task).collect()
        except BaseException as error:
            self.failed = error
        with self.changed:
            self.done = True
            self.changed.notify_all()

    def accept(self, token: str, members: int) -> None:
        """Tasks' connections. Each says in its first line who it is."""
        while len(self.lines) < members:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            line.settimeout(HELLO_LIMIT)
            index = self.identify(line, token, members)
            with self.changed:
                if index is None or index in self.lines:
                    line.close()
                    continue
                line.settimeout(None)
                self.lines[index] = line
                self.changed.notify_all()

    @staticmethod
    def identify(line: socket.socket, token: str, members: int) -> Optional[int]:
        said = b""
        try:
            while not said.endswith(b"\n") and len(said) < 64:
                said += line.recv(1) or b"\n"
        except OSError:
            return None
        name, _, index = said.decode(errors="replace").strip().partition(" ")
        valid = secrets.compare_digest(name, token) and index.isdigit() and int(index) < members
        return int(index) if valid else None

    def pump(self, index: int, left_in: int, left_out: int) -> None:
        with self.changed:
            while index not in self.lines and not self.done:
                self.changed.wait(1.0)
                if closed(left_in):
                    self.context.cancelJobGroup(self.group)
                    raise LaunchError("stopped before Spark had a place for it")
            line = self.lines.get(index)
        if line is None:
            raise HostError(self.why())
        with line:
            relay(left_in, left_out, line.fileno(), line.fileno(), lambda: line.shutdown(socket.SHUT_WR))
        with self.changed:  # if its executor was lost, Spark says so soon
            self.changed.wait_for(lambda: self.done, 2.0)
        if self.failed is not None:
            raise HostError(self.why())

    def why(self) -> str:
        return "Spark's stage has ended" if self.failed is None else f"Spark: {engine.reason(self.failed)}"

    def stopped(self) -> None:
        self.listener.close()
        end = time.monotonic() + 5
        with self.changed:
            while not self.done and time.monotonic() < end:
                self.changed.wait(0.5)
        if not self.done:
            self.context.cancelJobGroup(self.group)

