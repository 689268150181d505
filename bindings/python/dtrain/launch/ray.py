"""Workers on the nodes of a Ray cluster: an actor for each starts an agent, and passes its bytes on.

SPDX-License-Identifier: Apache-2.0
"""
import os
import select
from typing import Any, Dict, List, Optional

from .._optional import need
from . import _backend
from ._carrier import Carrier, Relay, agent_command
from ._errors import HostError, LaunchError
from ._plan import Plan
from ._relay import Child, closed, write_all

EXCHANGE = 0.2  #: seconds that an actor waits for output


class Node:
    """The actor."""

    def __init__(self, python: str, marker: str) -> None:
        address = need("ray", "dtrain.launch").util.get_node_ip_address()
        self._child = Child(agent_command(python, marker, "--address", address))

    def exchange(self, data: Optional[bytes]) -> Optional[bytes]:
        return self._child.exchange(data, EXCHANGE)


class Backend(_backend.Backend):
    """address: of the cluster (ray.init()); options: more of Ray's actor options, such as
    {"scheduling_strategy": "SPREAD"}."""
    name = "ray"
    instead_of_elastic = "use dtrain.ray.Executor(min_workers=..., max_workers=...)"
    start_timeout = None  # actors wait for resources

    def __init__(self, address: Optional[str] = None, options: Optional[Dict[str, Any]] = None) -> None:
        self.address = address
        self.options = options or {}

    def check(self, plan: Plan) -> None:
        self.ray = need("ray", "backend \"ray\" of dtrain.launch")
        if not self.ray.is_initialized():
            self.ray.init(self.address)
        plan.cwd = plan.cwd or os.getcwd()

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        needs: Dict[str, Any] = {"num_cpus": plan.cpu or 1, "num_gpus": plan.gpus, "max_restarts": 0, **self.options}
        if plan.memory is not None:
            needs["memory"] = plan.memory
        node = self.ray.remote(Node).options(**needs)
        return [Relay([index], lambda left_in, left_out: self.relay(node.remote(plan.python, marker), left_in, left_out))
                for index in range(plan.members)]

    def relay(self, actor: Any, left_in: int, left_out: int) -> None:
        """Between the job's pipes and an actor, until its agent or the job's end has come."""
        data: Optional[bytes] = b""
        ended = False
        try:
            while True:
                answer = self.wait(actor.exchange.remote(data), left_in)
                if answer is None:
                    return
                write_all(left_out, answer)
                data = b""
                if not ended and select.select([left_in], [], [], 0)[0]:
                    data = os.read(left_in, 1 << 20) or None
                    ended = data is None
        except self.ray.exceptions.RayActorError as error:
            raise HostError(f"its Ray actor has died: {str(error).strip().splitlines()[0]}") from error
        except self.ray.exceptions.RayError as error:
            raise LaunchError(f"its Ray actor failed: {error}") from error
        finally:
            self.ray.kill(actor)

    def wait(self, reference: Any, left_in: int) -> Optional[bytes]:
        """An actor that has no resources yet answers late; then the job may end before."""
        while True:
            ready, _ = self.ray.wait([reference], timeout=1.0)
            if ready:
                answer: Optional[bytes] = self.ray.get(reference)
                return answer
            if closed(left_in):
                raise LaunchError("stopped before Ray had resources for it")
