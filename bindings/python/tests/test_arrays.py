"""Which objects operations take as arrays, and how they refuse others.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import unittest
from array import array

import dtrain

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

context = dtrain.Context()
world = context.world


def doubled(array_like):
    """Doubles the array in place, with a job of one rank."""
    world.using(postscale=2.0).allreduce(array_like)
    return array_like


class Standard(unittest.TestCase):
    def test_every_code(self):
        for code in "bBhHiIlLqQfd":
            with self.subTest(code):
                x, out = array(code, [1, 2, 3]), array(code, [0] * 3)
                world.allreduce(x, out)
                self.assertEqual(out, x)

    def test_bytes(self):
        out = bytearray(3)
        world.allreduce(b"abc", out)
        self.assertEqual(out, b"abc")

    def test_ctypes(self):
        x = (ctypes.c_float * 3)(1, 2, 3)
        self.assertEqual(list(doubled(x)), [2, 4, 6])

    def test_part_of_a_memoryview(self):
        x = array("f", [1, 2, 3])
        doubled(memoryview(x)[1:])
        self.assertEqual(list(x), [1, 4, 6])

    def refused(self, kind, text, *arguments):
        with self.assertRaises(kind) as caught:
            world.allreduce(*arguments)
        self.assertIn(text, str(caught.exception))

    def test_refusals(self):
        x = array("f", [1, 2, 3, 4])
        self.refused(TypeError, "not list", [1.0])
        self.refused(ValueError, "needs an array", None)
        self.refused(ValueError, "contiguous", memoryview(x)[::2])
        self.refused(ValueError, "read-only", b"abc")
        self.refused(ValueError, "read-only", x, memoryview(x).toreadonly())
        self.refused(TypeError, "different types", x, array("d", [0] * 4))
        self.refused(ValueError, "4 elements, the output 3", x, array("f", [0] * 3))
        self.refused(TypeError, 'format "<c"', (ctypes.c_char * 3)())

    def test_blocks(self):
        with self.assertRaisesRegex(ValueError, "not 1 blocks of 3"):
            world.reduce_scatter(array("f", [0] * 4), array("f", [0] * 3))
        with self.assertRaisesRegex(ValueError, "needs an output"):
            world.allgather(array("f", [0]), None)

    def test_parameters(self):
        with self.assertRaisesRegex(TypeError, "'prority'"):
            world.using(prority=1)
        with self.assertRaisesRegex(ValueError, "timeout"):
            world.using(timeout=-1)


class Typed(unittest.TestCase):
    def test_bfloat16_as_uint16(self):
        x = array("H", [0x3f80, 0x4000])  # 1, 2
        doubled(dtrain.typed(x, "bfloat16"))
        self.assertEqual(list(x), [0x4000, 0x4080])

    def test_raw_bytes(self):
        x = bytearray(array("f", [1, 2]).tobytes())
        doubled(dtrain.typed(x, dtrain.F32))
        self.assertEqual(array("f", bytes(x)), array("f", [2, 4]))
        doubled(dtrain.typed(memoryview(x), "f32"))
        out = array("i", [0, 0])
        world.allreduce(dtrain.typed(x, "f32"), dtrain.typed(out, "f32"))
        self.assertEqual(out.tobytes(), array("f", [4, 8]).tobytes())

    def test_tables(self):
        table = world.table("typed", length=2, dtype="bf16", rule="assign")
        table.push(dtrain.typed(array("H", [0x3f80, 0x4000]), "bf16"))
        out = array("H", [0, 0])
        table.pull(dtrain.typed(out, "bf16"))
        self.assertEqual(list(out), [0x3f80, 0x4000])

    def test_refused(self):
        for kind, text, make in (
                (ValueError, "array: its 3 bytes are not whole", lambda: dtrain.typed(bytearray(3), "f32")),
                (ValueError, "or not aligned", lambda: dtrain.typed(memoryview(bytearray(9))[1:], "f64")),
                (ValueError, "array: .*read-only", lambda: dtrain.typed(bytes(4), "f32")),
                (TypeError, "array: .*not list", lambda: dtrain.typed([1.0], "f32")),
                (ValueError, "array: .*contiguous",
                 lambda: dtrain.typed(memoryview(array("f", bytes(16)))[::2], "f32")),
                (dtrain.InvalidError, "dtype: .*'f8'", lambda: dtrain.typed(bytearray(8), "f8"))):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                world.allreduce(make())


class Foreign:
    """An array with nothing but __array_interface__."""

    def __init__(self, values, readonly=False, **more):
        self.values = (ctypes.c_double * len(values))(*values)
        self.__array_interface__ = {"version": 3, "shape": (len(values),), "typestr": "<f8",
                                    "data": (ctypes.addressof(self.values), readonly), **more}


class Interface(unittest.TestCase):
    def test_taken(self):
        self.assertEqual(list(doubled(Foreign([1, 2])).values), [2, 4])

    def test_refused(self):
        for kind, text, x in ((ValueError, "read-only", Foreign([1], True)),
                              (ValueError, "contiguous", Foreign([1, 2], strides=(16,))),
                              (TypeError, "complex|<c8", Foreign([1], typestr="<c8"))):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                world.allreduce(x)

    def test_memory_of_devices(self):  # test_device_arrays.py has a driver
        x = Foreign([1])
        x.__cuda_array_interface__ = x.__array_interface__
        with self.assertRaisesRegex(dtrain.UnsupportedError, "on a GPU.*copy it to the host"):
            world.allreduce(x)


TENSOR_FIELDS = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                 ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                 ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                 ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                 ("byte_offset", ctypes.c_uint64)]
HEAD_FIELDS = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
               ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64)]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """An array of bfloat16 with nothing but __dlpack__, of DLPack 1.0 or, without a major version, an older one."""

    def __init__(self, values, major=1, flags=0):
        self.values = (ctypes.c_uint16 * len(values))(*values)
        self.shape = ctypes.c_int64(len(values))
        tensor = {"data": ctypes.addressof(self.values), "device_type": 1, "ndim": 1, "code": 4,
                  "bits": 16, "lanes": 1, "shape": ctypes.pointer(self.shape)}
        fields = (HEAD_FIELDS if major else []) + TENSOR_FIELDS
        kind = type("Managed", (ctypes.Structure,), {"_fields_": fields})
        self.managed = kind(**tensor, **({"major": major, "flags": flags} if major else {}))
        self.major = major

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        if not self.major and keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        if self.major:
            assert keywords["max_version"][0] == 1
        return new_capsule(ctypes.addressof(self.managed),
                           b"dltensor_versioned" if self.major else b"dltensor", None)


class DLPack(unittest.TestCase):
    ONE, TWO = 0x3f80, 0x4000

    def test_of_all_versions(self):
        for major in (0, 1):
            with self.subTest(major):
                x = Exporter([self.ONE], major)
                self.assertEqual(list(doubled(x).values), [self.TWO])

    def test_read_only(self):
        for flags in (1, 2, 3):  # 2: a copy, in which the result would be lost
            locked, out = Exporter([self.ONE], flags=flags), Exporter([0])
            world.allreduce(locked, out)
            self.assertEqual(list(out.values), [self.ONE])
            for arguments, name in (((locked,), "array"), ((out, locked), "out")):
                with self.subTest(flags, name=name), self.assertRaisesRegex(ValueError, "read-only"):
                    world.allreduce(*arguments)

    def test_immutable_without_a_flag(self):
        immutable = type("Array", (Exporter,), {"__module__": "jaxlib.xla_extension"})([self.ONE], 0)
        with self.assertRaisesRegex(ValueError, "out: the array is read-only"):
            world.allreduce(Exporter([self.ONE]), immutable)
        world.allreduce(immutable, Exporter([self.ONE]))

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "array: Exporter exports DLPack 2.0"):
            world.allreduce(Exporter([1], 2))
        broken = Exporter([1])
        broken.managed.device_type = 2
        broken.__class__ = type("OnGpu", (Exporter,), {"__dlpack_device__": lambda self: (2, 0)})
        with self.assertRaisesRegex(dtrain.UnsupportedError, "array: .*this process has not loaded libcuda"):
            world.allreduce(broken)
        broken.__class__ = type("Elsewhere", (Exporter,), {"__dlpack_device__": lambda self: (7, 0)})
        with self.assertRaisesRegex(dtrain.UnsupportedError, "array: Elsewhere on DLPack device 7"):
            world.allreduce(broken)


@unittest.skipIf(numpy is None, "no NumPy")
class NumPy(unittest.TestCase):
    def test_dtypes(self):
        for dtype in "f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8".split():
            with self.subTest(dtype):
                x, out = numpy.arange(6, dtype=dtype).reshape(2, 3), numpy.empty((2, 3), dtype)
                world.allreduce(x, out)
                numpy.testing.assert_array_equal(out, x)

    def test_in_place_is_in_place(self):
        x = numpy.ones(4, "f4")
        address = x.ctypes.data
        self.assertEqual(doubled(x).tolist(), [2] * 4)
        self.assertEqual(x.ctypes.data, address)

    def test_scalar_shape(self):
        self.assertEqual(doubled(numpy.array(3.0)), 6)

    def test_keys(self):
        table = world.table("numpy keys", dim=1, rule="assign")
        keys = numpy.array([[1, -2], [3, 4]])
        table.push_rows(keys, numpy.arange(4, dtype="f4"))
        out = numpy.empty((2, 1), "f4")
        table.pull_rows(numpy.array([(1 << 64) - 2, 4], "u8"), out)
        self.assertEqual(out.tolist(), [[1], [3]])
        table.pull_rows([-2, 4], out)
        self.assertEqual(out.tolist(), [[1], [3]])
        self.assertEqual(len(table.locate(keys)), 4)
        table.erase_rows(keys)
        for bad in (keys.astype("i4"), keys.astype("u4"), keys.astype("f8"), keys.astype("u1")):
            with self.subTest(bad.dtype), self.assertRaisesRegex(TypeError, "keys: .*astype"):
                table.pull_rows(bad, numpy.zeros(4, "f4"))
        with self.assertRaisesRegex(ValueError, "keys: .*contiguous"):
            table.erase_rows(keys.T)

    def test_refused(self):
        x = numpy.ones((4, 4))
        locked = numpy.ones(4)
        locked.flags.writeable = False
        for kind, bad in ((ValueError, x[:, 1]), (ValueError, x[:, :2]), (ValueError, locked),
                          (TypeError, x > 0), (TypeError, x.astype(">f8")), (TypeError, x + 1j)):
            with self.subTest(bad), self.assertRaises(kind):
                world.allreduce(bad)


@unittest.skipIf(torch is None, "no torch")
class Torch(unittest.TestCase):
    def test_dtypes(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                      torch.uint8, torch.int16, torch.int32, torch.int64):
            with self.subTest(dtype):
                x, out = torch.arange(6).to(dtype), torch.zeros(6, dtype=dtype)
                world.allreduce(x, out)
                self.assertTrue(torch.equal(x, out))

    def test_in_place(self):
        x = torch.ones(2, 3)
        self.assertEqual(doubled(x).sum().item(), 12)
        view = torch.arange(6.0).reshape(2, 3)[1]
        self.assertEqual(doubled(view).tolist(), [6, 8, 10])

    def test_changes_are_counted(self):
        x, out, table = torch.ones(4), torch.ones(4), world.table("counted", length=4)
        other = torch.nn.Parameter(torch.ones(4), requires_grad=False)
        typed = dtrain.typed(torch.ones(4, dtype=torch.int16), "bf16")
        for tensor, write in (
                (x, lambda: world.allreduce(x)), (out, lambda: world.allreduce(x, out)),
                (out, lambda: world.start.allreduce(x, out).wait()), (out, lambda: table.pull(out)),
                (x, lambda: table.push_pull(x)), (other, lambda: world.allreduce(other)),
                (typed.array, lambda: world.allreduce(typed)), (x, lambda: self.receive(x)),
                (x, lambda: world.allreduce(x[1:]))):
            before = tensor._version
            write()
            self.assertGreater(tensor._version, before)
        prepared = world.prepare.allreduce(x)
        before = x._version
        for starts in range(1, 3):
            prepared.start()
            prepared.wait()
            self.assertEqual(x._version, before + starts)
        del prepared

    @staticmethod
    def receive(x):
        sent = world.start.send(x.clone(), 0)
        world.recv(x, 0)
        sent.wait()

    def test_what_is_read_does_not_change(self):
        x, out, table = torch.ones(4), torch.ones(4), world.table("read", length=4)
        before = x._version
        world.allreduce(x, out)
        table.push(x)
        world.broadcast(x)  # on root the array is only read
        with self.assertRaises(ValueError):
            world.allreduce(torch.ones(3), x)
        self.assertEqual(x._version, before)

    def test_autograd_is_told(self):
        weight = torch.ones(4, requires_grad=True)
        x = torch.ones(4)
        loss = (weight * x).sum()
        world.allreduce(x)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_inference(self):
        with torch.inference_mode():
            x = torch.ones(2)
        self.assertEqual(doubled(x).tolist(), [2, 2])

    def test_other_memory_while_in_flight(self):
        x = torch.zeros(1 << 20)
        request = world.start.recv(x, 0)
        x.data = torch.zeros(1)
        kept = [torch.ones(1 << 20) for _ in range(4)]
        world.send(torch.full((1 << 20,), 3.0), 0)
        request.wait()
        self.assertTrue(all(one.sum() == 1 << 20 for one in kept))

    def test_kinds(self):
        self.assertEqual(doubled(torch._neg_view(torch.ones(2)).resolve_neg()).tolist(), [-2, -2])
        for bad in (torch._neg_view(torch.ones(2)), torch.ones(2).to_sparse(),
                    torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bool),
                    torch.ones(2, device="meta"), torch.ones(2, 2, 2).transpose(0, 2)):
            with self.subTest(bad), self.assertRaisesRegex(Exception, "array: "):
                world.allreduce(bad)

    def test_keys(self):
        table = world.table("torch keys", dim=2, rule="assign")
        keys = torch.tensor([[1, -1], [5, 1 << 62]])
        table.push_rows(keys, torch.arange(8.0).reshape(4, 2))
        out = array("f", bytes(8))
        table.pull_rows([(1 << 64) - 1], out)
        self.assertEqual(list(out), [2, 3])
        with self.assertRaisesRegex(TypeError, "keys: integers of 64 bits.*long"):
            table.erase_rows(keys.int())

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "contiguous"):
            world.allreduce(torch.ones(4, 4).t()[1:3])
        with self.assertRaises(Exception):
            world.allreduce(torch.ones(4, requires_grad=True))
        with self.assertRaises(TypeError):
            world.allreduce(torch.ones(4, dtype=torch.complex64))


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
