"""All-reduce: of one tensor, of several, of sparse ones, with gradients. Ranks find each other's tensors by name.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return,untyped-decorator"
import hashlib
import re
import warnings
from typing import Any, List, Optional, Sequence

from ..._constants import Op
from ...tensorflow._library import name_of, ops
from ...tensorflow._operations import allgather as gather_rows
from ...tensorflow._operations import run
from ...tensorflow._tensorflow import as_written, tf
from ..common._engine import LONGEST_NAME, Engine
from ..common.basics import Adasum, Average, Max, Min, Product, Sum
from ..common.process_sets import ProcessSet, global_process_set
from ._groups import engine_with_ops
from .compression import Compression

OPS = {Average: Op.AVG, Sum: Op.SUM, Adasum: Op.ADASUM, Min: Op.MIN, Max: Op.MAX, Product: Op.PROD}
NARROW = (tf.float16, tf.bfloat16)  #: scaled in float32


def handle_average_backwards_compatibility(op: Optional[int], average: Optional[bool]) -> int:
    """The op, from the argument that Horovod had before it."""
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    warnings.warn("Parameter `average` has been replaced with `op`", DeprecationWarning, stacklevel=3)
    return Average if average else Sum


# ---- names ----


def named(kind: str, name: Optional[str], tensor: Any) -> str:
    """What ranks know the tensor by. Without a name: in graphs it is that of the tensor, in eager code always the same,
    since one such operation comes after the other."""
    if name is None:
        name = "noname" if tf.executing_eagerly() else re.sub("[^a-zA-Z0-9_]", "_", tensor.name)
    full = f"{kind}.{name}"
    raw = full.encode()
    if len(raw) <= LONGEST_NAME and b"\0" not in raw:
        return full
    return f"{raw[:100].decode(errors='ignore').replace(chr(0), ' ')}...{hashlib.sha1(raw).hexdigest()}"


def members(name: str, count: int) -> List[str]:
    return [name] if count == 1 else [f"{name}_{index + 1}of{count}" for index in range(count)]


# ---- without gradients ----


def reduced_in_order(tensors: Sequence[Any], op: Op, engine: Engine) -> List[Any]:
    """Not by names, but in the order in which ranks run such operations."""
    return list(run(ops.dtrain_allreduce, list(tensors), [], thing=engine.comm, op=op))


def scaled(tensor: Any, factor: Any) -> Any:
    """tensor * factor, as Horovod computes it: of integers in float64, toward zero; of 16-bit floats in float32."""
    if isinstance(factor, float) and factor == 1.0:
        return tensor
    wide = tf.float64 if tensor.dtype.is_integer else tf.float32 if tensor.dtype in NARROW else tensor.dtype
    return tf.cast(tf.cast(tensor, wide) * tf.cast(factor, wide), tensor.dtype)


@as_written
def reduced(tensors: Sequence[Any], names: Sequence[str], op: int, engine: Engine, prescale: float = 1.0,
            postscale: float = 1.0) -> List[Any]:
    """The tensors' reductions, in one op of TensorFlow, which waits for all of them."""
    if op not in OPS:
        raise ValueError(f"op: {op!r} is none of Average, Sum, Adasum, Min, Max and Product")
    given = [scaled(tensor, prescale) for tensor in tensors]
    if op == Adasum:  # not a job of gradient queues
        found = reduced_in_order(given, Op.ADASUM, engine)
    else:
        note = "" if prescale == postscale == 1.0 else f"prescale_factor {prescale}, postscale_factor {postscale}"
        found = run(ops.dtrain_submit, given, thing=engine.queue, names=list(names), op=OPS[op],
                    members=name_of(engine.comm), note=note)
    return [scaled(tensor, postscale) for tensor in found]


def gathered_slices(slices: Sequence[Any], op: int, engine: Engine) -> List[Any]:
    """Sums or means of tf.IndexedSlices: all ranks' rows after each other; repeated indices add up."""
    if op not in (Average, Sum):
        raise NotImplementedError("tf.IndexedSlices have a sum and an average only; give sparse_as_dense=True")
    found = gather_rows([[one.values, one.indices] for one in slices], engine.comm)
    return [tf.IndexedSlices(divided(values, engine) if op == Average else values, indices, one.dense_shape)
            for (values, indices), one in zip(found, slices)]


def divided(tensor: Any, engine: Engine) -> Any:
    """By the number of ranks, which a traced function asks for when it runs: an elastic job changes it."""
    size = run(ops.dtrain_rank, thing=engine.comm)[1]
    return tensor / tf.cast(size, tensor.dtype)


# ---- with gradients ----


def reduced_with_gradients(tensors: Sequence[Any], names: Sequence[str], op: int, engine: Engine, prescale: float,
                           postscale: float) -> List[Any]:
    """The gradient of a sum is the sum of the gradients."""
    @tf.custom_gradient
    def function(*inputs: Any) -> Any:
        def gradient(*gradients: Any) -> Any:
            dense = [tf.cast(tf.convert_to_tensor(one), tensor.dtype) for one, tensor in zip(gradients, inputs)]
            return reduced(dense, [f"{name}.gradient" for name in names], op, engine, prescale, postscale)
        return reduced(inputs, names, op, engine, prescale, postscale), gradient
    return list(function(*tensors))


def check_factors(prescale: Any, postscale: Any) -> None:
    if prescale != 1.0 or postscale != 1.0:
        raise NotImplementedError("prescale_factor and postscale_factor are not for tf.IndexedSlices")


def allreduce(tensor: Any, average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, name: Optional[str] = None, process_set: ProcessSet = global_process_set,
              ignore_name_scope: bool = False) -> Any:
    """The mean (or another op) of the ranks' tensors of this name. tf.IndexedSlices are gathered. device_dense,
    device_sparse and ignore_name_scope have no effect."""
    return grouped_allreduce([tensor], average, device_dense, device_sparse, compression, op, prescale_factor,
                             postscale_factor, process_set, ignore_name_scope, name)[0]


@as_written
def grouped_allreduce(tensors: Sequence[Any], average: Optional[bool] = None, device_dense: str = "",
                      device_sparse: str = "", compression: Any = Compression.none, op: Optional[int] = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
                      name: Optional[str] = None) -> List[Any]:
    """allreduce() of several tensors, in one op; all ranks give equally many."""
    del device_dense, device_sparse, ignore_name_scope
    if not len(tensors):  # pylint: disable=use-implicit-booleaness-not-len
        return list(tensors)
    op = handle_average_backwards_compatibility(op, average)
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    engine = engine_with_ops(process_set)
    sparse = [one for one in tensors if isinstance(one, tf.IndexedSlices)]
    if sparse:
        check_factors(prescale_factor, postscale_factor)
        sparse = gathered_slices(sparse, op, engine)
    dense = [tf.convert_to_tensor(one) for one in tensors if not isinstance(one, tf.IndexedSlices)]
    if dense:
        pairs = [compression.compress(one) for one in dense]
        names = members(named("allreduce", name, dense[0]), len(dense))
        found = reduced_with_gradients([sent for sent, _ in pairs], names, op, engine, prescale_factor,
                                       postscale_factor)
        dense = [compression.decompress(one, context) for one, (_, context) in zip(found, pairs)]
    return [(sparse if isinstance(one, tf.IndexedSlices) else dense).pop(0) for one in tensors]
