"""An elastic job of Ray actors, from the beginning of a call of Executor.run() to its end.

The processes meet by files, one for each actor, whose text is that of the worker that is the coordinator. The driver asks
the actors for what they write and tells it to the others (launch/_agent.py, Meeting), so no actor has to stay.

SPDX-License-Identifier: Apache-2.0
"""
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._engines import Failure, blame, identities
from .launch._elastic import Elastic, Placed, Policy, generations
from .launch._elastic_loop import OVER
from .launch._errors import LaunchError
from .launch._hosts import Host

TICK = 0.3  #: seconds between looks at the actors' files
ANYWHERE = "Ray"  #: the policy's only host: Ray chooses nodes
Call = Tuple[Callable[..., Any], List[Any], Dict[str, Any]]


class Member:
    """An actor: a worker, or a server."""

    def __init__(self, index: int, actor: Any, newcomer: bool, server: bool = False) -> None:
        self.index = index
        self.actor = actor
        self.newcomer = newcomer
        self.server = server
        self.rank = index if not newcomer and not server else -1  #: as which it has started
        self.formed_before = 0  #: generations of the job, when its function was called
        self.told = ""  #: the text that its file has
        self.asked: Any = None  #: the reference of a call of exchange() that is not answered yet
        self.started_at: Optional[float] = None  #: when the function was called
        self.alive = True  #: the actor
        self.working = not server  #: the function has not ended
        self.value: Any = None
        self.failure: Optional[Failure] = None

    @property
    def name(self) -> str:
        return f"{'server' if self.server else 'worker'} {self.index}"


