"""Workers on hosts that are reached by ssh: a connection for each, which asks for no password. A worker ends when its
connection does. Hosts need Python; what workers run must be there.

SPDX-License-Identifier: Apache-2.0
"""
import os
import shlex
import shutil
from typing import List, Optional, Sequence, Tuple, Type

from . import _backend
from ._carrier import Carrier, Process, agent_command
from ._errors import BackendError, HostError, LaunchError
from ._hosts import Host, Hosts, parse_hosts, place
from ._plan import Plan, refuse_gpus

FAILED = 255  #: what ssh ends with if the connection could not be made, or broke


class Connection(Process):
    """An ssh client. Nothing but the agent's beginning is in its arguments: what is to run and its variables go
    through stdin."""

    def __init__(self, index: int, host: Host, command: Sequence[str]) -> None:
        super().__init__([index], command, lane=host.name)
        self.host = host

    def explain(self) -> Tuple[Type[LaunchError], str]:
        status = self.status()
        if status == FAILED:
            return HostError, f"host {self.host.name}: the ssh connection could not be made, or is lost"
        if status == 127:
            return HostError, f"host {self.host.name}: Python is not found there; name it (python=\"python3\")"
        return HostError, f"host {self.host.name}: ssh has ended with status {status}"


class Backend(_backend.Backend):
    """hosts: "alpha:4,beta:4". port, identity: of ssh; options: more of its arguments, such as ["-J", "gate"].
    connect_timeout: seconds. address: where other hosts reach that of rank 0, if it is not where ssh has come to."""
    name = "ssh"
    patience: Optional[float] = 60.0
    at_once = 6  # sshd refuses some of more than 10 (MaxStartups)

    def __init__(self, hosts: Hosts, port: Optional[int] = None, identity: Optional[str] = None,
                 options: Sequence[str] = (), connect_timeout: int = 10, address: Optional[str] = None) -> None:
        self.hosts = parse_hosts(hosts)
        self.address = address
        self.ssh = ["ssh", "-T", "-x", *options, *(["-p", str(port)] if port else []), *(["-i", identity] if identity else []),
                    "-o", "BatchMode=yes", "-o", f"ConnectTimeout={connect_timeout}", "-o", "ServerAliveInterval=5",
                    "-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR"]  # the first of each option counts

    def check(self, plan: Plan) -> None:
        if shutil.which("ssh") is None:
            raise BackendError("backend \"ssh\": the program ssh is not installed (Debian: openssh-client)")
        refuse_gpus(plan, self.name)
        self.placed = place(self.hosts, plan.workers, plan.servers)
        plan.cwd = plan.cwd or os.getcwd()

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        remote = f"exec {shlex.join(agent_command(plan.python, marker))}"
        command = f"exec /bin/sh -c {shlex.quote(remote)}"  # whatever the user's shell is
        return [Connection(index, host, [*self.ssh, host.name, command]) for index, host in enumerate(self.placed)]

    def place(self, index: int) -> Optional[str]:
        return self.placed[index].name

    def meet(self, reported: str) -> str:
        if self.address is not None:
            reported = self.address
        elif len({host.name for host in self.placed}) == 1:
            return "127.0.0.1"
        return f"[{reported}]" if ":" in reported else reported
