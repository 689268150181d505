"""Finds constants by the names that people write: op="sum", rule="adagrad", dtype="bfloat16".

SPDX-License-Identifier: Apache-2.0
"""
import enum
import operator
from typing import Any, Dict, Type

from ._constants import Compression, DType, Initial, Op, Placement, Rule, Topology
from ._errors import InvalidError

OTHER_NAMES: Dict[Type[enum.IntEnum], Dict[str, enum.IntEnum]] = {
    DType: {"float": DType.F32, "float32": DType.F32, "double": DType.F64, "float64": DType.F64,
            "half": DType.F16, "float16": DType.F16, "bfloat16": DType.BF16, "int8": DType.I8,
            "uint8": DType.U8, "int16": DType.I16, "uint16": DType.U16, "int32": DType.I32,
            "uint32": DType.U32, "int64": DType.I64, "uint64": DType.U64},
    Op: {"add": Op.SUM, "average": Op.AVG, "mean": Op.AVG, "product": Op.PROD},
    Rule: {"add": Rule.ADD, "adagradrowwise": Rule.ADAGRAD_ROWS},
    Compression: {"float16": Compression.F16, "bfloat16": Compression.BF16,
                  "1bit": Compression.ONEBIT},
    Topology: {}, Initial: {}, Placement: {}}


def plain(name: str) -> str:
    """The name without case, spaces, hyphens and underscores, in which spellings differ."""
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def names_of(kind: Type[enum.IntEnum]) -> Dict[str, enum.IntEnum]:
    return {**OTHER_NAMES.get(kind, {}), **{plain(one.name): one for one in kind}}


NAMES = {kind: names_of(kind) for kind in OTHER_NAMES}


def find(kind: Type[enum.IntEnum], value: Any, name: str) -> int:
    """The number for an argument of the parameter `name`: a constant of kind, its name, or an int,
    which the library checks."""
    if isinstance(value, str):
        if kind not in NAMES:
            NAMES[kind] = names_of(kind)
        found = NAMES[kind].get(plain(value))
        if found is None:
            allowed = ", ".join(one.name.lower() for one in kind)
            raise InvalidError(f"{name}: {kind.__name__} has no {value!r}; it is one of {allowed}")
        return int(found)
    if isinstance(value, kind):
        return int(value)
    if kind is DType:
        spelled = spelling(value)
        if spelled is not None:
            return find(kind, spelled, name)
    if isinstance(value, (bool, enum.Enum)) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name}: one of {kind.__name__}, or its name, is needed, not "
                        f"{type(value).__name__}")
    number = operator.index(value)
    if number == 0:  # in the C API 0 means the default
        raise InvalidError(f"{name}: there is no {kind.__name__} 0")
    return number


def spelling(value: Any) -> Any:
    """The name of a dtype of another package: numpy.float32, numpy.dtype("f4"), torch.float32."""
    name = getattr(value, "name", None)
    if isinstance(name, str) and hasattr(value, "itemsize"):
        return name
    if isinstance(value, type):
        return value.__name__
    text = str(value)
    return text[len("torch."):] if text.startswith("torch.") else None


def find_dtype(value: Any, name: str) -> DType:
    number = find(DType, value, name)
    try:
        return DType(number)
    except ValueError:
        raise InvalidError(f"{name}: there is no DType {number}") from None


def find_op(value: Any) -> int:
    return find(Op, value, "op")
