"""Memory of the library, registered arrays and the timeline, on two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import gc
import json
import mmap
import os
import tempfile
import unittest
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size
COUNT = 100_000


class Allocated(unittest.TestCase):
    def test_collective(self):
        with context.allocate(4 * COUNT) as memory:
            x = memory.view().cast("f")
            self.assertEqual((len(x), x[0]), (COUNT, 0))
            x[:] = array("f", [RANK + 1] * COUNT)
            world.allreduce(x)
            self.assertEqual((x[0], x[COUNT - 1]), (3, 3))
            del x

    def test_not_while_viewed(self):
        memory = context.allocate(64)
        part = memory.view()[8:]
        with self.assertRaisesRegex(dtrain.BusyError, "views"):
            memory.close()
        part[0] = 7
        self.assertEqual(memory.view()[8], 7)
        del part
        gc.collect()
        memory.close()
        with self.assertRaises(dtrain.StateError):
            memory.view()

    def test_nothing(self):
        with self.assertRaises(dtrain.InvalidError):
            context.allocate(0)


class Registered(unittest.TestCase):
    def test_shared(self):
        x = mmap.mmap(-1, 4 * COUNT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        values = memoryview(x).cast("f")
        values[:] = array("f", [RANK] * COUNT)
        with context.register(x, shared=True):
            world.allreduce(values)
            world.barrier()
        self.assertEqual((values[0], values[COUNT - 1]), (1, 1))

    def test_is_kept(self):
        x = bytearray(64)
        with context.register(x):
            with self.assertRaises(BufferError):
                x.clear()
        gc.collect()
        x.clear()

    def test_refused(self):
        for bad in (b"abc", memoryview(bytearray(8))[::2]):
            with self.assertRaises(ValueError):
                context.register(bad)


class Timeline(unittest.TestCase):
    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "%r.json")
            context.start_timeline(path)
            context.mark_timeline("here")
            world.allreduce(array("f", [1]))
            context.stop_timeline()
            with open(path.replace("%r", str(RANK))) as file:
                self.assertIn("here", json.dumps(json.load(file)))
            with self.assertRaises(dtrain.StateError):
                context.stop_timeline()

    def test_device_stats(self):
        with self.assertRaises(dtrain.NotFoundError):
            context.device_stats(99)


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
