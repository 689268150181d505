"""A training loop with checkpoints, hooks and restarts, as tf.train.MonitoredTrainingSession ran it.

SPDX-License-Identifier: Apache-2.0
"""
import time
from typing import Any, Iterable, Optional

from .._communicator import Communicator
from .._durations import Duration, exact
from ._operations import broadcast
from ._tensorflow import tf
from ._world import world
from .variables import broadcast_variables


class Hook:
    """What a loop calls. Derive from it, and define what is needed."""

    def begin(self, session: "TrainingSession") -> None:
        """Before the first step, when all ranks have their values."""

    def before_step(self, session: "TrainingSession") -> None:
        """Before each step."""

    def after_step(self, session: "TrainingSession", result: Any) -> None:
        """After each step, with what its function has returned."""

    def end(self, session: "TrainingSession") -> None:
        """After the last step, unless it has failed."""


class StopAtStep(Hook):
    """Ends the loop when so many steps have been made, by this job and those that it goes on from."""

    def __init__(self, last_step: int) -> None:
        self._last_step = last_step

    def begin(self, session: "TrainingSession") -> None:
        if session.step >= self._last_step:
            session.stop()

    def after_step(self, session: "TrainingSession", result: Any) -> None:
        if session.step >= self._last_step:
            session.stop()


class TrainingSession:
    """The loop of a rank:

        with dt.TrainingSession(directory, model=model, optimizer=optimizer, hooks=[dt.StopAtStep(1000)]) as session:
            while not session.should_stop():
                session.run(train_step, next(batches))

    At the beginning rank 0 restores the newest checkpoint of the directory, if there is one, and all other ranks get
    its values: a job that is started again goes on where the last one has saved. Rank 0 saves every so many steps, or
    after some time, and at the end. A step that fails ends the loop without saving.

    directory None: nothing is saved. state: what tf.train.Checkpoint can save: models, optimizers (built ones: call
    build()), variables. A hook, or the program, ends the loop by stop(), on all ranks in the same step."""

    def __init__(self, directory: Optional[str] = None, *, comm: Optional[Communicator] = None,
                 hooks: Iterable[Hook] = (), save_steps: Optional[int] = None,
                 save_time: Optional[Duration] = "10min", keep: int = 5, **state: Any) -> None:
        if save_steps is not None and save_steps < 1:
            raise ValueError(f"save_steps: {save_steps}; it must be at least 1, or None")
        self.comm = world(comm)
        self._hooks = list(hooks)
        self._save_steps = save_steps
        self._save_ns = None if save_time is None else exact(save_time, "save_time")
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._checkpoint = tf.train.Checkpoint(step=self._step, **state)
        self._state = state
        self._manager = None
        if directory is not None:
            self._manager = tf.train.CheckpointManager(self._checkpoint, directory, max_to_keep=keep)
        self._stops = False
        self._saved_step, self._saved_at = -1, time.monotonic_ns()

    @property
    def is_chief(self) -> bool:
        return self.comm.rank == 0

    @property
    def step(self) -> int:
        """How many steps have been made."""
        return int(self._step)

    def stop(self) -> None:
        """Ends the loop after this step. Called on all ranks in the same step, as hooks that count steps do."""
        self._stops = True

    def should_stop(self) -> bool:
        return self._stops

    def run(self, function: Any, *arguments: Any, **more: Any) -> Any:
        """One step: calls the function, and returns its result."""
        for hook in self._hooks:
            hook.before_step(self)
        result = function(*arguments, **more)
        self._step.assign_add(1)
        for hook in self._hooks:
            hook.after_step(self, result)
        self._save_if_due()
        return result

    def save(self) -> None:
        """Saves a checkpoint of this step, on rank 0."""
        if self._manager is not None and self.is_chief and self._saved_step != self.step:
            self._manager.save(checkpoint_number=self.step)
        self._saved_step, self._saved_at = self.step, time.monotonic_ns()

    def _save_if_due(self) -> None:
        since = time.monotonic_ns() - self._saved_at
        if (self._save_steps is not None and self.step % self._save_steps == 0) or (
                self._save_ns is not None and since >= self._save_ns):
            self.save()

    def __enter__(self) -> "TrainingSession":
        newest = self._manager.latest_checkpoint if self._manager is not None and self.is_chief else None
        if newest is not None:
            self._checkpoint.restore(newest).expect_partial()
        restored = int(broadcast(tf.constant(0 if newest is None else 1), 0, self.comm))
        broadcast_variables([self._step, *variables_of(self._state.values())], 0, self.comm)
        self._saved_step = self.step if restored else -1
        for hook in self._hooks:
            hook.begin(self)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            for hook in self._hooks:
                hook.end(self)
            self.save()


def variables_of(things: Iterable[Any]) -> Any:
    """The variables of models, layers and optimizers of Keras, modules, and variables themselves, each once."""
    found = {}
    for thing in things:
        if isinstance(thing, tf.Variable):
            found[id(thing)] = thing
            continue
        own: Any = getattr(thing, "weights", None)
        own = getattr(thing, "variables", ()) if own is None else own
        for variable in own() if callable(own) else own:
            found[id(variable)] = variable
    return found.values()
