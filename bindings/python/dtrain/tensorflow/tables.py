"""Tables of the parameter server as ops. A table is made by Communicator.table() (docs/PARAMETER_SERVER.md).

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
from typing import Any, Optional, Sequence

from .._constants import DType
from .._durations import Duration
from .._table import Table
from ._library import ops
from ._operations import run, set_shape
from ._tensorflow import as_written, tf

#: TensorFlow's types of the values of tables.
TYPES = {DType.F32: tf.float32, DType.F64: tf.float64, DType.F16: tf.float16, DType.BF16: tf.bfloat16,
         DType.I8: tf.int8, DType.U8: tf.uint8, DType.I16: tf.int16, DType.U16: tf.uint16, DType.I32: tf.int32,
         DType.U32: tf.uint32, DType.I64: tf.int64, DType.U64: tf.uint64}


def keys_of(ids: Any) -> Any:
    """Keys are 64-bit integers; unsigned ones keep their bits."""
    ids = tf.convert_to_tensor(ids)
    return tf.bitcast(ids, tf.int64) if ids.dtype == tf.uint64 else tf.cast(ids, tf.int64)


def values_of(table: Table, values: Any) -> Any:
    return tf.convert_to_tensor(values, None if tf.is_tensor(values) else TYPES[table.dtype])


@as_written
def push(table: Table, values: Any, first: int = 0, *, timeout: Optional[Duration] = None) -> Any:
    """Pushes values to the table's rule, from element `first` on."""
    return run(ops.dtrain_push, values_of(table, values), thing=table, timeout=timeout, first=first)


@as_written
def pull(table: Table, shape: Sequence[int], first: int = 0, *, timeout: Optional[Duration] = None) -> Any:
    """Values from element `first` on, as many as the shape has elements."""
    shape = [int(size) for size in shape]
    pulled = run(ops.dtrain_pull, thing=table, timeout=timeout, first=first, shape=shape, T=TYPES[table.dtype])
    set_shape(pulled, list(shape))
    return pulled


@as_written
def push_pull(table: Table, values: Any, first: int = 0, *, timeout: Optional[Duration] = None) -> Any:
    """Pushes values, and returns what the table then has there. Under BSP this also ends the worker's clock."""
    return run(ops.dtrain_push_pull, values_of(table, values), thing=table, timeout=timeout, first=first)


@as_written
def assign(table: Table, values: Any, first: int = 0, *, timeout: Optional[Duration] = None) -> Any:
    """Overwrites values, whatever the rule and the clock."""
    return run(ops.dtrain_set, values_of(table, values), thing=table, timeout=timeout, first=first)


@as_written
def push_rows(table: Table, ids: Any, values: Any, *, timeout: Optional[Duration] = None) -> Any:
    """Pushes a row for each id to the rule of a sparse table; repeated ids add up."""
    return run(ops.dtrain_push_rows, keys_of(ids), values_of(table, values), thing=table, timeout=timeout)


@as_written
def pull_rows(table: Table, ids: Any, *, timeout: Optional[Duration] = None) -> Any:
    """The rows of ids, of any shape, to which a dimension is added."""
    keys = keys_of(ids)
    pulled = run(ops.dtrain_pull_rows, keys, thing=table, timeout=timeout, T=TYPES[table.dtype])
    if keys.shape.rank is not None:
        set_shape(pulled, [*keys.shape, table.width])
    return pulled


@as_written
def push_pull_rows(table: Table, ids: Any, values: Any, *, timeout: Optional[Duration] = None) -> Any:
    """Pushes rows, and returns what the table then has there. Under BSP this also ends the worker's clock."""
    values = values_of(table, values)
    pulled = run(ops.dtrain_push_pull_rows, keys_of(ids), values, thing=table, timeout=timeout)
    set_shape(pulled, values.shape)
    return pulled


@as_written
def assign_rows(table: Table, ids: Any, values: Any, *, timeout: Optional[Duration] = None) -> Any:
    """Overwrites rows, whatever the rule and the clock."""
    return run(ops.dtrain_set_rows, keys_of(ids), values_of(table, values), thing=table, timeout=timeout)


@as_written
def clock(table: Table, *, timeout: Optional[Duration] = None) -> Any:
    """Ends this worker's clock (BSP, SSP, QUORUM)."""
    return run(ops.dtrain_clock, thing=table, timeout=timeout)


@as_written
def lookup(table: Table, ids: Any, anchor: Any, *, scale: float = 1.0, timeout: Optional[Duration] = None) -> Any:
    """As pull_rows(), for training: the gradients of the rows, times scale, are pushed to the table in the backward
    pass, so no optimizer of the program sees them. anchor: a variable, or a tensor that a tape watches, of any shape;
    it makes the rows a part of what gradients are computed of, and its own gradient is zero."""
    keys = keys_of(ids)

    @tf.custom_gradient
    def rows(anchored: Any) -> Any:
        def pushed(gradient: Any) -> Any:
            scaled = gradient if scale == 1.0 else gradient * tf.cast(scale, gradient.dtype)
            push_rows(table, keys, scaled, timeout=timeout)
            return tf.zeros_like(anchored)
        return pull_rows(table, keys, timeout=timeout), pushed
    return rows(tf.convert_to_tensor(anchor))
