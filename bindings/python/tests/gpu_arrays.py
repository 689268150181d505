"""Arrays on GPUs for tests, by the driver that the process finds: the one for tests (tests/fakecuda).

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import sys
import threading
from array import array

driver = ctypes.CDLL("libcuda.so.1")
DTYPES = {"f": ("f4", 2, 32), "d": ("f8", 2, 64), "b": ("i1", 0, 8), "B": ("u1", 1, 8), "h": ("i2", 0, 16),
          "H": ("u2", 1, 16), "i": ("i4", 0, 32), "q": ("i8", 0, 64), "Q": ("u8", 1, 64)}
CUDA, MANAGED = 2, 13
contexts = {}


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    assert status == 0, f"{name}: CUDA error {status}"


class Current:
    """A device's context, current in the block."""

    def __init__(self, device=0):
        if not contexts:
            call("cuInit", 0)
        if device not in contexts:
            contexts[device] = ctypes.c_void_p()
            call("cuDevicePrimaryCtxRetain", ctypes.byref(contexts[device]), device)
        self.context = contexts[device]

    def __enter__(self):
        call("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *_):
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class Memory:
    """A copy of an array.array on a GPU."""
    address = 0

    def __init__(self, values, device=0, managed=False):
        self.size, self.code, self.device = len(values) * values.itemsize, values.typecode, device
        self.count, address = len(values), ctypes.c_uint64()
        with Current(device):
            if managed:
                call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(self.size), 1)
            else:
                call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(self.size, 1)))
        self.address = address.value
        if self.size > 0:
            with Current(device):
                call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(values.buffer_info()[0]), ctypes.c_size_t(self.size))

    def values(self):
        values = array(self.code, bytes(self.size))
        if self.size > 0:
            with Current(self.device):
                call("cuMemcpyDtoH_v2", ctypes.c_void_p(values.buffer_info()[0]), ctypes.c_uint64(self.address),
                     ctypes.c_size_t(self.size))
        return values

    def free(self):
        if self.address != 0:
            with Current(self.device):
                call("cuMemFree_v2", ctypes.c_uint64(self.address))
            self.address = 0

    def __del__(self):
        if not sys.is_finalizing():
            self.free()


class Interface(Memory):
    """Has nothing but __cuda_array_interface__."""

    def __init__(self, values, device=0, readonly=False, **more):
        super().__init__(values, device)
        self.__cuda_array_interface__ = {
            "version": 3, "shape": (self.count,), "typestr": "<" + DTYPES[self.code][0],
            "data": (self.address, readonly), "strides": None, **more}


class Tensor(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter(Memory):
    """Has nothing but DLPack. producer: a stream whose work so far makes the contents; by the protocol, the
    stream that it is asked with waits for that."""
    asked = None

    def __init__(self, values, device=0, *, flags=0, kind=CUDA, exported=None, producer=None, shape=None,
                 strides=None, code=None):
        super().__init__(values, device, kind == MANAGED)
        shape = shape or (self.count,)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        _, letter, bits = DTYPES[self.code]
        self.kind, self.producer = kind, producer
        self.tensor = Tensor(1, 0, None, None, flags, self.address, exported or kind, device, len(shape),
                             letter if code is None else code, bits, 1, self.shape, self.strides, 0)

    def __dlpack_device__(self):
        return (self.kind, self.device)

    def __dlpack__(self, *, stream=None, max_version=None):
        assert max_version is not None
        self.asked = stream
        if self.producer is not None and stream != self.producer.handle:
            made = threading.Event()
            self.producer.run(made.set)
            Stream(self.device, stream).run(made.wait)
        return new_capsule(ctypes.addressof(self.tensor), b"dltensor_versioned", None)


class Older(Exporter):
    """Before DLPack 1.0."""

    def __dlpack__(self, *, stream=None):
        self.asked = stream
        return new_capsule(ctypes.addressof(self.tensor) + Tensor.data.offset, b"dltensor", None)


class Stream:
    """handle: of a stream that exists; None: a new one."""

    def __init__(self, device=0, handle=None):
        self.device, self.handle = device, handle
        if handle is None:
            made = ctypes.c_void_p()
            with Current(device):
                call("cuStreamCreateWithPriority", ctypes.byref(made), 1, 0)
            self.handle = made.value

    def fill(self, memory, byte):
        with Current(self.device):
            call("cuMemsetD8Async", ctypes.c_uint64(memory.address), ctypes.c_ubyte(byte),
                 ctypes.c_size_t(memory.size), ctypes.c_void_p(self.handle))

    def run(self, function):
        """Calls function() when the stream gets there."""
        kept.append(HOST_FUNCTION(lambda _: function() and None))
        with Current(self.device):
            call("cuLaunchHostFunc", ctypes.c_void_p(self.handle), kept[-1], None)

    def hold(self, seconds=0.1):
        """The stream gets no further before so long."""
        released = threading.Event()
        self.run(released.wait)
        threading.Timer(seconds, released.set).start()

    def synchronize(self):
        with Current(self.device):
            call("cuStreamSynchronize", ctypes.c_void_p(self.handle))


HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
kept = []  # as long as streams may call them
