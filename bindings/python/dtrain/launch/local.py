"""Workers as processes of this machine.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
from typing import List, Optional, Sequence

from .._errors import InvalidError
from . import _backend
from ._carrier import Carrier, Process, agent_command
from ._hosts import Host
from ._plan import Plan, check_script, refuse_gpus

HERE = "localhost"


class Backend(_backend.Backend):
    name = "local"
    listens = "127.0.0.1"
    elastic = True

    def check(self, plan: Plan) -> None:
        check_script(plan)
        refuse_gpus(plan, self.name)
        if plan.elastic:
            plan.env.setdefault("DTRAIN_LISTEN_ADDRESS", "127.0.0.1")

    def slots(self, workers: int) -> List[Host]:
        return [Host(HERE, workers)]

    def use(self, hosts: Sequence[Host]) -> None:
        others = [host.name for host in hosts if host.name != HERE]
        if others:
            raise InvalidError(f"host {others[0]}: backend \"local\" has only {HERE}; use backend \"ssh\" for others")

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        return [self.carrier(plan, index, HERE, marker) for index in range(plan.members)]

    def carrier(self, plan: Plan, index: int, host: str, marker: str) -> Carrier:
        return Process([index], agent_command(plan.python, marker))

    def place(self, index: int) -> Optional[str]:
        return HERE

    def meet(self, reported: str) -> str:
        return "127.0.0.1"

    def lost(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
