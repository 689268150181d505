"""Requests on two ranks: waits, event loops, operations that are started many times, buffers.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import gc
import threading
import time
import unittest
import weakref
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, OTHER = world.rank, 1 - world.rank


class Holder(bytearray):
    """Memory whose release can be observed."""


class Requests(unittest.TestCase):
    def test_wait(self):
        x = array("f", [RANK, 2])
        request = world.start.allreduce(x)
        self.assertEqual(request.wait().bytes, 8)
        self.assertTrue(request.done())
        self.assertEqual(request.result(), request.wait(0))
        self.assertEqual(list(x), [1, 4])

    def test_wait_in_vain(self):
        x = array("f", [0])
        request = world.start.recv(x, OTHER, tag=3)
        self.assertFalse(request.done())
        with self.assertRaises(TimeoutError):
            request.wait(0.01)
        with self.assertRaises(dtrain.StateError):
            request.result()
        world.barrier()
        world.send(array("f", [5]), OTHER, tag=3)
        self.assertEqual(request.wait().peer, OTHER)
        self.assertEqual(x[0], 5)

    def test_timeout_of_the_operation(self):
        with self.assertRaises(dtrain.TimeoutError) as caught:
            world.using(timeout=0.05).recv(array("f", [0]), OTHER, tag=4)
        self.assertIsInstance(caught.exception, TimeoutError)

    def test_cancel(self):
        request = world.start.recv(array("f", [0]), OTHER, tag=5)
        request.cancel()
        with self.assertRaises(dtrain.CanceledError):
            request.wait()
        request = world.start.barrier()
        if not request.done():
            with self.assertRaises(dtrain.StateError):
                request.cancel()
        request.wait()

    def test_prepared(self):
        x = array("f", [0])
        request = world.prepare.allreduce(x, op=dtrain.MAX)
        for i in range(5):
            x[0] = RANK + i
            request.start()
            request.wait()
            self.assertEqual(x[0], 1 + i)

    def test_many_in_flight(self):
        buffers = [array("q", [i]) for i in range(200)]
        for request in [world.start.allreduce(x) for x in buffers]:
            request.wait()
        self.assertEqual([x[0] for x in buffers], [2 * i for i in range(200)])

    def test_threads(self):
        """Other threads run while one waits: the wait does not hold the GIL."""
        thread = threading.Thread(target=lambda: (time.sleep(0.05),
                                                  world.send(b"x", RANK, tag=6)))
        thread.start()
        world.recv(bytearray(1), RANK, tag=6)
        thread.join()


class Memory(unittest.TestCase):
    def test_cannot_be_resized(self):
        x = bytearray(4)
        request = world.start.recv(x, OTHER, tag=7)
        with self.assertRaises(BufferError):
            x.clear()
        world.barrier()
        world.send(b"abcd", OTHER, tag=7)
        request.wait()
        del request
        x.clear()

    def test_lives_as_long_as_the_operation(self):
        x = Holder(4)
        end = weakref.ref(x)
        request = world.start.recv(x, OTHER, tag=8)
        del x, request
        gc.collect()
        self.assertIsNotNone(end(), "the memory is freed while the operation may write to it")
        world.barrier()
        world.send(b"abcd", OTHER, tag=8)
        while end() is not None and bytes(end()) != b"abcd":
            world.start.send(b"", RANK, tag=9).wait()
            world.recv(bytearray(1), RANK, tag=9)
        for _ in range(1000):
            world.start.barrier().wait()  # frees finished operations
            if end() is None:
                break
        self.assertIsNone(end(), "the memory is never freed")


class EventLoop(unittest.TestCase):
    def test_await(self):
        async def main():
            x, y = array("f", [RANK]), array("f", [1])
            results = await asyncio.gather(*map(self.finish, (world.start.allreduce(x),
                                                              world.start.allreduce(y))))
            self.assertEqual([result.bytes for result in results], [4, 4])
            self.assertEqual((x[0], y[0]), (1, 2))
        for _ in range(3):  # each with a new loop
            asyncio.run(main())

    @staticmethod
    async def finish(request):
        return await request

    def test_loop_runs_meanwhile(self):
        async def main():
            x, seen = bytearray(2), []
            request = world.start.recv(x, RANK, tag=10)

            async def other():
                seen.append(request.done())
                await world.start.send(b"ab", RANK, tag=10)
            await asyncio.gather(self.finish(request), other())
            self.assertEqual((bytes(x), seen), (b"ab", [False]))
        asyncio.run(main())

    def test_failure(self):
        async def main():
            with self.assertRaises(dtrain.TimeoutError):
                await world.using(timeout=0.02).start.recv(bytearray(1), RANK, tag=11)
        asyncio.run(main())

    def test_wait_for(self):
        async def main():
            request = world.start.recv(bytearray(1), RANK, tag=12)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.finish(request), 0.02)
            request.cancel()
            with self.assertRaises(dtrain.CanceledError):
                await request
        asyncio.run(main())

    def test_begun_outside(self):
        request = world.start.recv(bytearray(1), RANK, tag=13)

        async def main():
            world.start.send(b"x", RANK, tag=13)
            self.assertEqual((await request).bytes, 1)
        asyncio.run(main())


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
