"""Finds this backend in a process group of torch.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Iterator, Optional

from ._operations import Group
from ._torch import dist, torch


def parts_of(group: Any) -> Iterator[Any]:
    """Its backends, as far as there are devices that they may be for."""
    for device in ("cpu", "cuda"):
        try:
            yield group._get_backend(torch.device(device))
        except RuntimeError:  # none is
            pass


def group_of(process_group: Optional[Any]) -> Group:
    """The part of the group (None: the default group) that is dtrain's."""
    group = dist.distributed_c10d._get_default_group() if process_group is None else process_group
    if not isinstance(group, Group) and hasattr(group, "_get_backend"):
        group = next((part for part in parts_of(group) if isinstance(part, Group)), group)
    if not isinstance(group, Group):
        raise TypeError(f"process_group: a group of the backend dtrain is needed, not one of {dist.get_backend(process_group)}")
    return group
