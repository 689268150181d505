"""Datasets of a rank.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional

from .._communicator import Communicator
from ._world import world


def shard(dataset: Any, comm: Optional[Communicator] = None) -> Any:
    """This rank's share of a tf.data.Dataset: every size-th element, from element `rank` on. Ranks with as many elements
    as the others can train together, so what is left over of the last round is dropped (if the number is known). Shard
    before shuffling and batching; files are sharded by tf.data.Dataset.list_files(..., shuffle=False) first."""
    comm = world(comm)
    count = int(dataset.cardinality())
    if count >= 0:
        dataset = dataset.take(count // comm.size * comm.size)
    return dataset.shard(comm.size, comm.rank)
