"""Gradients that are added up over several backward passes before they are reduced and applied.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
from typing import Any, Callable, List, Optional, Sequence

from ...tensorflow._tensorflow import as_written, raw, tf
from ._reduction import LocalVariables, Reduction


class LocalGradientAggregation:
    """counter: passes since the last step."""

    def __init__(self, reduction: Reduction, passes: int, average: bool, local: LocalVariables) -> None:
        self._reduction, self._passes, self._average, self._local = reduction, passes, average, local
        with tf.init_scope():
            self.counter = tf.Variable(0, trainable=False, dtype=tf.int32)
        self._sums: List[Any] = []

    def _add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        dense = []
        for gradient in gradients:
            if isinstance(gradient, tf.IndexedSlices):
                if not self._reduction.sparse_as_dense:
                    raise ValueError("IndexedSlices are not supported when `backward_passes_per_step` > 1 and "
                                     "`sparse_as_dense` is False.")
                gradient = tf.convert_to_tensor(gradient)
            dense.append(gradient)
        if not self._sums:
            with tf.init_scope():
                self._sums = [None if gradient is None else tf.Variable(
                    tf.zeros(raw(variable).shape, gradient.dtype), trainable=False)
                    for gradient, variable in zip(dense, variables)]
        if len(self._sums) != len(dense) or any((one is None) != (total is None)
                                                for one, total in zip(dense, self._sums)):
            raise ValueError("backward_passes_per_step: each pass must give gradients of the same variables")
        for gradient, total in zip(dense, self._sums):
            if total is not None:
                total.assign_add(gradient)
        self.counter.assign_add(1)
        return [None if total is None else total.read_value() for total in self._sums]

    @as_written
    def compute_gradients(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """The sums of this rank, and in each last pass those of all ranks."""
        sums = self._add(gradients, variables)
        there = [index for index, one in enumerate(sums) if one is not None]

        def reduce() -> List[Any]:
            found = self._reduction(sums, variables, self._local)
            if self._average:
                found = [None if one is None else one / tf.cast(self._passes, one.dtype) for one in found]
            with tf.control_dependencies([] if tf.executing_eagerly() else [found[index] for index in there]):
                self._clear()
            return [tf.identity(found[index]) for index in there]
        chosen = conditional(tf.equal(self.counter, self._passes), reduce,
                             lambda: [tf.identity(sums[index]) for index in there])
        for index, one in zip(there, chosen):
            sums[index] = one
        return sums

    def _clear(self) -> None:
        self.counter.assign(0)
        for total in self._sums:
            if total is not None:
                total.assign(tf.zeros_like(total))

    @as_written
    def apply_gradients(self, apply: Callable[[], Any], iterations: Optional[Any]) -> Any:
        """Applies what compute_gradients() returned, after each last pass. iterations: counts passes."""
        def applied() -> Any:
            apply()
            return tf.constant(True)

        def counted() -> Any:
            if iterations is not None:
                iterations.assign_add(tf.cast(1, iterations.dtype))
            return tf.constant(False)
        return conditional(tf.equal(self.counter, 0), applied, counted)


def conditional(predicate: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    return tf.nest.flatten(tf.cond(predicate, then, otherwise)) if not tf.executing_eagerly() else (
        tf.nest.flatten(then() if bool(predicate) else otherwise()))
