"""A strategy of tf.distribute whose replicas are the ranks of a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, List, Optional

from .._communicator import Communicator
from .._constants import AVG, SUM
from . import _keras
from ._operations import allgather, allreduce, broadcast
from ._tensorflow import tf
from ._world import world

DEVICE = "/cpu:0"
#: What the strategies of one device do, except for what concerns other replicas.
OneDevice: Any = type(tf.distribute.OneDeviceStrategy(DEVICE).extended)


def number_of(reduce_op: Any) -> int:
    """tf.distribute.ReduceOp, or its name."""
    return AVG if str(getattr(reduce_op, "value", reduce_op)).lower() == "mean" else SUM


class Extended(OneDevice):
    """This rank's replica. TensorFlow calls these methods; reductions of a list are one op."""

    def __init__(self, strategy: Any, comm: Communicator) -> None:
        super().__init__(strategy, DEVICE)
        self._comm = comm
        self._rank, self._size = comm.rank, comm.size

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return allreduce(value, number_of(reduce_op), self._comm)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> List[Any]:
        return allreduce([value for value, _ in value_destination_pairs], number_of(reduce_op), self._comm)

    def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, options: Any) -> Any:
        value = tf.convert_to_tensor(value)
        if axis == 0:
            return allgather(value, self._comm)
        order = [axis, *(number for number in range(value.shape.rank) if number != axis)]
        gathered = allgather(tf.transpose(value, order), self._comm)
        return tf.transpose(gathered, tf.math.invert_permutation(order))

    def _create_variable(self, next_creator: Any, **settings: Any) -> Any:
        """A variable begins with rank 0's value."""
        variable = super()._create_variable(next_creator, **settings)
        with tf.init_scope():
            if tf.executing_eagerly() and variable.dtype != tf.string and self._size > 1:
                variable.assign(broadcast(variable.read_value(), 0, self._comm))
        return variable

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        with tf.device(DEVICE), tf.distribute.ReplicaContext(self._container_strategy(), self._rank):
            return fn(*args, **kwargs)

    def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
        return 0

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        return super()._experimental_distribute_dataset(part_of_batches(dataset, self._rank, self._size), options)

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        dataset = dataset_fn(tf.distribute.InputContext(self._size, self._rank, self._size))
        return super()._experimental_distribute_dataset(dataset, options)

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._size

    @property
    def should_checkpoint(self) -> bool:
        return self._rank == 0

    @property
    def should_save_summary(self) -> bool:
        return self._rank == 0


def part_of_batches(dataset: Any, rank: int, size: int) -> Any:
    """This rank's rows of each batch. A batch with fewer rows than ranks is left out, as some rank would have none.
    Datasets with the option of AutoShardPolicy.OFF are ranks' own, and stay as they are."""
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if size == 1 or policy == tf.data.experimental.AutoShardPolicy.OFF:
        return dataset

    def rows_of(batch: Any) -> Any:
        return tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]

    def part(*batch: Any) -> Any:
        rows = rows_of(batch)
        begin, end = rows * rank // size, rows * (rank + 1) // size
        parts = tf.nest.map_structure(lambda tensor: tensor[begin:end], batch)
        return parts if len(parts) > 1 else parts[0]
    return dataset.filter(lambda *batch: rows_of(batch) >= size).map(part, tf.data.AUTOTUNE)


class MultiWorkerMirroredStrategy(tf.distribute.Strategy):
    """In place of tf.distribute.MultiWorkerMirroredStrategy, for a job of TF_CONFIG, dtrain-run, torchrun, mpirun, ...:

        strategy = dt.MultiWorkerMirroredStrategy()
        with strategy.scope():
            model = ...
            model.compile(...)
        model.fit(dataset)        # batches are those of all ranks together

    Each rank is a replica. Variables made in the scope begin with rank 0's values; gradients are added up in one op.
    fit(), run(), reduce(), gather(), and all_reduce() in replica context work, and datasets are divided: each rank has
    its part of each batch. Metrics are those of the rank (AverageMetrics averages them)."""

    _dtrain = True  #: for _keras: its functions have ops that XLA cannot compile

    def __init__(self, comm: Optional[Communicator] = None) -> None:
        comm = world(comm)
        super().__init__(Extended(self, comm))
        self.comm = comm
        _keras.install()

    @property
    def cluster_resolver(self) -> Any:
        return None
