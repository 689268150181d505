"""What programs in the style of TensorFlow 1 use: optimizers of tf.compat.v1.train, and a hook of sessions.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any

from ...tensorflow._tensorflow import tf
from ._reduction import LocalVariables, Reduction
from .functions import broadcast_global_variables

LegacyOptimizer: Any = tf.compat.v1.train.Optimizer
Hook: Any = tf.compat.v1.train.SessionRunHook


class DistributedLegacyOptimizer(LegacyOptimizer):
    """compute_gradients() returns the mean of all ranks' gradients; everything else is the optimizer's."""

    def __init__(self, optimizer: Any, reduction: Reduction, use_locking: bool) -> None:
        super().__init__(name=reduction.name, use_locking=use_locking)
        self._optimizer, self._reduction = optimizer, reduction
        self._local = LocalVariables()

    def register_local_var(self, var: Any) -> None:
        """The gradients of this variable stay on this rank."""
        self._local.add(var)

    def compute_gradients(self, *arguments: Any, **more: Any) -> Any:
        gradients, variables = zip(*self._optimizer.compute_gradients(*arguments, **more))
        return list(zip(self._reduction(gradients, variables, self._local), variables))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def get_slot(self, *arguments: Any, **more: Any) -> Any:
        return self._optimizer.get_slot(*arguments, **more)

    def get_slot_names(self, *arguments: Any, **more: Any) -> Any:
        return self._optimizer.get_slot_names(*arguments, **more)

    def variables(self, *arguments: Any, **more: Any) -> Any:
        return self._optimizer.variables(*arguments, **more)


class BroadcastGlobalVariablesHook(Hook):
    """Gives all ranks the root's variables when a session begins."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        del device
        self.root_rank = root_rank
        self.bcast_op: Any = None

    def begin(self) -> None:
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self.bcast_op)
