"""Arrays with elements of ml_dtypes, and arrays of JAX where it is installed.

SPDX-License-Identifier: Apache-2.0
"""
import sys
import unittest

import dtrain

try:
    import ml_dtypes
    import numpy
except ImportError:
    print("skipped: ml_dtypes of PyPI could not be installed by ./dev venv")
    sys.exit(77)
try:
    import jax.numpy as jax_numpy
except ImportError:
    jax_numpy = None

context = dtrain.Context()
world = context.world


class MlDtypes(unittest.TestCase):
    def test_bfloat16(self):
        x = numpy.ones((2, 2), ml_dtypes.bfloat16)
        world.using(postscale=2.0).allreduce(x)
        self.assertEqual(x.tolist(), [[2, 2], [2, 2]])
        table = world.table("bf16", length=4, dtype=ml_dtypes.bfloat16, rule="assign")
        table.push(x)
        self.assertEqual(table.dtype, dtrain.BF16)

    def test_refused(self):
        x = numpy.ones((4, 4), ml_dtypes.bfloat16)
        locked = numpy.ones(4, ml_dtypes.bfloat16)
        locked.flags.writeable = False
        for bad, kind, text in ((x[:, 1], ValueError, "contiguous"), (locked, ValueError, "read-only"),
                                (numpy.ones(4, ml_dtypes.float8_e4m3fn), TypeError, "convert them")):
            with self.subTest(text), self.assertRaisesRegex(kind, f"array: .*{text}"):
                world.allreduce(bad)
        world.allreduce(locked, x[0])


@unittest.skipIf(jax_numpy is None, "no JAX")
class Jax(unittest.TestCase):
    def test_inputs_only(self):
        for dtype in ("float32", "bfloat16", "int32"):
            x = jax_numpy.arange(4, dtype=dtype)
            out = numpy.zeros(4, x.dtype)
            world.allreduce(x, out)
            self.assertEqual(out.tolist(), [0, 1, 2, 3])
            for arguments in ((x,), (out, x)):
                with self.assertRaisesRegex(ValueError, "read-only"):
                    world.allreduce(*arguments)


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
