"""DLPack, version 1.0 and earlier: finds a tensor's memory.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
from functools import partial
from typing import Any, Callable, NamedTuple, Optional, Sequence

from ._constants import DType

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  #: types of devices; the host can access all but CUDA
DEVICES = {CPU: "host", CUDA_HOST: "host", CUDA: "GPU", CUDA_MANAGED: "managed"}
MAJOR, MINOR = 1, 0  #: newest supported version
READ_ONLY, IS_COPIED = 1, 2
# By DLPack's type code and number of bits.
DTYPES = {(2, 32): DType.F32, (2, 64): DType.F64, (2, 16): DType.F16, (4, 16): DType.BF16,
          (0, 8): DType.I8, (1, 8): DType.U8, (0, 16): DType.I16, (1, 16): DType.U16,
          (0, 32): DType.I32, (1, 32): DType.U32, (0, 64): DType.I64, (1, 64): DType.U64}


class DLTensor(ctypes.Structure):
    """The layout of dlpack.h."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.restype = ctypes.c_int
is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(NamedTuple):
    address: int
    shape: Sequence[int]
    strides: Optional[Sequence[int]]  #: in elements; None: packed
    dtype: Optional[DType]            #: None: not a dtype of dtrain
    device: int
    flags: int
    capsule: Any                      #: keeps the memory alive


def ask(array: Any, name: str, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:
        raise ValueError(f"{name}: {type(array).__name__} refuses access to its memory: "
                         f"{error}") from error


def export(array: Any, **stream: int) -> Any:
    try:
        return array.__dlpack__(max_version=(MAJOR, MINOR), **stream)
    except TypeError:  # before DLPack 1.0
        return array.__dlpack__(**stream)


def take(array: Any, name: str, stream: Optional[int] = None) -> Tensor:
    """Describes the memory of an object with __dlpack__. stream: of a GPU; the object makes it wait
    until the contents are there."""
    capsule = ask(array, name, partial(export, array, **({} if stream is None else {"stream": stream})))
    # The capsule keeps its name: only then its destructor releases the tensor.
    flags = 0
    if is_valid(capsule, b"dltensor_versioned"):
        managed = Versioned.from_address(get_pointer(capsule, b"dltensor_versioned"))
        if managed.major > MAJOR:
            raise TypeError(f"{name}: {type(array).__name__} exports DLPack {managed.major}."
                            f"{managed.minor}, dtrain supports versions up to {MAJOR}")
        tensor, flags = managed.tensor, int(managed.flags)
    elif is_valid(capsule, b"dltensor"):
        tensor = DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    else:
        raise TypeError(f"{name}: the __dlpack__ of {type(array).__name__} returns no tensor")
    dtype = DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    strides = tensor.strides[:tensor.ndim] if tensor.strides else None
    return Tensor((tensor.data or 0) + tensor.byte_offset, tensor.shape[:tensor.ndim], strides, dtype,
                  tensor.device_type, flags, capsule)
