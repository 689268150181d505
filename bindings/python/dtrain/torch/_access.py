"""Finds this backend in a process group of torch.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional

from ._operations import Group
from ._torch import dist, torch


def group_of(process_group: Optional[Any]) -> Group:
    """The part of the group (None: the default group) that is dtrain's."""
    group = dist.distributed_c10d._get_default_group() if process_group is None else process_group
    if not isinstance(group, Group) and hasattr(group, "_get_backend"):
        group = group._get_backend(torch.device("cpu"))
    if not isinstance(group, Group):
        raise TypeError(f"process_group: a group of the backend dtrain is needed, not one of {dist.get_backend(process_group)}")
    return group
