"""Workers as tasks of one step of Slurm, by srun: within an allocation (salloc, sbatch), or with one that srun asks for.
The processes find each other by Slurm's own variables (docs/JOINING.md); servers are the last tasks.

SPDX-License-Identifier: Apache-2.0
"""
import math
import os
import shutil
from typing import List, Optional, Sequence, Tuple, Type

from . import _backend
from ._carrier import Carrier, Labeled, agent_command
from ._errors import BackendError, LaunchError
from ._plan import Plan


class Step(Labeled):
    """An srun with all agents. What it says itself, such as that a job is queued, explains its end."""

    def __init__(self, indices: Sequence[int], command: Sequence[str]) -> None:
        super().__init__(indices, command)
        self.said: List[str] = []

    def split(self, line: bytes) -> Tuple[int, bytes]:
        index, text = super().split(line)
        if index < 0:
            self.said = [*self.said, text.decode(errors="replace").strip()][-3:]
        return index, text

    def explain(self) -> Tuple[Type[LaunchError], str]:
        said = f": {'; '.join(self.said)}" if self.said else ""
        return BackendError, f"srun has ended with status {self.status()}{said}"


class Backend(_backend.Backend):
    """partition, account, time_limit ("1:00:00"): of the allocation; options: more arguments of srun; mpi: what
    --mpi names, which is how the processes meet ("none": on the step's first host)."""
    name = "slurm"
    instead_of_elastic = "use backend \"ssh\" with the hosts of the allocation (scontrol show hostnames)"
    listens = None
    index_from = "SLURM_PROCID"
    start_timeout = None  # jobs wait in the queue

    def __init__(self, partition: Optional[str] = None, account: Optional[str] = None, time_limit: Optional[str] = None,
                 options: Sequence[str] = (), mpi: Optional[str] = None) -> None:
        given = {"partition": partition, "account": account, "time": time_limit, "mpi": mpi}
        self.options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        self.options += options

    def check(self, plan: Plan) -> None:
        if shutil.which("srun") is None:
            raise BackendError("backend \"slurm\": the program srun is not installed (Debian: slurm-client)")
        plan.cwd = plan.cwd or os.getcwd()

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        cores = max(1, math.ceil(plan.cpu or 1))
        asked = [f"--ntasks={plan.members}", f"--cpus-per-task={cores}", f"--job-name=dtrain-{job}"]
        if plan.memory is not None:
            asked.append(f"--mem-per-cpu={max(1, math.ceil(plan.memory / cores / (1 << 20)))}M")
        if plan.gpus:
            asked.append(f"--gpus-per-task={plan.gpus}")
        plan.env = {**plan.env, "DTRAIN_SERVERS": str(plan.servers)}
        return [Step(range(plan.members), ["srun", "--label", "--unbuffered", "--input=all", "--kill-on-bad-exit=0",
                                           *asked, *self.options, *agent_command(plan.python, marker)])]
