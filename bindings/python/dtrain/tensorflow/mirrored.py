"""A strategy of tf.distribute whose replicas are the devices of all ranks of a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
import functools
from array import array
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence

from .._communicator import Communicator
from ._operations import allreduce
from ._tensorflow import tf
from ._world import world
from .strategy import Ranks, number_of, part_of_batches


@functools.lru_cache(maxsize=None)
def extended_class() -> Any:
    """What tf.distribute.MirroredStrategy does within this process is TensorFlow's. Its class has no public name, and
    making a strategy settles TensorFlow's devices: therefore not before one is asked for."""
    mirrored: Any = type(tf.distribute.MirroredStrategy(["/cpu:0"]).extended)

    class Extended(Ranks, mirrored):
        """The replicas of this process. TensorFlow calls these methods. Each reduction is done among the devices first,
        then one op takes the results of a list to all ranks."""

        def __init__(self, strategy: Any, comm: Communicator, devices: Optional[Sequence[str]],
                     cross_device_ops: Any) -> None:
            self._join(comm)
            self._here = False
            super().__init__(strategy, devices, cross_device_ops)

        @contextmanager
        def _of_this_process(self) -> Iterator[None]:
            """Within it TensorFlow counts the replicas of this process alone."""
            self._here = True
            try:
                yield
            finally:
                self._here = False

        @property
        def _num_replicas_in_sync(self) -> int:
            return len(self._devices) * (1 if self._here else self._size)

        def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
            return replica_id_in_sync_group - self._rank * len(self._devices)

        def _get_replica_id_in_sync_group(self, replica_id: int) -> int:
            return replica_id + self._rank * len(self._devices)

        def _across(self, reduce_op: Any, reduced: List[Any], destinations: List[Any]) -> List[Any]:
            """What the devices of this process have, reduced over all ranks, back on the devices."""
            first = [self._container_strategy().experimental_local_results(one)[0] for one in reduced]
            return [self._broadcast_to(one, to) for one, to in
                    zip(allreduce(first, number_of(reduce_op), self._comm), destinations)]

        def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
            with self._of_this_process():
                here = super()._reduce_to(reduce_op, value, destinations, options)
            flat = tf.nest.flatten(here)
            return tf.nest.pack_sequence_as(here, self._across(reduce_op, flat, [destinations] * len(flat)))

        def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> List[Any]:
            with self._of_this_process():
                here = super()._batch_reduce_to(reduce_op, value_destination_pairs, options)
            return self._across(reduce_op, here, [destination for _, destination in value_destination_pairs])

        def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, options: Any) -> Any:
            here = super()._gather_to_implementation(value, destinations, axis, options)
            first = self._container_strategy().experimental_local_results(here)[0]
            return self._broadcast_to(self._gather(first, axis), destinations)

        def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
            with self._of_this_process():
                return super()._experimental_distribute_dataset(part_of_batches(dataset, self._rank, self._size), options)

        def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
            context = tf.distribute.InputContext(self._size, self._rank, self._num_replicas_in_sync)
            return super()._distribute_datasets_from_function(lambda _: dataset_fn(context), options)

        def _experimental_distribute_values_from_function(self, value_fn: Any) -> Any:
            count = self._num_replicas_in_sync
            kind = tf.distribute.experimental.ValueContext
            with self._of_this_process():
                return super()._experimental_distribute_values_from_function(lambda context: value_fn(
                    kind(self._get_replica_id_in_sync_group(context.replica_id_in_sync_group), count)))

    return Extended


class MirroredStrategy(tf.distribute.MirroredStrategy):
    """In place of tf.distribute.MirroredStrategy with more than one process, and of MultiWorkerMirroredStrategy with
    several devices in each:

        strategy = dt.MirroredStrategy()          # all GPUs of this process; or devices=["GPU:0", "GPU:1"]

    The replicas are the devices of all ranks, which have the same number of them; rank 0's come first. Devices of one
    process are reduced by TensorFlow (cross_device_ops as there), and the results over all ranks in one op. Otherwise
    as MultiWorkerMirroredStrategy, whose replicas are the ranks."""

    _dtrain = True  #: for _keras

    def __init__(self, devices: Optional[Sequence[str]] = None, cross_device_ops: Any = None,
                 comm: Optional[Communicator] = None) -> None:
        comm = world(comm)
        extended = extended_class()(self, comm, devices, cross_device_ops)
        tf.distribute.Strategy.__init__(self, extended)  # not MirroredStrategy's: it makes an extended part of its own
        self.comm = comm
        counts = array("i", [0] * comm.size)
        comm.allgather(array("i", [len(extended.worker_devices)]), counts)
        if len(set(counts)) > 1:
            raise ValueError(f"MirroredStrategy: ranks have different numbers of devices: {list(counts)}")
