"""Gradient queues on two ranks.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import time
import unittest
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size


class Queue(unittest.TestCase):
    def setUp(self):
        self.queue = world.gradients()
        self.addCleanup(self.queue.close)
        self.addCleanup(world.barrier)

    def test_any_order(self):
        tensors = {f"layer {i}": array("f", [RANK + i]) for i in range(8)}
        order = sorted(tensors, reverse=RANK == 1)
        for request in [self.queue.start.submit(name, tensors[name]) for name in order]:
            request.wait()
        self.assertEqual([x[0] for x in tensors.values()], [i + 0.5 for i in range(8)])
        self.assertEqual(self.queue.stats()["tensors"], 8)

    def test_out_of_place(self):
        own, out = array("d", [RANK, 1]), array("d", [0, 0])
        self.queue.using(priority=1).submit("x", own, out, op=dtrain.SUM)
        self.assertEqual((list(own), list(out)), ([RANK, 1], [1, SIZE]))

    def test_calls_that_wait_begin_a_cycle(self):
        """Else each would take as long as a cycle."""
        slow = world.gradients(cycle=1.0)
        begun = time.monotonic()
        for turn in range(50):
            slow.submit(f"x{turn}", array("f", [RANK]))
        self.assertLess(time.monotonic() - begun, 40)
        world.barrier()
        slow.close()

    def test_await(self):
        async def main():
            x = array("f", [RANK])
            await self.queue.start.submit("x", x, op=dtrain.MAX)
            return x[0]
        self.assertEqual(asyncio.run(main()), 1)

    def test_join(self):
        x = array("f", [3])
        if RANK == 0:
            self.queue.submit("x", x, op=dtrain.SUM)
            self.assertEqual(x[0], 3)
        self.assertIn(self.queue.join().peer, range(SIZE))

    def test_mismatch(self):
        with self.assertRaises(dtrain.MismatchError):
            self.queue.submit("x", array("f", [0] * (1 + RANK)))

    def test_same_name_twice(self):
        x, y = array("f", [1]), array("f", [1])
        request = self.queue.using(timeout=20).start.submit("x", x) if RANK == 0 else None
        if RANK == 0:
            with self.assertRaises(dtrain.BusyError):
                self.queue.submit("x", y)
        world.barrier()
        if RANK == 1:
            self.queue.submit("x", x)
        else:
            request.wait()


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
