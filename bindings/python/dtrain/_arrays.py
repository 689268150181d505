"""Finds the memory of arrays that lack the buffer protocol, or whose element type has no format
there: by DLPack (torch, JAX, CuPy), __array_interface__ (NumPy with ml_dtypes) or
__cuda_array_interface__ (Numba).

SPDX-License-Identifier: Apache-2.0
"""
import sys
from functools import partial
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from . import _dlpack, _streams
from ._constants import DType
from ._errors import UnsupportedError
from ._names import find_dtype
from ._settings import DTypeLike

# address, elements, dtype, read-only, whether only a GPU can access it, owner of the memory
Adapted = Tuple[int, int, int, int, int, Any]

# By the type codes of __array_interface__.
KINDS = {"f4": DType.F32, "f8": DType.F64, "f2": DType.F16, "i1": DType.I8, "u1": DType.U8,
         "i2": DType.I16, "u2": DType.U16, "i4": DType.I32, "u4": DType.U32, "i8": DType.I64,
         "u8": DType.U64}
CODES = {**{dtype: code for code, dtype in KINDS.items()}, DType.BF16: "V2"}
IMMUTABLE = ("jax", "jaxlib")  #: packages whose arrays never change (old capsules cannot say so)


class Typed:
    """An array together with a dtype that the array itself does not state."""
    __slots__ = ("array", "dtype")

    def __init__(self, array: Any, dtype: DType) -> None:
        self.array = array
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"dtrain.typed({self.array!r}, {self.dtype.name!r})"


def typed(array: Any, dtype: DTypeLike) -> Typed:
    """Passes the memory of array to any operation as elements of dtype: bfloat16 stored in uint16,
    numbers in raw bytes. typed(x, "bfloat16") keeps x alive and copies nothing."""
    return Typed(array, find_dtype(dtype, "dtype"))


def adapt(array: Any, writable: bool, name: str) -> Adapted:
    """Returns what the extension needs of an array without the buffer protocol; `name` is the
    parameter's name, for errors."""
    has_dlpack = hasattr(array, "__dlpack__")
    if not has_dlpack:  # which can do more
        on_gpu = _dlpack.ask(array, name, partial(getattr, array, "__cuda_array_interface__", None))
        if isinstance(on_gpu, Mapping):
            return from_cuda_interface(array, on_gpu, writable, name)
    interface = getattr(array, "__array_interface__", None)
    if isinstance(interface, Mapping):
        return from_interface(array, interface, writable, name)
    if has_dlpack:
        return from_dlpack(array, writable, name)
    raise TypeError(f"{name}: an array is needed (NumPy, torch, JAX, array.array, memoryview, "
                    "bytearray, or anything else with the buffer protocol, DLPack or "
                    f"__cuda_array_interface__), not {type(array).__name__}")


def check_writable(readonly: Any, name: str) -> None:
    if readonly:
        raise ValueError(f"{name}: the array is read-only, and the result would be written to it; "
                         "pass a writable one")


def check_contiguous(shape: Sequence[int], strides: Sequence[float], name: str) -> int:
    """Returns the number of elements; strides are in elements."""
    count = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length > 1 and stride != count:
            raise ValueError(f"{name}: the array is not contiguous (in C order); pass a contiguous "
                             "copy, for example tensor.contiguous()")
        count *= length
    return count


def packed(shape: Sequence[int]) -> Sequence[int]:
    strides: List[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return strides


def from_dlpack(array: Any, writable: bool, name: str) -> Adapted:
    device = _dlpack.ask(array, name, array.__dlpack_device__)[0]
    kind = _dlpack.DEVICES.get(device)
    if kind is None:
        raise UnsupportedError(f"{name}: {type(array).__name__} on DLPack device {int(device)}: the memory "
                               "of GPUs of NVIDIA and of the host is supported; copy it to the host first")
    negated = getattr(array, "is_neg", None)  # torch's: DLPack does not tell
    if callable(negated) and _dlpack.ask(array, name, negated):
        raise ValueError(f"{name}: the tensor is a negated view; pass tensor.resolve_neg()")
    stream = None if kind == "host" else _streams.calling.stream or _streams.LEGACY
    tensor = _dlpack.take(array, name, stream)
    if _dlpack.DEVICES.get(tensor.device) != kind:
        raise ValueError(f"{name}: {type(array).__name__} says that it is on DLPack device {int(device)}, "
                         f"and exports memory of {tensor.device}")
    if tensor.dtype is None:
        raise TypeError(f"{name}: elements of this type cannot be sent; convert them to one of f32, "
                        "f64, f16, bf16 or an integer of 8 to 64 bits")
    immutable = type(array).__module__.partition(".")[0] in IMMUTABLE
    # Results that are written to a copy would be lost.
    readonly = immutable or bool(tensor.flags & (_dlpack.READ_ONLY | _dlpack.IS_COPIED))
    if writable:
        check_writable(readonly, name)
    strides = tensor.strides
    count = check_contiguous(tensor.shape, packed(tensor.shape) if strides is None else strides, name)
    if count != 0:
        _streams.settle(stream, tensor.address, name)
    return (tensor.address, count, tensor.dtype, int(readonly), int(kind == "GPU" and count != 0),
            tensor.capsule)


def from_cuda_interface(array: Any, interface: Mapping[str, Any], writable: bool, name: str) -> Adapted:
    version = interface.get("version")
    if version not in (2, 3):
        raise TypeError(f"{name}: {type(array).__name__} has version {version!r} of "
                        "__cuda_array_interface__; dtrain supports 2 and 3")
    if interface.get("mask") is not None:
        raise TypeError(f"{name}: {type(array).__name__} has a mask, which operations would ignore; pass "
                        "an array without one")
    stream: Optional[int] = _streams.LEGACY  # of version 2, which names none
    if version == 3:
        stream = _streams.array_stream(interface.get("stream"), name)
    address, count, dtype, readonly, _, owner = from_interface(array, interface, writable, name)
    if count == 0:
        return address, count, dtype, readonly, 0, owner
    if address == 0:
        raise ValueError(f"{name}: {type(array).__name__} has {count} elements at address 0")
    _streams.settle(stream, address, name)
    return address, count, dtype, readonly, 1, owner


def from_interface(array: Any, interface: Mapping[str, Any], writable: bool, name: str) -> Adapted:
    text, shape = interface["typestr"], interface["shape"]
    own = "<" if sys.byteorder == "little" else ">"
    dtype = KINDS.get(text[1:]) if text[0] in (own, "|", "=") else None
    stated = getattr(array, "dtype", None)
    if text[1:] == "V2" and (stated is DType.BF16 or str(stated) == "bfloat16"):  # of ml_dtypes
        dtype = DType.BF16
    if dtype is None:
        raise TypeError(f"{name}: elements of type {text!r} cannot be sent; convert them to one of "
                        "f32, f64, f16 or an integer of 8 to 64 bits, in this machine's byte order")
    data = interface.get("data")
    if not isinstance(data, tuple):
        raise TypeError(f"{name}: an array interface without an address is not supported")
    if writable:
        check_writable(data[1], name)
    strides = interface.get("strides")
    size = int(text[2:])
    count = check_contiguous(shape, packed(shape) if strides is None
                             else [stride / size for stride in strides], name)
    return data[0], count, dtype, int(data[1]), 0, (array, interface)
