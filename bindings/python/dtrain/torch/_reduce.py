"""The operations of reductions, from torch's to the library's.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, NamedTuple, Optional

from .._constants import Op
from ._torch import c10d, torch

Kind: Any = c10d.ReduceOp.RedOpType
OPS: Dict[Any, Op] = {Kind.SUM: Op.SUM, Kind.AVG: Op.AVG, Kind.PRODUCT: Op.PROD, Kind.MIN: Op.MIN, Kind.MAX: Op.MAX,
                      Kind.BAND: Op.BAND, Kind.BOR: Op.BOR, Kind.BXOR: Op.BXOR}
#: Booleans travel as bytes of 0 or 1. A sum says whether any is true, as with NCCL.
OF_BOOLEANS = {Op.SUM: Op.MAX, Op.PROD: Op.MIN, Op.MIN: Op.MIN, Op.MAX: Op.MAX, Op.BAND: Op.BAND, Op.BOR: Op.BOR,
               Op.BXOR: Op.BXOR}
OF_COMPLEX = (Op.SUM, Op.AVG)  #: those that are the same for both parts


class Reduction(NamedTuple):
    op: Op
    factor: Optional[float] = None  #: of PREMUL_SUM


#: By the numbers of torch's constants, whose own hashes take longer.
REDUCTIONS = {int(kind): Reduction(op) for kind, op in OPS.items()}


def find(op: Any) -> Reduction:
    """op: a ReduceOp, or one of its kinds."""
    kind = getattr(op, "op", op)
    found = REDUCTIONS.get(int(kind))
    if found is not None:
        return found
    if kind == Kind.PREMUL_SUM:
        return Reduction(Op.SUM, premultiplier(op))
    raise ValueError(f"op: {kind} is no reduction that dtrain has: {', '.join(str(one) for one in OPS)}")


def premultiplier(op: Any) -> float:
    state = op.__getstate__() if hasattr(op, "__getstate__") else None
    if state is None:
        raise NotImplementedError(f"op: torch {torch.__version__} tells backends in Python no factor of PREMUL_SUM; "
                                  "multiply the tensor before, or use torch 2.0 or later")
    return float(state[1])  # a number, or a tensor of one element


def for_dtype(op: Op, dtype: Any) -> Op:
    """The operation on what a tensor of this dtype travels as."""
    if dtype == torch.bool:
        if op not in OF_BOOLEANS:
            raise TypeError(f"op: {op.name} of booleans; convert the tensor to numbers")
        return OF_BOOLEANS[op]
    if dtype.is_complex and op not in OF_COMPLEX:
        raise TypeError(f"op: {op.name} of complex numbers is not defined; SUM and AVG are")
    return op
