"""Compressors and graphs on four ranks.

SPDX-License-Identifier: Apache-2.0
"""
import unittest
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size


class Compressors(unittest.TestCase):
    def make(self, kind, **settings):
        compressor = world.compressor(kind, 1000, **settings)
        self.addCleanup(compressor.close)
        return compressor

    def test_every_kind(self):
        for kind in dtrain.Compression:
            with self.subTest(kind), world.compressor(kind, 1000) as compressor:
                x = array("f", [1 + RANK] * 1000)
                compressor.allreduce(x, op=dtrain.SUM)
                self.assertAlmostEqual(max(x), SIZE * (SIZE + 1) / 2, delta=0.1)
                stats = compressor.stats()
                self.assertEqual(stats["operations"], 1)
                self.assertLess(stats["sent_bytes"], stats["raw_bytes"])

    def test_what_is_not_sent_comes_later(self):
        compressor = self.make(dtrain.Compression.TOPK, ratio=0.001)
        got = 0.0
        for step in range(3):
            x = array("f", [3 * (i < 3 and step == 0) for i in range(1000)])
            compressor.using(timeout=20).start.allreduce(x).wait()
            got += sum(x)
        self.assertEqual(got, 9)
        self.assertEqual(compressor.stats()["residual"], 0)

    def test_without_feedback(self):
        compressor = self.make(dtrain.Compression.TOPK, ratio=0.001, feedback=False)
        compressor.allreduce(array("f", [1] * 1000), array("f", [0] * 1000))
        self.assertEqual(compressor.stats()["residual"], 0)
        compressor.reset()

    def test_several_matrices(self):
        """One of low rank, and a bias, in which only rounding is lost."""
        compressor = self.make("powersgd", rank=1, matrices=[(20, 40), (1, 200)])
        x = array("f", [(i // 40 + 1) * (1 + RANK) for i in range(800)] + [i * (1 + RANK) for i in range(200)])
        compressor.allreduce(x, op=dtrain.SUM)
        total = SIZE * (SIZE + 1) / 2
        for i in range(1000):
            self.assertAlmostEqual(x[i], (i // 40 + 1 if i < 800 else i - 800) * total, delta=1e-2)
        for bad in ([(20, 40)], [(20, 50), (1, 1)], [(-1, -1000)], [(1000, 1), (0, 3)]):
            with self.subTest(bad), self.assertRaisesRegex(ValueError, "matri"):
                self.make("powersgd", matrices=bad)
        with self.assertRaisesRegex(TypeError, "matrices: pairs"):
            self.make("powersgd", matrices=[(20, 40, 3)])
        with self.assertRaisesRegex(dtrain.InvalidError, "int8 has none"):
            self.make("int8", matrices=[(20, 50)])

    def test_wrong_arrays(self):
        compressor = self.make(dtrain.Compression.BF16)
        with self.assertRaisesRegex(TypeError, "f32"):
            compressor.allreduce(array("d", [0] * 1000))
        with self.assertRaisesRegex(ValueError, "for 1000 elements, the array has 999"):
            compressor.allreduce(array("f", [0] * 999))

    def test_closed(self):
        compressor = world.compressor(dtrain.Compression.F16, 10)
        compressor.close()
        with self.assertRaisesRegex(dtrain.StateError, "compressor is closed"):
            compressor.allreduce(array("f", [0] * 10))


class Graphs(unittest.TestCase):
    def make(self, *arguments, **settings):
        graph = world.graph(*arguments, **settings)
        self.addCleanup(graph.close)
        return graph

    def test_ring(self):
        ring = self.make(dtrain.Topology.RING)
        self.assertEqual(sorted(ring.in_neighbors), sorted({(RANK + 1) % SIZE, (RANK - 1) % SIZE}))
        self.assertAlmostEqual(sum(ring.in_neighbors.values()) + ring.self_weight, 1)
        x = array("d", [RANK])
        for _ in range(60):
            ring.average(x)
        self.assertAlmostEqual(x[0], (SIZE - 1) / 2)
        self.assertGreater(ring.spectral_gap(), 0)

    def test_neighbours_of_ones_own(self):
        after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        graph = self.make(dtrain.Topology.CUSTOM, neighbors={before: 0.75}, self_weight=0.25,
                          out_neighbors=[after])
        self.assertEqual((graph.in_neighbors, graph.out_neighbors), ({before: 0.75}, {after: 0.75}))
        x, out = array("f", [RANK]), array("f", [0])
        graph.average(x, out)
        self.assertEqual(out[0], 0.25 * RANK + 0.75 * before)
        request = graph.prepare.allgather(x, out)
        for _ in range(2):
            request.start()
            request.wait()
        self.assertEqual(out[0], before)
        del request
        graph.start.alltoall(x, out).wait()
        self.assertEqual(out[0], before)

    def test_metropolis_hastings(self):
        graph = self.make(dtrain.Topology.CUSTOM,
                          neighbors=[rank for rank in range(SIZE) if rank != RANK])
        self.assertAlmostEqual(graph.spectral_gap(), 1)

    def test_refused(self):
        with self.assertRaisesRegex(dtrain.InvalidError, "sum"):
            world.graph(dtrain.Topology.CUSTOM, neighbors={(RANK + 1) % SIZE: 0.5})
        with self.assertRaisesRegex(ValueError, "CUSTOM"):
            world.graph(dtrain.Topology.RING, neighbors=[1])
        graph = self.make(dtrain.Topology.FULL)
        with self.assertRaisesRegex(ValueError, "blocks"):
            graph.allgather(array("f", [1, 2]), array("f", [0] * (2 * SIZE - 1)))


if __name__ == "__main__":
    unittest.main()
