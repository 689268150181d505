"""What is taken for an array, and how others are refused.

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
    """In place, with a job of one rank."""
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
        with self.assertRaisesRegex(TypeError, "no parameter 'prority'"):
            world.using(prority=1)
        with self.assertRaisesRegex(ValueError, "timeout"):
            world.using(timeout=-1)


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

    def test_memory_of_devices(self):
        x = Foreign([1])
        x.__cuda_array_interface__ = x.__array_interface__
        with self.assertRaisesRegex(dtrain.UnsupportedError, "copy it to the host"):
            world.allreduce(x)


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
