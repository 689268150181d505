"""The thread of an elastic job: workers that fail are replaced by newcomers while the others go on.

The processes meet by files, one for each, whose text is that of the process that is the coordinator: its agent reports
what it writes, and this thread passes it on to all others (`_agent.Meeting`). So the job needs no host that stays.

    the first workers start -> one fails: a newcomer -> ... -> one ends well: nothing more starts, the others end

SPDX-License-Identifier: Apache-2.0
"""
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Type

from ._carrier import Carrier
from ._discovery import Seeker
from ._elastic import Elastic, Placed, Policy, generations, hosts_text
from ._errors import LaunchError
from ._loop import SERVERS_STAYED, STOP_LIMIT, Loop
from ._output import Lines
from ._worker import ENDED, State, Worker, blame

AT_ONCE = 5.0  #: seconds within which failures belong together
#: What processes read that look for a job that is over: they end instead of waiting.
OVER = "dtrain-rendezvous over"


class ElasticLoop(Loop):
    """policy, seeker: which hosts are there. newcomer: makes the object of one more worker, and lists it."""

    def __init__(self, *arguments: Any, elastic: Elastic, policy: Policy, seeker: Optional[Seeker],
                 newcomer: Callable[[], Worker], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.elastic, self.policy, self.seeker, self.newcomer = elastic, policy, seeker, newcomer
        self.begun = False  #: the first workers were told to start
        self.ending = False  #: nothing more starts
        self.told_at: Dict[int, float] = {}
        self.hosts = {i: self.backend.place(i) or "" for i in range(self.plan.members)}
        self.local_ranks = {i: self.local(i)[0] for i in range(self.plan.workers)}
        self.ranks: Dict[int, int] = {i: i for i in range(self.plan.workers)}  #: as which workers have started
        self.free_ranks: List[int] = []
        self.formed_before: Dict[int, int] = {}  #: how many had formed when a worker was told to start
        self.meeting = ""  #: the text of the coordinator's file
        self.owner: Optional[int] = None  #: the worker that has written it
        self.open_door = False  #: its file is there
        self.out_of_place: List[int] = []  #: workers whose hosts are gone

    def request_end(self, reason: str) -> None:
        """From other threads: stops all workers, and those that start at this moment."""
        def stop() -> None:
            self.ending = True
            self.stop(range(len(self.workers)), reason)
        self.request(stop)

    def end(self) -> None:
        if self.seeker is not None:
            self.seeker.close()
        super().end()

    def conclude_all(self, kind: Type[LaunchError], text: str) -> None:
        """The launcher ends: nobody is replaced."""
        self.ending = True
        super().conclude_all(kind, text)

    # What happens with time.

    def handle_time(self, now: float) -> None:
        super().handle_time(now)
        if not self.begun or self.ending:
            return
        if self.seeker is not None:
            self.look_for_hosts(self.seeker, now)
        decision = self.policy.step(self.placed(), now, self.is_leaderless())
        if decision.stop:
            self.dismiss(decision.stop)
        for host in decision.start:
            self.start_newcomer(host)
        if decision.give_up:
            self.give_up(decision.give_up)

    def look_for_hosts(self, seeker: Seeker, now: float) -> None:
        warning = seeker.warning(now)
        if warning:
            self.log(f"warning: {warning}".encode())
        before = hosts_text(self.policy.hosts)
        self.policy.found(seeker.hosts())
        after = hosts_text(self.policy.hosts)
        if after != before:
            self.log(f"hosts: {after} (before: {before})".encode())

    def own(self) -> List[Worker]:
        """The workers, without the servers."""
        return [worker for worker in self.workers if not worker.server]

    def placed(self) -> List[Placed]:
        return [Placed(worker.index, self.hosts[worker.index], worker.state == State.RUNNING) for worker in self.own()
                if worker.state not in ENDED and worker.index not in self.out_of_place]

    def is_leaderless(self) -> bool:
        """Processes that run may all be waiting to be taken in. In a job that lives, another worker becomes the coordinator
        soon, and its agent says so."""
        return self.owner is not None and self.workers[self.owner].state in ENDED

    def dismiss(self, indices: Sequence[int]) -> None:
        """Ends workers whose hosts or slots are gone; they have the time of grace to leave the job."""
        seconds = max(self.grace or 0.0, 0.0)
        for index in indices:
            self.out_of_place.append(index)
            self.asked.setdefault(index, f"host {self.hosts[index]} is no longer there for it (discovery)")
            self.log(f"{self.workers[index].name} is stopped: {self.asked[index]}".encode())
            for carrier in self.open:
                if index in carrier.indices:
                    carrier.pending += b"\nleave %g\n" % seconds
                    carrier.kill_at = time.monotonic() + seconds + STOP_LIMIT
            for carrier in list(self.waiting):
                if index in carrier.indices:
                    self.stop([index], self.asked[index])

    def start_newcomer(self, host: str) -> None:
        with self.changed:
            worker = self.newcomer()
            index = worker.index
            self.hosts[index] = host
            used = [self.local_ranks[other.index] for other in self.own()
                    if other.state not in ENDED and other.index != index and self.hosts[other.index] == host]
            self.local_ranks[index] = next(rank for rank in range(len(used) + 1) if rank not in used)
            carrier = self.backend.carrier(self.plan, index, host, self.marker.decode().strip())
            self.lines[carrier] = Lines()
            self.waiting.append(carrier)
            self.log(f"{worker.name} starts on {host}".encode())
            self.changed.notify_all()

    # What agents report.

    def tell_those_who_can_start(self) -> None:
        """All of the first ones once their agents are there, and newcomers at once."""
        self.begun = self.begun or all(i in self.addresses for i in range(self.plan.members))
        for carrier in self.open:
            index = carrier.indices[0]
            if not self.begun or index in self.told or index not in self.addresses:
                continue
            self.told.add(index)
            self.told_at[index] = time.monotonic()
            self.formed_before[index] = self.formed
            self.tell(carrier, index=index, identity=self.identity(index), meet_by_file=self.meeting)

    def identity(self, index: int) -> Dict[str, str]:
        """Until the job has formed for the first time, a newcomer takes the place of one of the first workers. Not that of
        rank 0, which would begin another job."""
        if index < self.plan.members:
            return self.plan.identity(index, self.local(index))
        rank = self.ranks[index] = self.free_ranks.pop(0) if self.free_ranks and not self.formed else -1
        local = self.local_ranks[index]
        there = sum(self.hosts[worker.index] == self.hosts[index] for worker in self.own() if worker.state not in ENDED)
        told = self.plan.identity(max(rank, 0), (local, max(there, local + 1)))
        return told if rank > 0 else {**told, "DTRAIN_RANK": "new"}

    def take_meeting(self, index: int, text: str) -> None:
        if text and generations(text) >= self.formed:  # else it comes late
            self.meeting, self.owner, self.open_door = text, index, True
            self.formed = generations(text)
            self.pass_on(text)
        elif not text and index == self.owner:
            self.open_door = False
            self.tell_if_over()

    def pass_on(self, text: str) -> None:
        for carrier in self.open:
            if carrier.indices[0] in self.told and carrier.indices[0] != self.owner:
                carrier.pending += b"\nmeet %s\n" % text.encode()

    def tell_if_over(self) -> None:
        """The coordinator has left after a worker has ended well: processes that wait to be taken in need not wait."""
        if self.ending and self.meeting and not self.open_door:
            self.pass_on(OVER)

    # What happens to workers.

    def ended(self, worker: Worker, started: bool) -> None:
        if worker.server or not self.begun:
            self.ending = self.ending or worker.state == State.FAILED
            return super().ended(worker, started)
        if worker.state == State.FAILED:
            self.failed(worker, started)
        elif worker.index in self.out_of_place:
            worker.replaced = True
        elif worker.state == State.STOPPED:
            self.policy.left()
        else:
            self.ending = True
            self.tell_if_over()
        if not any(self.can_take_in(other) for other in self.own()) and not self.ending:
            self.give_up("no worker is left that could take newcomers in")
        if self.stop_at is None and all(other.state in ENDED for other in self.own()):
            self.stop_at = time.monotonic() + STOP_LIMIT
            self.stop_reason = SERVERS_STAYED

    def failed(self, worker: Worker, started: bool) -> None:
        if self.ending:
            worker.replaced = not self.is_member(worker)
            if not worker.replaced:
                super().consider_the_others(worker, started)
            return
        now = time.monotonic()
        worker.replaced = True
        if self.ranks.get(worker.index, -1) > 0:
            self.free_ranks.append(self.ranks[worker.index])
        self.log(f"{worker.describe_end()}; the job goes on".encode())
        left_out = self.policy.failed(self.hosts[worker.index], now - self.told_at.get(worker.index, now), now)
        if left_out:
            self.log(f"warning: {left_out}".encode())
        if worker.index == 0 and not self.formed:
            self.give_up("the job could not form without rank 0")

    def is_member(self, worker: Worker) -> bool:
        """Whether a generation has formed since it has started: then it is most likely in it. Others wait to be taken
        in."""
        return not worker.newcomer or self.formed_before.get(worker.index, self.formed) < self.formed

    def can_take_in(self, worker: Worker) -> bool:
        return worker.state not in ENDED and self.is_member(worker)

    def give_up(self, text: str) -> None:
        """Ends the job with the failure that began its end: of those since it last had enough workers."""
        self.ending = True
        self.log(text.encode())
        now = time.monotonic()
        since = (self.policy.too_few_since or now) - AT_ONCE
        with self.changed:
            lost = [worker for worker in self.own() if worker.replaced and worker.state == State.FAILED]
            lost = [worker for worker in lost if (worker.ended_at or 0.0) >= since] or lost
            if lost:
                first = min(lost, key=blame)
                first.replaced = False
                first.reason = f"{first.reason}; {text}"
        self.stop_at, self.stop_reason = now, text
