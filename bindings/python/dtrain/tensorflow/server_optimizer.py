"""An optimizer whose variables' values, state and updates live on the servers of a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, Dict, List, Optional

from .._communicator import Communicator
from .._constants import Consistency
from .._durations import Duration
from .._names import find
from .._table import Table
from ._library import name_of, ops
from ._operations import run
from ._tensorflow import KERAS3, keras, raw, tf
from ._world import world

#: Modes in which workers go in step, so that their gradients are averaged.
IN_STEP = (Consistency.BSP, Consistency.QUORUM)
DTYPES = {"float32": "f32", "float64": "f64"}


class ServerOptimizer(keras.optimizers.Optimizer):
    """For models of Keras whose trainable variables are tables: a step pushes all gradients and pulls the new values,
    in one op. All workers make it with the same settings, and go on with rank 0's initial values.

    consistency: "async" (the parameter server of TensorFlow), "bsp" (synchronous replicas), "ssp" with staleness, or
    "quorum" with quorum=K: a step is over when K workers have ended it, and gradients that come later are dropped and
    counted, as by tf.train.SyncReplicasOptimizer. place: "together" (all variables in one table, divided evenly), or
    "round_robin" or "greedy": each variable on one server, as by tf.train.replica_device_setter. settings: those of
    tables (rule, learning_rate, momentum, schedule, ...; docs/PARAMETER_SERVER.md)."""

    def __init__(self, rule: str = "sgd", learning_rate: float = 0.01, *, name: str = "variables",
                 comm: Optional[Communicator] = None, consistency: Any = "async", place: str = "together",
                 timeout: Optional[Duration] = None, **settings: Any) -> None:
        if place not in ("together", "round_robin", "greedy"):
            raise ValueError(f"place: {place!r}; it is one of together, round_robin, greedy")
        super().__init__(learning_rate=learning_rate, name=name) if KERAS3 else super().__init__(name=name)
        mode = find(Consistency, consistency, "consistency")
        self._settings: Dict[str, Any] = {**settings, "rule": rule, "learning_rate": learning_rate, "consistency": mode}
        if mode in IN_STEP:
            self._settings.setdefault("aggregate", "avg")
        if place != "together":
            self._settings["placement"] = place
        self._place, self._timeout, self._table_name, self._comm = place, timeout, name, world(comm)
        self.tables: List[Table] = []  #: for checkpoints (dtrain.save_checkpoint)
        self._members: List[List[Any]] = []
        self._dropped = 0
        if not KERAS3:
            self._learning_rate = self._build_learning_rate(learning_rate)

    def build(self, variables: Any) -> None:
        if self.tables:
            return
        targets = [raw(variable) for variable in variables]
        super().build(variables)
        for target in targets:
            if target.dtype.name not in DTYPES:
                raise TypeError(f"ServerOptimizer: {target.name} is {target.dtype.name}; float32 or float64 is needed")
        kinds = sorted({target.dtype.name for target in targets})
        if self._place == "together":
            self._members = [[target for target in targets if target.dtype.name == kind] for kind in kinds]
        else:
            self._members = [[target] for kind in kinds for target in targets if target.dtype.name == kind]
        with tf.init_scope():
            self._make_tables()

    def _make_tables(self) -> None:
        for number, members in enumerate(self._members):
            table = self._comm.table(f"{self._table_name}.{number}", dtype=DTYPES[members[0].dtype.name],
                                     length=table_length(members), **self._settings)
            self.tables.append(table)
            if self._comm.rank == 0 and table.restored is None:
                table.set(tf.concat([tf.reshape(target.read_value(), [-1]) for target in members], 0).numpy())
            if self._comm.rank == 0:
                table.set_ready()
            table.wait_ready()
        self.pull()

    def pull(self) -> None:
        """Reads the servers' values into the variables, for example after a checkpoint was restored."""
        for table, members in zip(self.tables, self._members):
            values = tf.zeros([table_length(members)], members[0].dtype).numpy()
            table.pull(values)
            parts = tf.split(values, [int(target.shape.num_elements()) for target in members])
            for target, part in zip(members, parts):
                target.assign(tf.reshape(part, target.shape))

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        if trainable_variables is not None and not self.tables:
            self.build(list(trainable_variables))
            self.built = True
        variables = self._trainable_variables if trainable_variables is None else trainable_variables
        self._step(dict(zip((id(raw(variable)) for variable in variables), grads)))
        (self._iterations if KERAS3 else self.iterations).assign_add(1)

    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **more: Any) -> Any:
        grads, variables = zip(*grads_and_vars)
        self.apply(list(grads), list(variables))
        return None if KERAS3 else self.iterations

    def _step(self, gradients: Dict[int, Any]) -> None:
        """A variable without a gradient counts as one with zeros."""
        by_type: Dict[Any, List[int]] = {}
        for number, members in enumerate(self._members):
            by_type.setdefault(members[0].dtype, []).append(number)
        for numbers in by_type.values():
            targets = [target for number in numbers for target in self._members[number]]
            pushed = []
            for target in targets:
                gradient = gradients.get(id(target))
                pushed.append(tf.zeros_like(target) if gradient is None else tf.convert_to_tensor(gradient))
            values = run(ops.dtrain_step, pushed, thing=self.tables[numbers[0]], timeout=self._timeout,
                         tables=[name_of(self.tables[number]) for number in numbers],
                         members=[len(self._members[number]) for number in numbers])
            for target, value in zip(targets, values):
                target.assign(value)

    def update_step(self, *_: Any) -> None:
        raise NotImplementedError("ServerOptimizer: the servers update the variables")

    @property
    def learning_rate(self) -> Any:
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        """As callbacks of Keras do it, on all workers; rank 0 tells the servers."""
        self._learning_rate.assign(rate)
        if self._comm.rank == 0:
            for table in self.tables:
                table.set_rate(float(rate))

    @property
    def updates(self) -> int:
        """How many updates the servers have made of the variables: with bsp and quorum, the steps of all workers
        together."""
        one = tf.zeros([1], self._members[0][0].dtype).numpy()
        return int(self.tables[0].pull(one).version)

    def stop_at(self, updates: int) -> Any:
        """A callback that ends fit() once the servers have made so many updates. With "quorum" all workers end by it,
        and none by the end of its data: a worker that goes on alone would wait for others to make a step with it.
        Then place is "together", on one server: of several tables, or parts of one, some may be a step behind when the
        others stop, and a worker that goes on for these waits until the timeout."""
        return StopAtUpdate(self, updates)

    def leave(self) -> None:
        """This worker makes no more steps, and the others do not wait for it: for one whose data have ended while the
        process goes on. (A process that ends leaves by itself.) The variables keep their values; steps and pull() are
        errors afterwards."""
        self._dropped = self.dropped()
        for table in self.tables:
            table.close()

    def dropped(self) -> int:
        """Requests of this worker that came after their step was over (quorum)."""
        open_tables = [table for table in self.tables if not table.closed]
        return sum(int(table.stats()["stale"]) for table in open_tables) if open_tables else self._dropped


class StopAtUpdate(keras.callbacks.Callback):
    def __init__(self, optimizer: ServerOptimizer, updates: int) -> None:
        super().__init__()
        self._optimizer, self._updates = optimizer, updates

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._optimizer.updates >= self._updates:
            self.model.stop_training = True


def table_length(members: List[Any]) -> int:
    return sum(int(target.shape.num_elements()) for target in members)
