"""Makes groups of the backend when torch.distributed asks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import sys
import weakref
from collections.abc import Mapping
from typing import Any, Optional

from ._forms import Backend, ProcessGroup
from ._job import Job
from ._torch import OLD, initialized

_default: "Optional[weakref.ref[Job]]" = None  #: the job of the default group, if that is ours


def create(options: Any, pg_options: Any = None) -> Any:
    """What torch calls on each rank of a new group. pg_options: options of the library, as of dtrain.Context; only for
    groups that are no part of a group of dtrain."""
    global _default
    rank, size, name, timeout = options.group_rank, options.group_size, options.group_id, options.timeout
    if pg_options is not None and not isinstance(pg_options, Mapping):
        raise TypeError(f"pg_options: a mapping of dtrain's options is needed, not {type(pg_options).__name__}")
    form = Backend if shared() else ProcessGroup
    is_default = not initialized()
    job = None if is_default else job_of_default_group()
    if job is not None and options.global_ranks_in_group:
        return form(job, job.group(options.global_ranks_in_group, name, timeout), timeout, name)
    job = Job(options.store, rank, size, timeout, pg_options or {})
    if is_default:
        _default = weakref.ref(job)
    return form(job, job.world, timeout, name)


def job_of_default_group() -> Optional[Job]:
    job = _default() if _default is not None else None
    return job if job is not None and job.here and not job.context.closed else None


def shared() -> bool:
    """Whether the group that is being made has other backends, too. torch tells the creators of backends no more than
    their own part: what the options have is the same for "dtrain" and "cpu:dtrain,cuda:nccl", and the group that they
    name has no backends yet. So this looks at torch's variable. Without it (in a version that names it differently)
    groups would lack their other backends, and say so by Group._get_backend(); a test makes one."""
    if OLD:
        return False
    frame: Any = sys._getframe(1)
    while frame is not None:
        config: Any = frame.f_locals.get("backend_config")
        if hasattr(config, "get_device_backend_map"):
            return len(set(config.get_device_backend_map().values())) > 1
        frame = frame.f_back
    return False
