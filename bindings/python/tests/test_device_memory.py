"""Memory of GPUs that a context has created or registered, on two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import gc
import unittest
from array import array

import dtrain
from gpu_arrays import Current, Exporter, Interface, call, driver

context = dtrain.Context()
world = context.world
COUNT = 5000


def ramp(rank=world.rank):
    return array("f", [(index * 7 + 13 * rank) % 59 + 0.37 for index in range(COUNT)])


def copy(function, memory, values):
    device, host = ctypes.c_uint64(memory.__cuda_array_interface__["data"][0]), ctypes.c_void_p(values.buffer_info()[0])
    with Current(0):
        call(function, *((device, host) if "HtoD" in function else (host, device)), ctypes.c_size_t(memory.size))


class Owned(unittest.TestCase):
    def test_created(self):
        host, results = ramp(), array("f", bytes(4 * COUNT))
        world.allreduce(host)
        for shared in (False, True):
            with context.device_memory((50, 100), shared=shared) as x:
                self.assertEqual((x.shape, x.dtype, x.size), ((50, 100), dtrain.F32, 4 * COUNT))
                copy("cuMemcpyHtoD_v2", x, ramp())
                world.allreduce(x)
                copy("cuMemcpyDtoH_v2", x, results)
                self.assertEqual(results, host)
            with self.assertRaisesRegex(dtrain.StateError, "closed"):
                x.__cuda_array_interface__
            with self.assertRaises(ValueError):
                world.allreduce(x)

    def test_dtypes(self):
        for dtype, size in (("f64", 8), ("bf16", 2), ("u8", 1)):
            with context.device_memory(10, dtype) as x:
                self.assertEqual(x.size, 10 * size)
                world.allreduce(x, op="max")

    def test_registered(self):
        for make in (Interface, Exporter):
            x = make(ramp())
            with context.register(x, shared=True):
                world.allreduce(x, op="min")
                with self.assertRaisesRegex(dtrain.InvalidError, "registered already"):
                    context.register(x)
            self.assertEqual(x.values(), array("f", [min(a, b) for a, b in zip(ramp(0), ramp(1))]))

    def test_refused(self):
        for shape in (0, -1, (3, 0), (2, -1), "4"):
            with self.assertRaisesRegex(dtrain.InvalidError, "shape: "):
                context.device_memory(shape)
        with self.assertRaises(TypeError):
            context.device_memory(2.5)
        with self.assertRaisesRegex(dtrain.InvalidError, "no device 9"):
            context.device_memory(4, device=9)
        with self.assertRaisesRegex(dtrain.NoMemoryError, "cuda0"):
            context.device_memory(1 << 50)
        with dtrain.Context(accelerators="none") as other:
            for run in (lambda: other.device_memory(4), lambda: other.register(Interface(ramp(4)))):
                with self.assertRaisesRegex(dtrain.UnsupportedError, 'the option accelerators is "none"'):
                    run()

    def test_in_use(self):
        x = context.device_memory(4)
        prepared = world.prepare.allreduce(x)
        with self.assertRaisesRegex(dtrain.BusyError, "persistent requests still use"):
            x.close()
        del prepared
        gc.collect()
        x.close()


def tearDownModule():
    assert driver.fakecuda_complaints() == 0, "the driver has complained, see above"


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
