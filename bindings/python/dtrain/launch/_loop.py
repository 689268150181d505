"""The thread of a job: opens its carriers, tells agents what to run, hears their reports, and ends the job when it
has to end. It alone changes workers, under the job's lock.

    open the carriers -> their agents report "here" -> rank 0 is told what to run, and reports where it listens
    -> the others are told -> "started" -> "result" (functions) -> "ended" -> the end of the carrier's output

SPDX-License-Identifier: Apache-2.0
"""
import base64
import json
import os
import pickle
import select
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Set, Tuple, Type

from ._backend import Backend
from ._carrier import HELLO, Carrier
from ._errors import LaunchError, LaunchInternalError, LaunchTimeoutError, ScriptError, WorkerError
from ._output import Lines
from ._plan import Plan
from ._worker import ENDED, State, Worker, describe_status

PING_EVERY = 5.0  #: seconds
STOP_LIMIT = 5.0  #: seconds from asking an agent to stop until its carrier is killed
SERVERS_STAYED = f"was still there {STOP_LIMIT:g} s after all workers"
LARGEST_REPORT = 1 << 30  #: bytes of a function's result


class Loop(threading.Thread):
    def __init__(self, plan: Plan, backend: Backend, workers: Sequence[Worker], carriers: Sequence[Carrier],
                 marker: str, changed: threading.Condition, log: Callable[[bytes], None], grace: float,
                 keep_going: bool) -> None:
        super().__init__(name="dtrain-launch", daemon=True)
        self.plan, self.backend, self.workers, self.carriers = plan, backend, workers, carriers
        self.marker = marker.encode() + b" "
        self.changed = changed
        self.log = log
        self.grace = None if keep_going else grace
        self.stop_at: Optional[float] = None
        self.stop_reason = ""
        self.asked: Dict[int, str] = {}  #: workers that were asked to stop, and why
        self.rendezvous: Optional[str] = None
        self.formed = 0  #: generations of an elastic job
        self.addresses: Dict[int, str] = {}  #: of agents that are there
        self.told: Set[int] = set()
        self.parts: Dict[int, List[bytes]] = {}
        self.lines: Dict[Carrier, Lines] = {carrier: Lines() for carrier in carriers}
        self.waiting: Deque[Carrier] = deque(carriers)
        self.open: List[Carrier] = []
        self.requests: Deque[Callable[[], None]] = deque()
        self.wake_read, self.wake_write = os.pipe()
        for descriptor in (self.wake_read, self.wake_write):
            os.set_blocking(descriptor, False)
        self.waking = threading.Lock()  #: held while wake_write is used or closed
        self.pinged = 0.0

    # From other threads.

    def request_stop(self, indices: Sequence[int], reason: str) -> None:
        self.request(lambda: self.stop(indices, reason))

    def request_end(self, reason: str) -> None:
        """Stops all workers."""
        self.request_stop(range(len(self.workers)), reason)

    def request(self, what: Callable[[], None]) -> None:
        self.requests.append(what)
        with self.waking:
            if self.wake_write < 0:
                return  # it has ended
            try:
                os.write(self.wake_write, b"x")
            except BlockingIOError:
                pass  # it is awake

    # The thread.

    def run(self) -> None:
        try:
            while self.waiting or self.open:
                self.open_some()
                self.wait()
                self.handle_time(time.monotonic())
        except BaseException as error:  # a bug, or an interpreter that ends
            self.conclude_all(LaunchInternalError, f"the launcher failed: {error!r}")
        finally:
            self.end()

    def end(self) -> None:
        for carrier in self.open:
            carrier.kill()
            carrier.close()
        self.conclude_all(LaunchError, "the launcher has ended")
        for worker in self.workers:
            worker.log.close()
        with self.waking:
            os.close(self.wake_read)
            os.close(self.wake_write)
            self.wake_write = -1
        try:
            self.backend.stopped()
        except Exception as error:
            self.log(f"cannot clean up: {error}".encode())
        with self.changed:
            self.changed.notify_all()

    def open_some(self) -> None:
        """As many as may start at the same time: sshd, for example, refuses too many."""
        starting: Dict[str, int] = {}
        for carrier in self.open:
            if not any(index in self.addresses for index in carrier.indices):
                starting[carrier.lane] = starting.get(carrier.lane, 0) + 1
        for carrier in list(self.waiting):
            if starting.get(carrier.lane, 0) < self.backend.at_once:
                starting[carrier.lane] = starting.get(carrier.lane, 0) + 1
                self.waiting.remove(carrier)
                self.open_one(carrier)

    def open_one(self, carrier: Carrier) -> None:
        try:
            carrier.open()
        except LaunchError as error:
            for index in carrier.indices:
                self.conclude(index, 127, 0, error.text, type(error))
            return
        carrier.opened_at = time.monotonic()
        carrier.pending += HELLO
        if self.backend.listens is None:
            self.tell(carrier, index=None, index_from=self.backend.index_from)
        self.open.append(carrier)

    def wait(self) -> None:
        """For output, room for input, or the next thing to do."""
        poll = select.poll()
        poll.register(self.wake_read, select.POLLIN)
        outputs, inputs = {}, {}
        for carrier in self.open:
            outputs[carrier.output] = carrier
            poll.register(carrier.output, select.POLLIN)
            if carrier.pending and carrier.input >= 0:
                inputs[carrier.input] = carrier
                poll.register(carrier.input, select.POLLOUT)
        for descriptor, _ in poll.poll(1000 * self.next_time(time.monotonic())):
            if descriptor == self.wake_read:
                os.read(self.wake_read, 4096)
            elif descriptor in outputs:
                self.read(outputs[descriptor])
            elif inputs[descriptor].input == descriptor:
                self.write(inputs[descriptor])
        while self.requests:
            self.requests.popleft()()

    def next_time(self, now: float) -> float:
        times = [carrier.kill_at for carrier in self.open if carrier.kill_at is not None]
        times += [self.stop_at] if self.stop_at is not None else []
        soonest = min(times, default=now + 1) - now
        return min(max(soonest, 0.0), 1.0)

    def handle_time(self, now: float) -> None:
        if self.stop_at is not None and now >= self.stop_at:
            self.stop_at = None
            self.stop(range(len(self.workers)), self.stop_reason)
        limit = self.backend.start_timeout
        for carrier in list(self.open):
            late = [i for i in carrier.indices if self.workers[i].state == State.PENDING and i not in self.addresses]
            if limit is not None and late and now > (carrier.opened_at or 0) + limit:
                for index in late:
                    self.conclude(index, 127, 0, f"has not started within {limit:g} s (start_timeout)",
                                  LaunchTimeoutError)
            if carrier.gone():
                carrier.kill_at = min(carrier.kill_at or now + 1, now + 1)
            if carrier.kill_at is not None and now >= carrier.kill_at:
                self.finish(carrier, "" if carrier.gone() else "did not end when it was asked to; killed")
        if self.backend.patience is not None and now > self.pinged + PING_EVERY:
            self.pinged = now
            for carrier in self.open:
                if not carrier.pending:
                    carrier.pending += b"\n"

    # Bytes.

    def read(self, carrier: Carrier) -> None:
        try:
            data = os.read(carrier.output, 1 << 16)
        except BlockingIOError:
            return
        except OSError:  # a socket that was reset
            data = b""
        for line in self.lines[carrier].add(data):
            self.take_line(carrier, line)
        if not data:
            self.finish(carrier)

    def write(self, carrier: Carrier) -> None:
        try:
            del carrier.pending[:os.write(carrier.input, carrier.pending[:1 << 16])]
        except BlockingIOError:
            pass
        except OSError:  # the agent has ended; the end of its output says so
            self.close_input(carrier)

    @staticmethod
    def close_input(carrier: Carrier) -> None:
        carrier.pending.clear()
        if carrier.input >= 0 and carrier.input != carrier.output:
            os.close(carrier.input)
            carrier.input = -1

    def take_line(self, carrier: Carrier, line: bytes) -> None:
        index, text = carrier.split(line)
        if index < 0:
            self.log(text)
            return
        before, marker, report = text.partition(self.marker)
        if not marker:
            self.workers[index].log.write(text)
            return
        if before:
            self.workers[index].log.write(before, whole=False)
        try:
            said = json.loads(report)
        except ValueError:
            self.log(b"not understood: " + text[:200])
            return
        with self.changed:
            getattr(self, f"take_{said.pop('what')}")(index, **said)
            self.changed.notify_all()

    def finish(self, carrier: Carrier, text: str = "") -> None:
        """The output of a carrier has ended."""
        if carrier not in self.open:
            return
        self.open.remove(carrier)
        rest = self.lines[carrier].rest()
        if rest is not None:
            self.take_line(carrier, rest)
        left = [index for index in carrier.indices if self.workers[index].state not in ENDED]
        if left:
            carrier.kill()
            kind, why = (LaunchError, text) if text else carrier.explain()
            for index in left:
                pid = self.workers[index].pid
                if pid is not None:
                    self.backend.lost(pid)
                self.conclude(index, 127, 0, why, kind)
        carrier.close()
        for index in carrier.indices:
            self.workers[index].log.close()

    # Reports of agents.

    def take_here(self, index: int, host: str, address: str) -> None:
        self.workers[index].host = host
        self.addresses[index] = address
        self.tell_those_who_can_start()

    def take_listening(self, index: int, rendezvous: str) -> None:
        self.rendezvous = rendezvous
        self.tell_those_who_can_start()

    def take_started(self, index: int, pid: int) -> None:
        worker = self.workers[index]
        worker.pid = pid
        if worker.state == State.PENDING:
            worker.state = State.RUNNING

    def take_result(self, index: int, part: str) -> None:
        parts = self.parts.setdefault(index, [])
        if sum(map(len, parts[-1:])) + len(part) <= LARGEST_REPORT:
            parts.append(base64.b64decode(part))

    def take_ended(self, index: int, status: int, signal: int, text: str, kind: str) -> None:
        if kind == "stopped":
            self.asked.setdefault(index, text)
        self.conclude(index, status, signal, text, ScriptError if kind == "start" else WorkerError)
        for carrier in self.open:
            if index in carrier.indices and all(self.workers[i].state in ENDED for i in carrier.indices):
                self.close_input(carrier)
                carrier.kill_at = time.monotonic() + STOP_LIMIT

    # What happens to workers.

    def tell(self, carrier: Carrier, **more: Any) -> None:
        spec = self.plan.spec(patience=self.backend.patience, **more)
        spec["env"] = {**self.plan.env, **more.pop("identity", {})}
        carrier.pending += json.dumps(spec).encode() + b"\n"

    def tell_those_who_can_start(self) -> None:
        """Rank 0 once all agents are there, so that nothing runs if a host cannot be reached; then the others."""
        if self.backend.listens is None or len(self.addresses) < self.plan.members:
            return
        for carrier in self.open:
            index = carrier.indices[0]
            if index in self.told or (index > 0 and self.rendezvous is None):
                continue
            self.told.add(index)
            identity = self.plan.identity(index, self.local(index))
            if index == 0:
                self.tell(carrier, index=0, identity=identity, listen=self.backend.listens,
                          meet=self.backend.meet(self.addresses[0]))
            else:
                identity["DTRAIN_RENDEZVOUS"] = self.rendezvous or ""
                self.tell(carrier, index=index, identity=identity)

    def local(self, index: int) -> Tuple[int, int]:
        """A worker's rank among those of its host, and how many they are."""
        places = [self.backend.place(i) or self.workers[i].host for i in range(self.plan.workers)]
        own = self.backend.place(index) or self.workers[index].host
        return places[:index].count(own), places.count(own)

    def stop(self, indices: Sequence[int], reason: str) -> None:
        wanted = {index for index in indices if self.workers[index].state not in ENDED}
        for index in wanted:
            self.asked.setdefault(index, reason)
        for carrier in list(self.waiting):
            if wanted.issuperset(carrier.indices):
                self.waiting.remove(carrier)
                for index in carrier.indices:
                    self.conclude(index, 127, 0, reason)
        for carrier in self.open:
            here = wanted.intersection(carrier.indices)
            everything = all(i in wanted or self.workers[i].state in ENDED for i in carrier.indices)
            if everything and here:
                carrier.pending += b"\nstop\n"
                carrier.kill_at = time.monotonic() + STOP_LIMIT
            else:
                for index in here:
                    carrier.pending += b"\nstop %d\n" % index

    def conclude(self, index: int, status: int, killer: int, text: str = "",
                 kind: Type[LaunchError] = WorkerError) -> None:
        worker = self.workers[index]
        with self.changed:
            if worker.state in ENDED:
                return
            started = worker.pid is not None
            worker.exit_status, worker.signal, worker.kind = status, killer or None, kind
            worker.ended_at = time.monotonic()
            readable = self.read_result(worker, b"".join(self.parts.pop(index, [])))
            if status == 0 and readable:
                worker.state = State.SUCCEEDED
            elif index in self.asked:
                worker.state, worker.reason = State.STOPPED, self.asked[index]
            else:
                worker.state = State.FAILED
                worker.reason = worker.reason or text or describe_status(status, killer)
            self.ended(worker, started)
            self.changed.notify_all()

    def ended(self, worker: Worker, started: bool) -> None:
        """What follows for the others."""
        if worker.state == State.FAILED:
            self.consider_the_others(worker, started)
        if all(other.state in ENDED for other in self.workers if not other.server):
            self.stop_at = time.monotonic() + STOP_LIMIT
            self.stop_reason = SERVERS_STAYED

    def consider_the_others(self, worker: Worker, started: bool) -> None:
        """They may go on for the time of grace; if not all agents are there, they cannot start."""
        stuck = self.rendezvous is None and self.backend.listens is not None
        if self.stop_at is None and (stuck or self.grace is not None):
            self.stop_at = time.monotonic() + ((self.grace or 0.0) if started else 0.0)
            self.stop_reason = f"stopped, since {worker.name} failed"

    @staticmethod
    def read_result(worker: Worker, data: bytes) -> bool:
        """What a function has returned or raised."""
        if not data:
            return True
        try:
            answer = pickle.loads(data)
            worker.result = answer.get("value")
            worker.traceback = answer.get("traceback", "")
            if "text" in answer:
                worker.reason = f"{answer['type']}: {answer['text']}"
            if "exception" in answer:
                worker.error = pickle.loads(answer["exception"])
            return True
        except Exception as error:
            worker.reason = f"what its function has returned cannot be read here: {error}"
            return False

    def conclude_all(self, kind: Type[LaunchError], text: str) -> None:
        for worker in self.workers:
            self.conclude(worker.index, 127, 0, text, kind)
