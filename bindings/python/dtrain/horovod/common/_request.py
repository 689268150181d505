"""What a rank says about an operation, and whether what all ranks say fits together.

SPDX-License-Identifier: Apache-2.0
"""
import struct
from array import array
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .exceptions import RefusedError

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
          "float64", "bool", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "other")
KINDS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier")
OPS = ("Average", "Sum", "Adasum", "Min", "Max", "Product")  #: in the order of Horovod's numbers
MOST_DIMENSIONS = 16
NOT_GIVEN = -1
#: kind, dtype, op, root, two factors, fault, dimensions; then the shape
HEAD = 8
WORDS = HEAD + MOST_DIMENSIONS

#: What may be wrong with the arguments of one rank. All ranks must know, or the others would wait for it.
FAULTS = {
    1: "its tensor has no dimensions; at least one is needed",
    2: "the first dimension of its tensor is no multiple of the number of ranks, and it gave no splits",
    3: "its splits are not as many as there are ranks",
    4: "its splits are negative, or their sum is more than the first dimension of its tensor",
    5: "its splits are no 32-bit integers",
    6: "the op cannot be used here",
}


class Request(NamedTuple):
    """One rank's side of an operation."""
    kind: str
    dtype: str = "uint8"
    shape: Tuple[int, ...] = ()
    op: int = NOT_GIVEN
    root: int = NOT_GIVEN
    prescale: float = 1.0
    postscale: float = 1.0
    fault: int = 0  #: of FAULTS; 0: none


def bits(value: float) -> int:
    found: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return found


def number(value: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", value))[0]
    return found


def encode(request: Request) -> "array[int]":
    shape = request.shape[:MOST_DIMENSIONS]
    return array("q", [KINDS.index(request.kind), DTYPES.index(request.dtype), request.op, request.root,
                       bits(request.prescale), bits(request.postscale), request.fault, len(request.shape), *shape,
                       *[0] * (MOST_DIMENSIONS - len(shape))])


def entry(table: Sequence[str], index: int) -> str:
    """What a peer names by a number."""
    return table[index] if 0 <= index < len(table) else f"number {index}"


def decode(words: "array[int]", rank: int) -> Request:
    own = words[rank * WORDS:(rank + 1) * WORDS]
    kind, dtype, op, root, prescale, postscale, fault, dimensions = own[:HEAD]
    shape = tuple(own[HEAD:HEAD + min(max(dimensions, 0), MOST_DIMENSIONS)])
    return Request(entry(KINDS, kind), entry(DTYPES, dtype), shape, op, root, number(prescale), number(postscale),
                   fault)


def tensor_text(request: Request) -> str:
    return f"a tensor of {request.dtype}{list(request.shape)}"


def shape_text(request: Request) -> str:
    return f"a tensor of shape {list(request.shape)}"


def op_text(request: Request) -> str:
    return f"op {entry(OPS, request.op)}"


class Rule(NamedTuple):
    """A part of requests that must be equal on all ranks."""
    part: Callable[[Request], object]
    text: Callable[[Request], str]
    kinds: Tuple[str, ...]


REDUCTIONS = ("allreduce", "reducescatter")
WITH_TENSOR = KINDS[:-1]
RULES = (
    Rule(lambda r: r.kind, lambda r: r.kind, KINDS),
    Rule(lambda r: r.dtype, tensor_text, WITH_TENSOR),
    Rule(lambda r: r.op, op_text, REDUCTIONS),
    Rule(lambda r: r.root, lambda r: f"root rank {r.root}", ("broadcast",)),
    Rule(lambda r: r.shape, shape_text, (*REDUCTIONS, "broadcast")),
    Rule(lambda r: r.shape[1:], lambda r: shape_text(r) + " (only the first dimension may differ)",
         ("allgather", "alltoall")),
    Rule(lambda r: (bits(r.prescale), bits(r.postscale)),
         lambda r: f"prescale_factor {r.prescale} and postscale_factor {r.postscale}", REDUCTIONS),
)


def problem(requests: Sequence[Request], ranks: Optional[Sequence[int]] = None) -> str:
    """Why the requests of all ranks do not fit together; "" if they do. Equal on all ranks, as the requests are.
    ranks: how the program numbers them."""
    names = list(ranks) if ranks is not None else list(range(len(requests)))
    kinds = {request.kind for request in requests}
    for rule in RULES:
        if not kinds & set(rule.kinds):
            continue
        groups: Dict[object, List[int]] = {}
        for index, request in enumerate(requests):
            groups.setdefault(rule.part(request), []).append(index)
        if len(groups) > 1:
            return "; ".join(
                f"{ranks_text([names[i] for i in members])} {has(members)} {rule.text(requests[members[0]])}"
                for members in groups.values())
    for rank, request in zip(names, requests):
        if min(request.shape, default=0) < 0:
            return f"rank {rank}: the shape {list(request.shape)} is not possible"
        if request.fault:
            return f"rank {rank}: {FAULTS.get(request.fault, 'it has wrong arguments')} ({shape_text(request)})"
    return ""


def has(members: Sequence[int]) -> str:
    return "has" if len(members) == 1 else "have"


def ranks_text(ranks: Sequence[int]) -> str:
    listed = ", ".join(str(rank) for rank in ranks[:8]) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"


def check(name: str, requests: Sequence[Request], ranks: Optional[Sequence[int]] = None) -> None:
    found = problem(requests, ranks)
    if found:
        raise RefusedError(f"{name}: the ranks' calls do not fit together: {found}")
