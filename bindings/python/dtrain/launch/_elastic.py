"""Elastic jobs: what was asked for, and the policy by which failed workers are replaced. No I/O and no clock, so that
tests can drive it.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._errors import InvalidError
from ._hosts import Host, Hosts
from ._plan import check_count

Discovery = Callable[[], Hosts]

SOON = 60.0  #: seconds: a worker that fails earlier after its start counts against its host
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  #: seconds until a host gets the next worker; each time twice as many
MOST_FAILURES = 5  #: in a row; then the host is left out


class Elastic(NamedTuple):
    """From `least` to `most` workers."""
    least: int
    most: int
    timeout: float  #: seconds that a job goes on with fewer than `least`
    discovery: Optional[Discovery] = None
    interval: float = 5.0  #: seconds between calls of discovery

    def variables(self) -> Dict[str, str]:
        return {"DTRAIN_ELASTIC": "yes", "DTRAIN_ELASTIC_MIN": str(self.least), "DTRAIN_ELASTIC_MAX": str(self.most)}


def generations(meeting: str) -> int:
    """How many generations of a job have formed, as the text of its coordinator's file says."""
    last = meeting.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def check_sizes(n: int, least: int, most: int, names: Tuple[str, str, str] = ("n", "elastic: min", "elastic: max")) -> None:
    check_count(least, names[1], 1)
    check_count(most, names[2], 1)
    if least > most:
        raise InvalidError(f"{names[1]}: {least} is more than {names[2]}: {most}")
    if not least <= check_count(n, names[0], 1) <= most:
        raise InvalidError(f"{names[0]}: {n} is not from {least} to {most} ({names[1]}, {names[2]})")


def check_timeout(timeout: float) -> float:
    if not timeout >= 0:
        raise InvalidError(f"elastic_timeout: {timeout!r} is not a time in seconds")
    return float(timeout)


def check_elastic(n: int, sizes: Tuple[int, int], timeout: float, discovery: Optional[Discovery],
                  interval: float) -> Elastic:
    if not isinstance(sizes, tuple) or len(sizes) != 2:
        raise InvalidError(f"elastic: {sizes!r} is not a pair (min, max)")
    check_sizes(n, *sizes)
    if discovery is not None and not callable(discovery):
        raise TypeError(f"discovery: a function is needed, not {type(discovery).__name__}")
    if not interval > 0:
        raise InvalidError(f"discovery_interval: {interval!r} is not a time in seconds")
    return Elastic(*sizes, check_timeout(timeout), discovery, float(interval))


class Placed(NamedTuple):
    """A worker that has not ended."""
    worker: int
    host: str
    running: bool  #: it has started


class Decision(NamedTuple):
    start: List[str]  #: a newcomer on each of these hosts
    stop: List[int]  #: workers whose hosts or slots are gone
    give_up: str  #: why the job cannot go on; "": it can


class Record:
    """What is known of one host."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.failures = 0
        self.free_at = 0.0
        self.left_out = False


class Policy:
    """How many workers there should be, and where. target: this many, as far as slots are there; None: as many as may
    be."""

    def __init__(self, elastic: Elastic, hosts: Sequence[Host], target: Optional[int] = None) -> None:
        self.elastic = elastic
        self.target = elastic.most if target is None else target
        self.hosts: Dict[str, Record] = {}
        self.too_few_since: Optional[float] = None
        self.found(hosts)

    def found(self, hosts: Sequence[Host]) -> None:
        """Which hosts are there now. What is known of one that was there before stays."""
        known, self.hosts = self.hosts, {}
        for host in hosts:
            record = self.hosts[host.name] = known.get(host.name) or Record(host.slots)
            record.slots = host.slots

    def failed(self, host: str, ran_for: float, now: float) -> str:
        """A worker has failed there. Returns a text if the host gets no worker from now on."""
        record = self.hosts.get(host)
        if record is None or record.left_out:
            return ""
        if ran_for >= SOON:
            record.failures = 0
            return ""
        if now < record.free_at:
            return ""  # together with another
        record.failures += 1
        record.free_at = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (record.failures - 1))
        record.left_out = record.failures >= MOST_FAILURES
        return (f"host {host} is left out: workers there have failed {record.failures} times in a row, each less than "
                f"{SOON:g} s after its start") if record.left_out else ""

    def left(self) -> None:
        """A worker was stopped by the program: nobody takes its place."""
        self.target -= 1

    def step(self, placed: Sequence[Placed], now: float, leaderless: bool = False) -> Decision:
        """leaderless: the coordinator has ended, and no other is there yet."""
        stop = self.surplus(placed)
        staying = [one for one in placed if one.worker not in stop]
        start = self.places(staying, now)
        return Decision(start, stop, self.reason_to_give_up(staying, now, leaderless))

    def surplus(self, placed: Sequence[Placed]) -> List[int]:
        """Those without a slot: the youngest of each host."""
        left = {name: record.slots for name, record in self.hosts.items()}
        stop = []
        for one in placed:
            left[one.host] = left.get(one.host, 0) - 1
            if left[one.host] < 0:
                stop.append(one.worker)
        return stop

    def places(self, staying: Sequence[Placed], now: float) -> List[str]:
        """Where newcomers start: hosts are filled in their order."""
        there = [one.host for one in staying]
        found = [name for name, record in self.hosts.items() if not record.left_out and now >= record.free_at
                 for _ in range(record.slots - there.count(name))]
        return found[:max(0, self.target - len(staying))]

    def reason_to_give_up(self, staying: Sequence[Placed], now: float, leaderless: bool) -> str:
        running = sum(one.running for one in staying)
        least = self.elastic.least
        if running >= least and not leaderless:
            self.too_few_since = None
            return ""
        if self.too_few_since is None:
            self.too_few_since = now
        what = "the job could not go on: "
        what += "none of its workers is the coordinator" if leaderless and running >= least else \
            f"{running} of its workers run, and it needs {least} (elastic)"
        if running < least and self.elastic.discovery is None and all(record.left_out for record in self.hosts.values()):
            return f"{what}; every host is left out after failures"
        if now - self.too_few_since >= self.elastic.timeout:
            return f"{what}, for longer than {self.elastic.timeout:g} s (elastic_timeout)"
        return ""


def hosts_text(hosts: Mapping[str, Record]) -> str:
    return ", ".join(f"{name}:{record.slots}" for name, record in hosts.items())
