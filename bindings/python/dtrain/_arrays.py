"""Arrays that lack the buffer protocol: DLPack (torch tensors, ...), __array_interface__.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import sys
from typing import Any, Sequence, Tuple

from ._constants import DType

Adapted = Tuple[int, int, int, int, Any]  # address, elements, dtype, read-only, what keeps it

DLPACK_CPU = 1
# By (DLPack's type code, bits), and by what __array_interface__ calls them.
DLPACK_DTYPES = {(2, 32): DType.F32, (2, 64): DType.F64, (2, 16): DType.F16, (4, 16): DType.BF16,
                 (0, 8): DType.I8, (1, 8): DType.U8, (0, 16): DType.I16, (1, 16): DType.U16,
                 (0, 32): DType.I32, (1, 32): DType.U32, (0, 64): DType.I64, (1, 64): DType.U64}
KINDS = {"f4": DType.F32, "f8": DType.F64, "f2": DType.F16, "i1": DType.I8, "u1": DType.U8,
         "i2": DType.I16, "u2": DType.U16, "i4": DType.I32, "u4": DType.U32, "i8": DType.I64,
         "u8": DType.U64}


class DLTensor(ctypes.Structure):
    """As dlpack.h lays it out."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def adapt(array: Any, writable: bool) -> Adapted:
    """What the extension needs of an array without the buffer protocol."""
    if getattr(array, "__cuda_array_interface__", None) is not None:
        raise_for_device(f"{type(array).__name__} with __cuda_array_interface__")
    if hasattr(array, "__dlpack__"):
        return from_dlpack(array)
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return from_interface(array, interface, writable)
    raise TypeError(f"an array is needed (NumPy, torch, array.array, memoryview, bytearray, or "
                    f"anything else with the buffer protocol or DLPack), not {type(array).__name__}")


def raise_for_device(what: str) -> None:
    from ._errors import UnsupportedError  # pylint: disable=import-outside-toplevel
    raise UnsupportedError(f"{what}: memory of devices is not supported yet; copy it to the host "
                           "first, for example by tensor.cpu()")


def check_contiguous(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The number of elements; strides in elements."""
    count = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length > 1 and stride != count:
            raise ValueError("the array is not contiguous (in C order); pass a contiguous copy, for "
                             "example tensor.contiguous()")
        count *= length
    return count


def from_dlpack(array: Any) -> Adapted:
    device = array.__dlpack_device__()[0]
    if device != DLPACK_CPU:
        raise_for_device(f"{type(array).__name__} on DLPack device {int(device)}")
    # Its destructor gives the tensor back as long as nobody renames it: it is kept as it is.
    capsule = array.__dlpack__()
    tensor = DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    dtype = DLPACK_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise TypeError("elements of this type cannot be sent; convert them to one of f32, f64, "
                        "f16, bf16 or an integer of 8 to 64 bits")
    shape = tensor.shape[:tensor.ndim]
    strides = tensor.strides[:tensor.ndim] if tensor.strides else None
    count = check_contiguous(shape, strides if strides is not None else packed(shape))
    return (tensor.data or 0) + tensor.byte_offset, count, dtype, 0, capsule


def packed(shape: Sequence[int]) -> Sequence[int]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return strides


def from_interface(array: Any, interface: dict, writable: bool) -> Adapted:
    text, shape = interface["typestr"], interface["shape"]
    own = "<" if sys.byteorder == "little" else ">"
    dtype = KINDS.get(text[1:]) if text[0] in (own, "|", "=") else None
    if dtype is None:
        raise TypeError(f"elements of type {text!r} cannot be sent; convert them to one of f32, "
                        "f64, f16 or an integer of 8 to 64 bits, in this machine's byte order")
    data = interface.get("data")
    if not isinstance(data, tuple):
        raise TypeError("an __array_interface__ without an address is not supported")
    if writable and data[1]:
        raise ValueError("the array is read-only, and the result would be written to it; pass a "
                         "writable one")
    strides = interface.get("strides")
    size = int(text[2:])
    count = check_contiguous(shape, packed(shape) if strides is None
                             else [stride / size for stride in strides])
    return data[0], count, dtype, int(data[1]), (array, interface)
