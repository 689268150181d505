"""Workers on hosts that are reached by ssh: a connection for each, which asks for no password. A worker ends when its
connection does. Hosts need Python; what workers run must be there.

SPDX-License-Identifier: Apache-2.0
"""
import os
import shlex
import shutil
from typing import List, Optional, Sequence, Tuple, Type

from .._errors import InvalidError
from . import _backend
from ._carrier import Carrier, Process, agent_command
from ._errors import BackendError, HostError, LaunchError
from ._hosts import Host, Hosts, parse_hosts, place
from ._plan import Plan, refuse_gpus

FAILED = 255  #: what ssh ends with if the connection could not be made, or broke


class Connection(Process):
    """An ssh client. Nothing but the agent's beginning is in its arguments: what is to run and its variables go
    through stdin."""

    def __init__(self, index: int, host: str, command: Sequence[str]) -> None:
        super().__init__([index], command, lane=host)
        self.host = host

    def explain(self) -> Tuple[Type[LaunchError], str]:
        status = self.status()
        if status == FAILED:
            return HostError, f"host {self.host}: the ssh connection could not be made, or is lost"
        if status == 127:
            return HostError, f"host {self.host}: Python is not found there; name it (python=\"python3\")"
        return HostError, f"host {self.host}: ssh has ended with status {status}"


class Backend(_backend.Backend):
    """hosts: "alpha:4,beta:4", unless discovery of an elastic job names them. port, identity: of ssh; options: more of its arguments, such as ["-J", "gate"].
    connect_timeout: seconds. address: where other hosts reach that of rank 0, if it is not where ssh has come to."""
    name = "ssh"
    patience: Optional[float] = 60.0
    at_once = 6  # sshd refuses some of more than 10 (MaxStartups)
    elastic = True

    def __init__(self, hosts: Optional[Hosts] = None, port: Optional[int] = None, identity: Optional[str] = None,
                 options: Sequence[str] = (), connect_timeout: int = 10, address: Optional[str] = None) -> None:
        self.hosts = None if hosts is None else parse_hosts(hosts)
        self.discovered = False
        self.address = address
        self.ssh = ["ssh", "-T", "-x", *options, *(["-p", str(port)] if port else []), *(["-i", identity] if identity else []),
                    "-o", "BatchMode=yes", "-o", f"ConnectTimeout={connect_timeout}", "-o", "ServerAliveInterval=5",
                    "-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR"]  # the first of each option counts

    def check(self, plan: Plan) -> None:
        if shutil.which("ssh") is None:
            raise BackendError("backend \"ssh\": the program ssh is not installed (Debian: openssh-client)")
        refuse_gpus(plan, self.name)
        if self.hosts is None:
            raise InvalidError("hosts: backend \"ssh\" needs them, such as \"alpha:4,beta:4\"")
        if plan.elastic and self.address is not None:
            raise BackendError("address: any worker of an elastic job may be the one that others must reach; set option "
                               "listen.address (DTRAIN_LISTEN_ADDRESS) on each host instead")
        self.placed = place(self.hosts, plan.workers, plan.servers)
        plan.cwd = plan.cwd or os.getcwd()

    def slots(self, workers: int) -> List[Host]:
        return self.hosts or []

    def use(self, hosts: Sequence[Host]) -> None:
        if self.hosts is not None and not self.discovered:
            raise InvalidError("hosts and discovery: give one of them")
        self.discovered = True
        self.hosts = self.hosts or list(hosts)

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        return [self.carrier(plan, index, host.name, marker) for index, host in enumerate(self.placed)]

    def carrier(self, plan: Plan, index: int, host: str, marker: str) -> Carrier:
        remote = f"exec {shlex.join(agent_command(plan.python, marker))}"
        command = f"exec /bin/sh -c {shlex.quote(remote)}"  # whatever the user's shell is
        return Connection(index, host, [*self.ssh, host, command])

    def place(self, index: int) -> Optional[str]:
        return self.placed[index].name

    def meet(self, reported: str) -> str:
        if self.address is not None:
            reported = self.address
        elif len({host.name for host in self.placed}) == 1:
            return "127.0.0.1"
        return f"[{reported}]" if ":" in reported else reported
