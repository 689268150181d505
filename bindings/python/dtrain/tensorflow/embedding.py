"""A layer whose rows live on the servers of a job.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="misc,no-any-return"
from typing import Any, Optional

from .._communicator import Communicator
from . import tables
from ._tensorflow import keras, tf
from ._world import world


class Embedding(keras.layers.Layer):
    """keras.layers.Embedding, with its rows in a sparse table. A step pulls the rows of a batch, and its backward pass
    pushes their gradients to the table's rule (sgd, unless another one is given), so a table may have more rows than a
    worker has memory for.

    name: that of the table and the layer. input_dim None: ids are any 64-bit numbers, for example hashes, and rows are
    made when they are first pushed. gradient_scale multiplies what is pushed: 1 / workers for the mean of their
    gradients instead of the sum. settings: those of tables (rule, learning_rate, consistency, spread, seed ...;
    docs/PARAMETER_SERVER.md). Made on all ranks in the same order."""

    def __init__(self, input_dim: Optional[int], output_dim: int, *, name: str, comm: Optional[Communicator] = None,
                 gradient_scale: float = 1.0, **settings: Any) -> None:
        if input_dim is not None and input_dim < 1:
            raise ValueError(f"Embedding {name!r}: input_dim is {input_dim}; it must be at least 1, or None")
        super().__init__(name=name)
        self.supports_jit = False
        self.input_dim, self.output_dim, self.gradient_scale = input_dim, output_dim, gradient_scale
        settings.setdefault("rule", "sgd")
        self._comm = world(comm)
        self.table = self._comm.table(name, dim=output_dim, **settings)
        self.anchor = self.add_weight(name="anchor", shape=(), initializer="zeros")

    def call(self, inputs: Any, training: Any = None) -> Any:
        ids = tf.cast(inputs, tf.int64)
        if self.input_dim is not None:
            checks = [tf.debugging.assert_non_negative(ids, f"Embedding {self.name}: ids"),
                      tf.debugging.assert_less(ids, tf.constant(self.input_dim, tf.int64),
                                               f"Embedding {self.name}: ids are below {self.input_dim}")]
            with tf.control_dependencies([check for check in checks if check is not None]):
                ids = tf.identity(ids)
        return tables.lookup(self.table, ids, self.anchor, scale=self.gradient_scale)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape, self.output_dim)

    def compute_output_spec(self, inputs: Any, training: Any = None) -> Any:
        return keras.KerasTensor((*inputs.shape, self.output_dim), dtype=self.compute_dtype)

    def clock(self) -> None:
        """Ends this worker's clock (BSP, SSP, QUORUM): its gradients so far belong to it."""
        self.table.clock()