class ElasticRun:
    """hosts: where the workers are, which the job begins with."""

    def __init__(self, ray: Any, elastic: Elastic, workers: Sequence[Any], hosts: Sequence[str], servers: Sequence[Any],
                 new_worker: Callable[[], Any], variables: Mapping[str, str], call: Call) -> None:
        self.ray = ray
        self.elastic = elastic
        self.hosts = list(hosts)
        self.new_worker = new_worker
        self.variables = dict(variables)
        self.call = call
        self.first = len(workers)
        self.policy = Policy(elastic, [Host(ANYWHERE, elastic.most)])
        self.members = [Member(i, actor, newcomer=False) for i, actor in enumerate(workers)]
        self.servers = [Member(i, actor, newcomer=False, server=True) for i, actor in enumerate(servers)]
        self.calls: Dict[Any, Callable[[Any], None]] = {}  #: references that are not answered yet, and who takes the answer
        self.meeting = ""
        self.formed = 0  #: generations
        self.owner: Optional[Member] = None
        self.free_ranks: List[int] = []
        self.lost: List[Member] = []
        self.ending = False

    def living(self) -> List[Any]:
        """The actors that can be used again: their functions have ended well."""
        return [member.actor for member in self.members if member.alive and not member.working]

    def run(self) -> List[Any]:
        try:
            for member, told in zip(self.members, identities(self.hosts, self.first, "")):
                self.start(member, {**told, "DTRAIN_SERVERS": str(len(self.servers))})
            while any(member.working for member in self.members):
                self.tick()
        finally:
            for member in self.members:
                if member.working:
                    self.dismiss(member)
        return [member.value for member in self.members if member.failure is None and member.started_at is not None]

    def start(self, member: Member, identity: Mapping[str, str]) -> None:
        """Actors that are called several times at once do not keep the order of calls."""
        self.expect(member.actor.become_elastic.remote({**self.variables, **identity}), member, self.call_function)

    def call_function(self, member: Member, _: None) -> None:
        if self.ending:
            return self.dismiss(member)
        function, args, kwargs = self.call
        member.started_at = time.monotonic()
        member.formed_before = self.formed
        self.expect(member.actor.run.remote(function, args, kwargs), member, self.succeeded)

    def expect(self, reference: Any, member: Member, then: Callable[[Member, Any], None]) -> None:
        def take(answered: Any) -> None:
            try:
                value = self.ray.get(answered)
            except self.ray.exceptions.RayError as error:
                return self.failed(member, error)
            then(member, value)
        self.calls[reference] = take

    def tick(self) -> None:
        done, _ = self.ray.wait(list(self.calls), num_returns=len(self.calls), timeout=TICK)
        for reference in done:
            self.calls.pop(reference)(reference)
        for member in [*self.members, *self.servers]:
            if member.alive and member.asked is None and (member.server or member.started_at is not None):
                self.exchange(member)
        if self.ending:
            self.tell_if_over()
            return
        now = time.monotonic()
        decision = self.policy.step([Placed(member.index, ANYWHERE, member.started_at is not None)
                                     for member in self.members if member.working], now, self.is_leaderless())
        for _ in decision.start:
            self.add_newcomer()
        if decision.give_up:
            self.give_up(decision.give_up)

    # Where the processes meet.

    def exchange(self, member: Member) -> None:
        text = self.meeting if member.told != self.meeting and member is not self.owner else ""
        if member.server and text == OVER:
            text = ""  # it waits for the next job
        member.told = text or member.told
        member.asked = member.actor.exchange.remote(text)
        self.expect(member.asked, member, self.exchanged)

    def exchanged(self, member: Member, text: Optional[str]) -> None:
        member.asked = None
        if text and generations(text) >= self.formed:  # else it comes late
            self.meeting, self.owner, member.told = text, member, text
            self.formed = generations(text)

    def is_member(self, member: Member) -> bool:
        """As in launch/_elastic_loop.py."""
        return not member.newcomer or (member.started_at is not None and member.formed_before < self.formed)

    def is_leaderless(self) -> bool:
        return self.owner is not None and not self.owner.working

    def tell_if_over(self) -> None:
        """The coordinator has ended well: those that wait to be taken in need not wait."""
        if self.owner is not None and not self.owner.working and self.meeting != OVER:
            self.meeting = OVER

    # What happens to workers.

    def add_newcomer(self) -> None:
        member = Member(len(self.members), self.new_worker(), newcomer=True)
        self.members.append(member)
        self.expect(member.actor.where.remote(), member, self.came)

    def came(self, member: Member, host: str) -> None:
        if self.ending:
            return self.dismiss(member)
        identity = {"DTRAIN_ROLE": "worker", "DTRAIN_RANK": "new"}
        if self.free_ranks and not self.formed:
            member.rank = self.free_ranks.pop(0)
            identity.update(DTRAIN_RANK=str(member.rank), DTRAIN_SIZE=str(self.first), DTRAIN_SERVERS=str(len(self.servers)))
        self.start(member, identity)

    def succeeded(self, member: Member, value: Any) -> None:
        member.working = False
        member.value = value
        self.ending = True
        for other in self.members:
            if other.working and other.newcomer and other.started_at is None:
                self.dismiss(other)  # Ray has no room for it yet

    def failed(self, member: Member, error: BaseException) -> None:
        """Its function has raised an exception, or it is gone."""
        if not member.alive or not (member.working or member.server):
            member.alive = member.alive and not isinstance(error, self.ray.exceptions.RayActorError)
            return
        member.failure = failure(self.ray, member.index, error, member.name, "")
        self.dismiss(member)
        if member.server:
            raise blame("dtrain.ray", [member.failure], self.first)
        self.lost.append(member)
        if self.ending:
            if self.is_member(member):
                raise self.error([member], "")
            return
        if member.rank > 0:
            self.free_ranks.append(member.rank)
        now = time.monotonic()
        self.policy.failed(ANYWHERE, now - (member.started_at or now), now)
        if not any(other.working and self.is_member(other) for other in self.members):
            self.give_up("no worker is left that could take newcomers in")
        if member.rank == 0 and not self.formed:
            self.give_up("the job could not form without rank 0")

    def dismiss(self, member: Member) -> None:
        member.alive = member.working = False
        self.ray.kill(member.actor)

    def give_up(self, text: str) -> None:
        if not self.lost:
            raise LaunchError(f"dtrain.ray: {text}")
        raise self.error(self.lost, text)

    def error(self, lost: Sequence[Member], text: str) -> LaunchError:
        failures = [member.failure for member in lost if member.failure is not None]
        if text:
            for one in failures:
                one.text = f"{one.text}; {text}"
        return blame("dtrain.ray", failures, self.first)


def failure(ray: Any, index: int, error: BaseException, name: str = "",
            advice: str = "; shutdown() and start() make a new job") -> Failure:
    """What Ray says of a call that failed. advice: if the actor has died."""
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        text = f"{type(cause).__name__}: {cause}"
        return Failure(index, text, cause, traceback=str(getattr(error, "traceback_str", "")), name=name)
    lost = isinstance(error, ray.exceptions.RayActorError)
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    text = f"its actor has died: {first}{advice}" if lost else first
    return Failure(index, text, error, lost, name=name)
