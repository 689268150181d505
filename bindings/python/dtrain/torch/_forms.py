"""The two forms of the backend. A ProcessGroup is a whole group: the quicker form, and the only one before torch 2.0.
A Backend serves the CPU in a group that another backend shares ("cpu:dtrain,cuda:nccl").

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from datetime import timedelta
from typing import Any, Set

from .._communicator import Communicator
from .._torch_backend import NAME
from ._job import Job
from ._messages import Messages
from ._torch import OLD, c10d, dist, torch


class ProcessGroup(Messages, c10d.ProcessGroup):  # type: ignore[misc]
    def __init__(self, job: Job, comm: Communicator, timeout: timedelta, name: str) -> None:
        c10d.ProcessGroup.__init__(self, comm.rank, comm.size)
        self._open(job, comm, timeout)
        self._name = name
        self._description = "undefined"

    def getBackendName(self) -> str:  # pylint: disable=invalid-name
        return NAME

    _get_backend_name = name = getBackendName

    # What newer versions of torch ask for in a group of a single backend:
    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    @property
    def _device_types(self) -> Any:
        """None while torch makes the group: it would record the calls of groups with devices by their backends in C++,
        which this one has not."""
        return [torch.device("cpu")] if self in dist.distributed_c10d._world.pg_map else []

    def _get_backend(self, device: Any) -> Any:
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"this group of dtrain has no backend for device {device}, only for the CPU; for both: "
                               'init_process_group("cpu:dtrain,cuda:nccl")')
        return self


#: Groups that torch wraps in another (TORCH_DISTRIBUTED_DEBUG=DETAIL). It keeps only their half that is in C++.
_wrapped: Set[Any] = set()

if OLD:
    Backend: Any = None
else:
    class Backend(Messages, c10d.Backend):  # type: ignore[misc,no-redef]
        def __init__(self, job: Job, comm: Communicator, timeout: timedelta, name: str) -> None:
            c10d.Backend.__init__(self, comm.rank, comm.size)
            self._open(job, comm, timeout)
            self._name = name
            if dist.get_debug_level() == dist.DebugLevel.DETAIL:
                _wrapped.add(self)

        def shutdown(self) -> None:
            _wrapped.discard(self)
            super().shutdown()

        def getBackendName(self) -> str:  # pylint: disable=invalid-name
            return NAME
