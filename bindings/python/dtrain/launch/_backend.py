"""What a backend is: it knows where agents can run, and how to reach them. Each is a file, and a line of BACKENDS.

SPDX-License-Identifier: Apache-2.0
"""
import difflib
import importlib
import inspect
import sys
from typing import Any, Dict, List, Optional, Sequence, Union

from .._errors import InvalidError
from ._carrier import Carrier
from ._errors import BackendError
from ._hosts import Host
from ._plan import Plan

BACKENDS = {  # name: the module with its class Backend
    "local": "dtrain.launch.local",
    "ssh": "dtrain.launch.ssh",
    "slurm": "dtrain.launch.slurm",
    "kubernetes": "dtrain.launch.kubernetes",
    "ray": "dtrain.launch.ray",
    "spark": "dtrain.launch.spark",
}


class Backend:
    """One job's way to its workers. A backend's settings are the arguments of its __init__()."""

    name = ""
    python = sys.executable  #: the interpreter there
    #: Where rank 0 listens: an address; "": all of its host's. None: ranks find each other by the engine's own
    #: variables, and agents know by `index_from` which one they are.
    listens: Optional[str] = ""
    index_from: Optional[str] = None
    start_timeout: Optional[float] = 60.0  #: seconds until a worker must have started; None: as long as the engine takes
    patience: Optional[float] = None  #: seconds after which agents that hear nothing of the launcher end
    at_once = 16  #: carriers of one lane that start at the same time
    elastic = False  #: workers can be added while the job runs: slots(), carrier()
    instead_of_elastic = ""  #: what to use instead

    def check(self, plan: Plan) -> None:
        """Refuses what cannot work, before anything starts."""

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        """One or several, for all members of the job; not opened yet."""
        raise NotImplementedError

    def slots(self, workers: int) -> List[Host]:
        """Elastic: the hosts of which the backend knows, with their slots, for a job of so many workers."""
        raise NotImplementedError

    def use(self, hosts: Sequence[Host]) -> None:
        """Elastic: these hosts are there now, says discovery; an error if they cannot be the backend's. The first call
        comes before check(), later ones in another thread."""

    def carrier(self, plan: Plan, index: int, host: str, marker: str) -> Carrier:
        """Elastic: one for a newcomer on this host."""
        raise NotImplementedError

    def check_elastic(self) -> None:
        if not self.elastic:
            raise BackendError(f"elastic: backend \"{self.name}\" cannot add workers to a job; {self.instead_of_elastic}")

    def place(self, index: int) -> Optional[str]:
        """The host of a process, if the backend chooses it; else it is what its agent says."""
        return None

    def meet(self, reported: str) -> str:
        """The address of rank 0's host, from what its agent reports."""
        return reported

    def lost(self, pid: int) -> None:
        """The agent of the worker with this process id has ended before it."""

    def stopped(self) -> None:
        """The job has ended: removes what the backend has made."""


def find_backend(backend: Union[str, Backend], settings: Dict[str, Any]) -> Backend:
    """By its name, with its settings; or one that is given."""
    if isinstance(backend, Backend):
        if settings:
            raise InvalidError(f"{', '.join(settings)}: settings of a backend that is given as an object belong to it")
        return backend
    if backend not in BACKENDS:
        near = difflib.get_close_matches(str(backend), BACKENDS, 1)
        hint = f" (\"{near[0]}\"?)" if near else ""
        raise InvalidError(f"backend: {backend!r}{hint} is none of {', '.join(BACKENDS)}")
    kind = importlib.import_module(BACKENDS[backend]).Backend
    known = [name for name in inspect.signature(kind).parameters]
    strange = [name for name in settings if name not in known]
    if strange:
        has = f"its settings are {', '.join(known)}" if known else "it has no settings"
        raise InvalidError(f"{strange[0]}: backend \"{backend}\" has no such setting; {has}")
    made = kind(**settings)
    assert isinstance(made, Backend)
    return made
