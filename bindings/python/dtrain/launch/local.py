"""Workers as processes of this machine.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
from typing import List

from . import _backend
from ._carrier import Carrier, Process, agent_command
from ._plan import Plan, check_script, refuse_gpus


class Backend(_backend.Backend):
    name = "local"
    listens = "127.0.0.1"

    def check(self, plan: Plan) -> None:
        check_script(plan)
        refuse_gpus(plan, self.name)

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        return [Process([index], agent_command(plan.python, marker)) for index in range(plan.members)]

    def meet(self, reported: str) -> str:
        return "127.0.0.1"

    def lost(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
