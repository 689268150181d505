"""CUDA streams: those that calls are made on, and those that arrays name.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import operator
import os
import threading
from typing import Any, Callable, Optional

from ._errors import DeviceError, InvalidError, StateError, UnsupportedError

LEGACY = 1  #: the handle of a device's default stream; 2 is that of each thread
MOST = (1 << 64) - 1
DRIVER = "libcuda.so.1"
DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class Call(threading.local):
    stream: Optional[int] = None  #: of the call that this thread is making; None: it is on none


calling = Call()


def find_stream(stream: Any) -> Optional[int]:
    """The handle of an argument `stream`: an int, or an object of another package."""
    if stream is None:
        return None
    handle = stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(f"stream: the __cuda_stream__ of {type(stream).__name__} is no pair of "
                            "version and handle")
        if found[0] != 0:
            raise TypeError(f"stream: the __cuda_stream__ of {type(stream).__name__} has version "
                            f"{found[0]!r}; dtrain knows version 0")
        handle = found[1]
    elif hasattr(stream, "cuda_stream"):  # of torch
        handle = stream.cuda_stream
    if isinstance(handle, bool) or not hasattr(type(handle), "__index__"):
        raise TypeError("stream: the handle of a CUDA stream as an int, a torch.cuda.Stream or an "
                        f"object with __cuda_stream__ is needed, not {type(stream).__name__}")
    number = operator.index(handle)
    if not 0 <= number <= MOST:
        raise InvalidError(f"stream: {number} is not the handle of a CUDA stream")
    return number or LEGACY


def on(stream: int, run: Callable[..., Any], *arguments: Any) -> Any:
    """run(*arguments), which makes a call on this stream."""
    before, calling.stream = calling.stream, stream
    try:
        return run(*arguments)
    finally:
        calling.stream = before


def array_stream(stream: Any, name: str) -> Optional[int]:
    """The stream that an array names by version 3 of __cuda_array_interface__."""
    if stream is None:
        return None
    if isinstance(stream, bool) or not isinstance(stream, int) or not 0 < stream <= MOST:
        raise ValueError(f"{name}: its __cuda_array_interface__ names stream {stream!r}; None, 1 (the "
                         "default stream), 2 (that of each thread) or a handle are possible, 0 is "
                         "ambiguous")
    return stream


def settle(stream: Optional[int], address: int, name: str) -> None:
    """The array's contents are ready when `stream` gets there: waits for that, unless the call is
    made on the same stream."""
    if stream is not None and stream != calling.stream:
        synchronize(stream, address, name)


def loaded_driver(name: str) -> Any:
    """The driver's library, which whoever has made an array on a GPU has loaded."""
    try:
        return ctypes.CDLL(DRIVER, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        raise UnsupportedError(f"{name}: the array says that it is on a GPU, but this process has not "
                               f"loaded {DRIVER}") from None


def synchronize(stream: int, address: int, name: str) -> None:
    """Waits, without the GIL, until the stream has done what it has been given. address: memory of
    its device."""
    driver = loaded_driver(name)
    ordinal, context, captured = ctypes.c_int(-1), ctypes.c_void_p(), ctypes.c_int(0)
    attribute = (ctypes.c_int * 1)(DEVICE_ORDINAL)
    into = (ctypes.c_void_p * 1)(ctypes.addressof(ordinal))

    def ask(function: str, *arguments: Any) -> None:
        status = getattr(driver, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            driver.cuGetErrorName(status, ctypes.byref(text))
            raise DeviceError(f"{name}: to wait for stream {stream:#x} of the array, {function} failed: "
                              f"{(text.value or b'unknown error').decode()} ({status})")

    ask("cuPointerGetAttributes", ctypes.c_uint(1), attribute, into, ctypes.c_uint64(address))
    if ordinal.value < 0:
        raise InvalidError(f"{name}: the array says that it is on a GPU, but {address:#x} is memory of "
                           "none; was it freed?")
    ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    try:
        ask("cuCtxPushCurrent_v2", context)
        try:
            ask("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(captured))
            if captured.value != 0:
                raise StateError(f"{name}: the array's stream is being captured; calls cannot be part of "
                                 "a graph")
            ask("cuStreamSynchronize", ctypes.c_void_p(stream))
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(ordinal)
