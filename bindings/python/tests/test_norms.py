"""Clipping by the norm of several arrays.

SPDX-License-Identifier: Apache-2.0
"""
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
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def floats(*values):
    return array("f", values)


class Clip(unittest.TestCase):
    def test_types_together(self):
        x, y = floats(3, 0), array("d", [4])
        self.assertEqual(dtrain.clip_by_global_norm([x, y], 1), 5)
        self.assertAlmostEqual(x[0], 0.6, 6)
        self.assertAlmostEqual(y[0], 0.8, 15)
        self.assertEqual(x[1], 0)

    def test_not_above(self):
        x = floats(3, 4)
        self.assertEqual(dtrain.clip_by_global_norm((x,), max_norm=5.0), 5)
        self.assertEqual(x, floats(3, 4))
        self.assertEqual(dtrain.clip_by_global_norm([], 1.0), 0)
        self.assertEqual(dtrain.clip_by_global_norm(iter([x, floats()]), 2.5), 5)
        self.assertEqual(x, floats(1.5, 2))

    def test_refused(self):
        x, lost = floats(3, 4), floats(float("nan"))
        with self.assertRaises(dtrain.InvalidError):
            dtrain.clip_by_global_norm([x, lost], 1.0)
        for max_norm in (0, -1, float("nan")):
            with self.assertRaisesRegex(dtrain.InvalidError, "max_norm"):
                dtrain.clip_by_global_norm([x], max_norm)
        for arrays, kind, text in (
                ([x, array("i", [1])], TypeError, r"arrays\[1\]: elements of f32, f64, f16 or bf16"),
                ([x, None], TypeError, r"arrays\[1\]: an array is needed .*NoneType"),
                ([bytes(4)], ValueError, r"arrays\[0\]: the array is read-only"),
                (x, TypeError, r"arrays: a list of arrays is needed, not array"),
                (5, TypeError, "arrays: a list is needed, not int")):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                dtrain.clip_by_global_norm(arrays, 1.0)
        with self.assertRaisesRegex(TypeError, "max_norm"):
            dtrain.clip_by_global_norm([x], "1")
        self.assertEqual(x, floats(3, 4))

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_numpy(self):
        x = numpy.full((2, 2), 2, numpy.float16)
        self.assertEqual(dtrain.clip_by_global_norm([x], 2), 4)
        self.assertEqual(x.tolist(), [[1, 1], [1, 1]])
        with self.assertRaisesRegex(ValueError, r"arrays\[0\]: .*contiguous"):
            dtrain.clip_by_global_norm([x[:, 0]], 1)
        with self.assertRaisesRegex(TypeError, "arrays: a list of arrays is needed, not ndarray"):
            dtrain.clip_by_global_norm(x, 1)
        self.assertEqual(x.tolist(), [[1, 1], [1, 1]])

    @unittest.skipIf(torch is None, "no torch")
    def test_torch(self):
        half, whole = torch.full((4,), 2, dtype=torch.bfloat16), torch.zeros(2, 3)
        before = [tensor._version for tensor in (half, whole)]
        self.assertEqual(dtrain.clip_by_global_norm([half, whole], 8), 4)
        self.assertEqual([tensor._version for tensor in (half, whole)], before)  # nothing changed
        self.assertEqual(dtrain.clip_by_global_norm((tensor for tensor in (half, whole)), 2), 4)
        self.assertEqual(half.tolist(), [1] * 4)
        for tensor, version in zip((half, whole), before):
            self.assertGreater(tensor._version, version)
        twin = whole.clone().requires_grad_()
        with self.assertRaisesRegex(ValueError, r"arrays\[1\]: Tensor refuses access to its memory"):
            dtrain.clip_by_global_norm([half, twin], 1)
        self.assertEqual(half.tolist(), [1] * 4)

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_dlpack(self):
        class Exporter:
            """An array with nothing but DLPack."""
            def __init__(self, inner):
                self.inner = inner

            def __dlpack__(self, **settings):
                return self.inner.__dlpack__()

            def __dlpack_device__(self):
                return self.inner.__dlpack_device__()
        x = numpy.full(4, 2, numpy.float32)
        self.assertEqual(dtrain.clip_by_global_norm([Exporter(x)], 2), 4)
        self.assertEqual(x.tolist(), [1] * 4)

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes")
    def test_ml_dtypes(self):
        x = numpy.full(4, 2, ml_dtypes.bfloat16)
        self.assertEqual(dtrain.clip_by_global_norm([x], 2), 4)
        self.assertEqual(x.tolist(), [1] * 4)

    def test_typed(self):
        x = array("H", [0x4000] * 4)
        self.assertEqual(dtrain.clip_by_global_norm([dtrain.typed(x, "bf16")], 2), 4)
        self.assertEqual(x, array("H", [0x3f80] * 4))


if __name__ == "__main__":
    unittest.main()
