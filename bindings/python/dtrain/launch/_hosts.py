"""Hosts with slots: "alpha:4,beta:4", the lines of a hostfile ("alpha slots=4"), a list, or {"alpha": 4, "beta": 4}.

SPDX-License-Identifier: Apache-2.0
"""
import re
from typing import Dict, List, Mapping, NamedTuple, Sequence, Union

from .._errors import InvalidError
from ._errors import SlotsError

Hosts = Union[str, Sequence[str], Mapping[str, int]]
FORM = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_][A-Za-z0-9_.@-]*)(?:(?::|\s+slots=)(?P<slots>\d{1,5}))?")


class Host(NamedTuple):
    name: str  #: for ssh: a name, user@name, an address
    slots: int


def parse_hosts(hosts: Hosts) -> List[Host]:
    """An IPv6 address is in brackets. Without slots a host has one."""
    if isinstance(hosts, str):
        texts = re.split("[,\n]", hosts.strip())
    else:
        texts = texts_of(hosts) if isinstance(hosts, Mapping) else list(hosts)
    found: Dict[str, Host] = {}
    for text in texts:
        match = FORM.fullmatch(str(text).strip())
        if match is None or match["slots"] == "0":
            raise InvalidError(f"hosts: {text!r} is not HOST or HOST:SLOTS")
        name = match["name"].strip("[]")
        if name in found:
            raise InvalidError(f"hosts: {name} is there twice")
        found[name] = Host(name, int(match["slots"] or 1))
    if not found:
        raise InvalidError("hosts: at least one is needed, such as \"alpha:4,beta:4\"")
    return list(found.values())


def texts_of(hosts: Mapping[str, int]) -> List[str]:
    """Those with slots."""
    return [f"[{name}]:{slots}" if ":" in name else f"{name}:{slots}" for name, slots in hosts.items() if slots != 0]


def place(hosts: Sequence[Host], workers: int, servers: int) -> List[Host]:
    """The host of each process (workers, then servers). Workers fill the slots of one host after another; servers go
    around the hosts, and take no slots."""
    slots = [host for host in hosts for _ in range(host.slots)]
    if workers > len(slots):
        have = ", ".join(f"{host.name}:{host.slots}" for host in hosts)
        raise SlotsError(f"{workers} workers, but hosts have {len(slots)} slots ({have}); nothing was started: give more "
                         "slots (HOST:SLOTS), or launch fewer workers")
    return slots[:workers] + [hosts[i % len(hosts)] for i in range(servers)]
