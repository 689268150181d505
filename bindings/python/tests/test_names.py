"""Enumerations by name, and durations.

SPDX-License-Identifier: Apache-2.0
"""
import unittest
from array import array
from datetime import timedelta

import dtrain
from dtrain._durations import nanoseconds, wait_nanoseconds

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


class Names(unittest.TestCase):
    def test_operators(self):
        for op in ("sum", "SUM", "avg", "mean", "Prod", "min", "max", dtrain.Op.MAX, 1, *dtrain.Op):
            with self.subTest(op):
                x = array("i" if op in (dtrain.BAND, dtrain.BOR, dtrain.BXOR) else "f", [3])
                world.allreduce(x, op=op)
                self.assertEqual(x[0], 3)

    def test_unknown(self):
        for call, text in (
                (lambda: world.allreduce(array("f", [1]), op="summ"),
                 "op: Op has no 'summ'; it is one of sum, avg, prod, min, max, band, bor, bxor, adasum"),
                (lambda: world.table("x", length=1, rule="adagard"), "rule: Rule has no .*adagrad"),
                (lambda: world.table("x", length=1, dtype="f8"), "dtype: DType has no 'f8'.*bf16"),
                (lambda: world.table("x", length=1, dtype=99), "dtype: there is no DType 99"),
                (lambda: world.table("x", length=1, consistency="eager"), "consistency: .*bsp"),
                (lambda: world.graph("star"), "topology: .*ring"),
                (lambda: world.compressor("zip", 1), "kind: .*topk")):
            with self.subTest(text), self.assertRaisesRegex(dtrain.InvalidError, text) as caught:
                call()
            self.assertIsInstance(caught.exception, ValueError)

    def test_numbers_of_others(self):
        with self.assertRaisesRegex(TypeError, "op: one of Op, or its name, is needed, not Rule"):
            world.allreduce(array("f", [1]), op=dtrain.Rule.SGD)
        with self.assertRaises(dtrain.Error):
            world.allreduce(array("f", [1]), op=77)

    def test_tables(self):
        table = world.table("names", dtype="Float64", dim=2, rule="adagrad-rows", consistency="async",
                            placement="consistent", distribution="normal", spread=0.0)
        self.assertEqual(table.dtype, dtrain.F64)
        mixed = world.table("mixed", length=4, row_length=4, storage_dtype="bfloat16", segments=[
            {"first": 0, "count": 2, "rule": "sgd"}, {"first": 2, "count": 2, "rule": "Adam"}])
        self.assertEqual(mixed.dtype, dtrain.F32)
        with self.assertRaisesRegex(TypeError, "no parameter 'lenght' of tables"):
            world.table("x", lenght=1)

    def test_other_kinds(self):
        for kind in ("float16", "int8", "top-k", "onebit", "power_sgd"):
            world.compressor(kind, 8).close()
        for topology in ("ring", "Exponential", "full"):
            world.graph(topology).close()

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_dtypes_of_numpy(self):
        for dtype, name in ((numpy.float32, "F32"), (numpy.dtype("f8"), "F64"), (numpy.int64, "I64")):
            self.assertEqual(world.table(f"numpy {name}", length=1, dtype=dtype).dtype.name, name)

    @unittest.skipIf(torch is None, "no torch")
    def test_dtypes_of_torch(self):
        self.assertEqual(world.table("torch", length=1, dtype=torch.bfloat16).dtype, dtrain.BF16)


class Durations(unittest.TestCase):
    def test_taken(self):
        for given, found in ((1, 10**9), (0.5, 5 * 10**8), (timedelta(seconds=2), 2 * 10**9),
                             (timedelta(microseconds=3), 3000), ("30s", 3 * 10**10), ("5 ms", 5 * 10**6),
                             ("2min", 12 * 10**10), (1e-12, 1), (float("inf"), -1), (None, 0),
                             (1e300, (1 << 63) - 1)):
            with self.subTest(given):
                self.assertEqual(nanoseconds(given), found)

    def test_refused(self):
        for given in (0, -1, float("nan"), timedelta(seconds=-1), timedelta(0), "0s", "soon", "30", ""):
            with self.subTest(given), self.assertRaisesRegex(ValueError, "cycle: "):
                nanoseconds(given, "cycle")

    def test_waits(self):
        self.assertEqual([wait_nanoseconds(x) for x in (None, 0, -1, timedelta(seconds=-1), "1ns")],
                         [-1, 0, 0, 0, 1])

    def test_everywhere(self):
        for timeout in (5, 5.0, timedelta(seconds=5), "5s"):
            with self.subTest(timeout):
                world.using(timeout=timeout).barrier()
                world.start.barrier().wait(timeout)
                world.gradients(cycle="1ms", stall_warn=timeout, stall_fail=float("inf")).close()
                with dtrain.Context(op_timeout=timeout) as other:
                    other.join(timeout=timeout).barrier()
        with self.assertRaisesRegex(TypeError, "cycle_ns"):
            world.gradients(cycle_ns=5)
        with self.assertRaisesRegex(dtrain.Error, "op.timeout"):
            dtrain.Context(op_timeout="5")

    def test_waited(self):
        received = world.start.recv(bytearray(1), 0)
        for timeout, text in ((0, "after 0 s"), ("1ms", "after 1ms"),
                              (timedelta(milliseconds=1), "after 0:00:00.001")):
            with self.assertRaisesRegex(TimeoutError, text):
                received.wait(timeout)
        received.cancel()


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
