"""A GradientTape whose gradients are those of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any

from ._reduce import reduction
from ._tensorflow import tf


class DistributedGradientTape:
    """Wraps a tf.GradientTape: gradient() returns the mean (op="avg") of all ranks' gradients. settings: comm, op, wire
    (the type in which gradients travel, for example "bfloat16"), sparse_as_dense, timeout."""

    def __init__(self, tape: Any, **settings: Any) -> None:
        self._tape = tape
        self._reduce = reduction(**settings)

    def __enter__(self) -> "DistributedGradientTape":
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, *arguments: Any, **more: Any) -> Any:
        gradients = self._tape.gradient(target, sources, *arguments, **more)
        return tf.nest.pack_sequence_as(sources, self._reduce(tf.nest.flatten(gradients)))
