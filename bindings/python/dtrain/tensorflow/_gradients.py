"""Gradients of the ops: what reaches a rank's input of the loss that all ranks share, as the sum over ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
from typing import Any, List

from .._constants import AVG, SUM, Op
from ._library import ops
from ._tensorflow import tf


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def common(op: Any) -> Any:
    return {"group": text(op.get_attr("group")), "timeout": op.get_attr("timeout")}


def whole(op: Any, gradients: Any) -> List[Any]:
    """Gradients of the outputs, zeros for those that the loss does not depend on."""
    return [tf.zeros_like(output) if gradient is None else tf.convert_to_tensor(gradient)
            for output, gradient in zip(op.outputs, gradients)]


def check_linear(op: Any) -> int:
    number = op.get_attr("op")
    if number not in (SUM, AVG):
        raise LookupError(f"{op.type}: there is no gradient of {Op(number).name}, only of SUM and AVG")
    return number


@tf.RegisterGradient("DtrainAllreduce")
def of_allreduce(op: Any, *gradients: Any) -> List[Any]:
    count = len(gradients)
    factors = list(op.inputs)[count:]
    reduced = ops.dtrain_allreduce(whole(op, gradients), factors, op=check_linear(op), **common(op))
    return list(reduced) + [None] * len(factors)


@tf.RegisterGradient("DtrainAllgather")
def of_allgather(op: Any, *gradients: Any) -> List[Any]:
    rows = op.outputs[-1]
    return list(ops.dtrain_reduce_scatter(whole(op, gradients)[:-1], [rows], op=SUM, **common(op)))


@tf.RegisterGradient("DtrainReduceScatter")
def of_reduce_scatter(op: Any, *gradients: Any) -> List[Any]:
    number, inputs = check_linear(op), list(op.inputs)
    gathered = list(ops.dtrain_allgather(whole(op, gradients), **common(op))[0])
    if number == AVG:
        ranks = ops.dtrain_allreduce([tf.constant(1.0, tf.float64)], [], op=SUM, **common(op))[0]
        gathered = [gradient / tf.cast(ranks, gradient.dtype) for gradient in gathered]
    return gathered + [None] * (len(inputs) - len(gradients))


@tf.RegisterGradient("DtrainBroadcast")
def of_broadcast(op: Any, *gradients: Any) -> List[Any]:
    """The root's input gets the sum; the others' inputs do not matter."""
    summed = ops.dtrain_allreduce(whole(op, gradients), [], op=SUM, **common(op))
    mine = tf.equal(ops.dtrain_rank(group=common(op)["group"])[0], op.get_attr("root"))
    return [tf.where(mine, gradient, tf.zeros_like(gradient)) for gradient in summed]


@tf.RegisterGradient("DtrainAlltoall")
def of_alltoall(op: Any, *gradients: Any) -> List[Any]:
    return [ops.dtrain_alltoall(whole(op, gradients)[0], op.outputs[1], **common(op))[0], None]
