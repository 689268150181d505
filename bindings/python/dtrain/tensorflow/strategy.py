"""A strategy of tf.distribute whose replicas are the ranks of a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
import functools
from typing import Any, List, Optional

from .._communicator import Communicator
from .._constants import AVG, SUM
from ._operations import allgather, allreduce, broadcast
from ._tensorflow import tf
from ._world import world

DEVICE = "/cpu:0"


def number_of(reduce_op: Any) -> int:
    """tf.distribute.ReduceOp, or its name."""
    return AVG if str(getattr(reduce_op, "value", reduce_op)).lower() == "mean" else SUM


class Ranks:
    """What the extended parts of both strategies have in common: variables begin with rank 0's values, rank 0 saves, and
    results of this process go through an op of all ranks."""
    _comm: Communicator
    _rank: int
    _size: int

    def _join(self, comm: Communicator) -> None:
        self._comm, self._rank, self._size = comm, comm.rank, comm.size

    def _gather(self, value: Any, axis: int) -> Any:
        value = tf.convert_to_tensor(value)
        if axis == 0:
            return allgather(value, self._comm)
        order = [axis, *(number for number in range(value.shape.rank) if number != axis)]
        gathered = allgather(tf.transpose(value, order), self._comm)
        return tf.transpose(gathered, tf.math.invert_permutation(order))

    def _create_variable(self, next_creator: Any, **settings: Any) -> Any:
        variable = super()._create_variable(next_creator, **settings)
        with tf.init_scope():
            if tf.executing_eagerly() and variable.dtype != tf.string and self._size > 1:
                variable.assign(broadcast(variable.read_value(), 0, self._comm))
        return variable

    @property
    def should_checkpoint(self) -> bool:
        return self._rank == 0

    @property
    def should_save_summary(self) -> bool:
        return self._rank == 0


@functools.lru_cache(maxsize=None)
def extended_class() -> Any:
    """What strategies of one device do, but for what concerns other replicas, is TensorFlow's. Its class has no public
    name, and making a strategy settles TensorFlow's devices: therefore not before one is asked for."""
    one_device: Any = type(tf.distribute.OneDeviceStrategy(DEVICE).extended)

    class Extended(Ranks, one_device):
        """This rank's replica. TensorFlow calls these methods; reductions of a list are one op."""

        def __init__(self, strategy: Any, comm: Communicator) -> None:
            super().__init__(strategy, DEVICE)
            self._join(comm)

        def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
            return allreduce(value, number_of(reduce_op), self._comm)

        def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> List[Any]:
            return allreduce([value for value, _ in value_destination_pairs], number_of(reduce_op), self._comm)

        def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, options: Any) -> Any:
            return self._gather(value, axis)

        def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
            with tf.device(DEVICE), tf.distribute.ReplicaContext(self._container_strategy(), self._rank):
                return fn(*args, **kwargs)

        def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
            return 0

        # Datasets stay datasets, as without a strategy: TensorFlow's iterator for several devices, which strategies
        # otherwise have, is destroyed now and then while its thread reads (TensorFlow 2.21, a segmentation fault).
        def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
            return part_of_batches(dataset, self._rank, self._size).prefetch(tf.data.AUTOTUNE)

        def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
            return dataset_fn(tf.distribute.InputContext(self._size, self._rank, self._size))

        @property
        def _num_replicas_in_sync(self) -> int:
            return self._size

    return Extended


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
        super().__init__(extended_class()(self, comm))
        self.comm = comm

    @property
    def cluster_resolver(self) -> Any:
        return None
