"""Shared and registered memory, which saves copies: never needed for correctness.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import math
import sys
import weakref
from typing import Any, Callable, Dict, Optional, Sequence, Union

from . import _arrays, _dtrain, _gpus
from ._constants import ITEM_BYTES, DType
from ._errors import BusyError, InvalidError, StateError
from ._handle import Child
from ._names import find_dtype
from ._parameters import fill
from ._settings import DTypeLike


class Memory(Child):
    """Memory from Context.allocate(), zeroed and page-aligned, that the host's other ranks can map.
    Arrays are made from view(): numpy.frombuffer(memory.view(), "f4"). The memory cannot be closed
    while such an array lives."""

    def __init__(self, context: Any, size: int) -> None:
        super().__init__(context, _dtrain.dtrain_mem_alloc(context._handle, size))
        self.size = size
        self._block: Callable[[], Optional[Any]] = lambda: None

    @property
    def viewed(self) -> bool:
        """Whether a view, or an array made from one, still lives."""
        return self._block() is not None

    def view(self) -> memoryview:
        """The bytes of the memory, writable."""
        if self._handle is None:
            raise StateError("this memory is closed")
        block = self._block()
        if block is None:
            kind: Any = type("Block", (ctypes.c_ubyte * self.size,), {})
            block = kind.from_address(_dtrain.dtrain_mem_address(self._handle))
            self._block = weakref.ref(block)
        return memoryview(block).cast("B")

    def _destroy(self) -> None:
        if self.viewed:
            raise BusyError("arrays or views of this memory are in use; delete them first")
        _dtrain.dtrain_mem_deregister(self._handle)


class DeviceMemory(Child):
    """Memory of a GPU from Context.device_memory(), an array with undefined contents: operations take it, and
    torch.as_tensor(memory, device="cuda") or numba.cuda.as_cuda_array(memory) make arrays of it (not of bf16).
    It must not be closed while such an array is used."""

    def __init__(self, context: Any, shape: Union[int, Sequence[int]], dtype: DTypeLike, device: int,
                 shared: bool) -> None:
        try:
            self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        except TypeError:
            raise TypeError(f"shape: a number of elements, or several, are needed, not {type(shape).__name__}") from None
        if any(not isinstance(length, int) or length <= 0 for length in self.shape):
            raise InvalidError(f"shape: {shape!r} is not a number of elements, or some of them, above 0")
        self.dtype = find_dtype(dtype, "dtype")
        self.size = math.prod(self.shape) * ITEM_BYTES[self.dtype]  #: in bytes
        params = fill(_dtrain.dtrain_mem_params_t(), {
            "mem_type": _dtrain.DTRAIN_MEM_CUDA, "length": self.size, "device": device,
            "flags": _dtrain.DTRAIN_MEM_SHARED if shared else 0})
        super().__init__(context, _dtrain.dtrain_mem_create(context._handle, params))

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        if self._handle is None:
            raise StateError("this memory is closed")
        order = "<" if sys.byteorder == "little" else ">"
        return {"version": 3, "shape": self.shape, "typestr": order + _arrays.CODES[self.dtype], "strides": None,
                "data": (_dtrain.dtrain_mem_address(self._handle), False), "stream": None}

    def _destroy(self) -> None:
        _dtrain.dtrain_mem_deregister(self._handle)


class Registration(Child):
    """An array's memory that Context.register() has registered. Keeps the array until it is
    closed."""

    def __init__(self, context: Any, array: Any, shared: bool) -> None:
        address, size, on_gpu, self._kept = self._place(array)
        if on_gpu:
            _gpus.check(_dtrain.dtrain_context_describe(context._handle))
        params = fill(_dtrain.dtrain_mem_params_t(), {
            "mem_type": _dtrain.DTRAIN_MEM_AUTO if on_gpu else _dtrain.DTRAIN_MEM_HOST,
            "address": address, "length": size,
            "flags": _dtrain.DTRAIN_MEM_SHARED if shared else 0})
        super().__init__(context, _dtrain.dtrain_mem_register(context._handle, params))

    @staticmethod
    def _place(array: Any) -> Any:
        try:
            view = memoryview(array)
        except (TypeError, ValueError, BufferError):
            address, count, dtype, _, on_gpu, owner = _arrays.adapt(array, True, "array")
            return address, count * ITEM_BYTES[DType(dtype)], on_gpu, owner
        if view.readonly or not view.c_contiguous:
            raise ValueError("array: memory to be registered must be writable and contiguous")
        block = (ctypes.c_ubyte * view.nbytes).from_buffer(view)  # prevents resizing the array
        return ctypes.addressof(block), view.nbytes, 0, block

    def _destroy(self) -> None:
        _dtrain.dtrain_mem_deregister(self._handle)
        self._kept = None
