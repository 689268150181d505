"""Datasets of a rank.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional, Sequence

from .._communicator import Communicator
from ._tensorflow import tf
from ._world import world


def shard(dataset: Any, comm: Optional[Communicator] = None) -> Any:
    """This rank's share of a tf.data.Dataset: every size-th element, from element `rank` on. Ranks with as many
    elements as the others can train together, so what is left over of the last round is dropped (if the number is
    known). Shard before shuffling and batching."""
    comm = world(comm)
    count = int(dataset.cardinality())
    if count >= 0:
        dataset = dataset.take(count // comm.size * comm.size)
    return dataset.shard(comm.size, comm.rank)


def records(paths: Sequence[Any], comm: Optional[Communicator] = None, **settings: Any) -> Any:
    """A tf.data.TFRecordDataset of this rank's records: with at least as many files as ranks, whole files (file i goes
    to rank i % size), else every size-th record of all of them, as by dtrain.RecordReader. Give all ranks the same
    paths in the same order. settings: those of TFRecordDataset (compression_type, buffer_size, num_parallel_reads).
    Ranks may get different numbers of records: repeat(), and fit(steps_per_epoch=...)."""
    comm, names = world(comm), [str(path) for path in paths]
    if not names:
        raise ValueError("records: there are no files")
    if len(names) >= comm.size:
        return tf.data.TFRecordDataset(names[comm.rank::comm.size], **settings)
    return tf.data.TFRecordDataset(names, **settings).shard(comm.size, comm.rank)
