"""Horovod's API over dtrain: what was written for Horovod 0.28 runs by the change of an import (docs/HOROVOD.md):

    import dtrain.horovod.torch as hvd

Nothing of a framework is imported before one of its packages is.
SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable, List, Mapping, Optional, Sequence

__all__ = ["run"]


def run(func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None,
        num_proc: int = 1, **settings: Any) -> List[Any]:
    """Calls func(*args, **kwargs) in num_proc processes, which call hvd.init(), and returns what it returns, by rank.

    hosts: "alpha:2,beta:2", or hostfile: lines of "alpha slots=2"; without either, this machine. Others are reached by
    ssh (ssh_port, ssh_identity_file). min_num_proc, max_num_proc, host_discovery_script: an elastic job
    (docs/ELASTIC.md). start_timeout: seconds until all have joined. output_filename: a folder for what they write.
    network_interfaces, executable: as in Horovod, whose other arguments have no effect."""
    from ._run import run as start  # pylint: disable=import-outside-toplevel
    return start(func, args, kwargs, num_proc, **settings)
