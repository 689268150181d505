"""Every collective, in place and not, on three ranks; without NumPy.

SPDX-License-Identifier: Apache-2.0
"""
import unittest
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size
RANKS = range(SIZE)


def mine(rank=RANK, count=2):
    """What a rank contributes."""
    return array("f", [10 * rank + i for i in range(count)])


def zeros(count):
    return array("f", bytes(4 * count))


def joined(parts):
    return array("f", [x for part in parts for x in part])


ALL = joined(mine(rank) for rank in RANKS)
SUM = array("f", [sum(values) for values in zip(*(mine(rank) for rank in RANKS))])
COUNTS = [rank + 1 for rank in RANKS]
RAGGED = joined(mine(rank, rank + 1) for rank in RANKS)


def block(buffer, rank=RANK, count=2):
    return memoryview(buffer)[rank * count:(rank + 1) * count]


class Uniform(unittest.TestCase):
    def test_allreduce(self):
        out, own = zeros(2), mine()
        self.assertIsNone(world.allreduce(own, out))
        self.assertEqual((out, own), (SUM, mine()))
        world.allreduce(own)
        self.assertEqual(own, SUM)

    def test_allreduce_ops(self):
        for op, expected in ((dtrain.MAX, max(RANKS)), (dtrain.MIN, 0), (dtrain.AVG, 1),
                             (dtrain.BOR, 3)):
            with self.subTest(op):
                x = array("i", [RANK])
                world.allreduce(x, op=op)
                self.assertEqual(x[0], expected)

    def test_scaled(self):
        x = mine()
        world.using(prescale=2.0, postscale=0.25).allreduce(x)
        nothing = array("f", [1, 2])
        world.using(prescale=0).allreduce(nothing)
        self.assertEqual(nothing, array("f", [0, 0]))
        self.assertEqual(x, array("f", [value / 2 for value in SUM]))

    def test_reduce(self):
        for root in RANKS:
            out = zeros(2) if RANK == root else None
            own = mine()
            world.reduce(own, out, root=root)
            self.assertEqual(out, SUM if RANK == root else None)
            self.assertEqual(own, mine())
        world.reduce(own, root=1)
        self.assertEqual(own, SUM if RANK == 1 else mine())

    def test_reduce_scatter(self):
        whole, out = array("f", list(ALL)), zeros(2)
        expected = array("f", [SIZE * x for x in mine()])
        world.reduce_scatter(whole, out)
        self.assertEqual(out, expected)
        world.reduce_scatter(whole, block(whole))
        self.assertEqual(array("f", block(whole)), expected)

    def test_allgather(self):
        out = zeros(2 * SIZE)
        world.allgather(mine(), out)
        self.assertEqual(out, ALL)
        out = zeros(2 * SIZE)
        block(out)[:] = mine()
        world.allgather(block(out), out)
        self.assertEqual(out, ALL)

    def test_broadcast(self):
        for root in RANKS:
            x = mine()
            world.broadcast(x, root=root)
            self.assertEqual(x, mine(root))

    def test_gather_and_scatter(self):
        out = zeros(2 * SIZE) if RANK == 2 else None
        world.gather(mine(), out, root=2)
        self.assertEqual(out, ALL if RANK == 2 else None)
        back = zeros(2)
        world.scatter(out, back, root=2)
        self.assertEqual(back, mine())

    def test_alltoall(self):
        own, out = array("q", [10 * RANK + j for j in RANKS]), array("q", [0] * SIZE)
        world.alltoall(own, out)
        self.assertEqual(list(out), [10 * j + RANK for j in RANKS])
        world.alltoall(own, own)
        self.assertEqual(own, out)

    def test_barrier(self):
        self.assertIsNone(world.barrier())

    def test_nothing(self):
        world.allreduce(array("d"))
        world.allgather(array("d"), array("d"))


class Ragged(unittest.TestCase):
    def test_allgatherv(self):
        out = zeros(len(RAGGED))
        world.allgatherv(mine(count=RANK + 1), out, COUNTS)
        self.assertEqual(out, RAGGED)

    def test_displacements(self):
        out = zeros(3 * SIZE)
        world.allgatherv(mine(count=RANK + 1), out, COUNTS, [3 * rank for rank in RANKS])
        for rank in RANKS:
            self.assertEqual(array("f", block(out, rank, 3)[:rank + 1]), mine(rank, rank + 1))

    def test_gatherv_and_scatterv(self):
        out, back = zeros(len(RAGGED)) if RANK == 0 else None, zeros(RANK + 1)
        world.gatherv(mine(count=RANK + 1), out, COUNTS)
        self.assertEqual(out, RAGGED if RANK == 0 else None)
        world.scatterv(out, back, COUNTS)
        self.assertEqual(back, mine(count=RANK + 1))

    def test_reduce_scatterv(self):
        out = zeros(RANK + 1)
        world.reduce_scatterv(RAGGED, out, COUNTS)
        self.assertEqual(out, array("f", [SIZE * x for x in mine(count=RANK + 1)]))

    def test_alltoallv(self):
        own = joined([RANK] * (j + 1) for j in RANKS)
        out = zeros(SIZE * (RANK + 1))
        world.alltoallv(own, COUNTS, out, [RANK + 1] * SIZE)
        self.assertEqual(out, joined([j] * (RANK + 1) for j in RANKS))

    def test_refused_before_anything_is_sent(self):
        out = zeros(len(RAGGED))
        for counts, displs in ((COUNTS[1:], None), ([RANK + 2] * SIZE, None), (None, None),
                               (COUNTS, [len(RAGGED)] * SIZE), (COUNTS, [2**64 - 1] * SIZE)):
            with self.subTest(counts=counts, displs=displs), self.assertRaises(ValueError):
                world.allgatherv(mine(count=RANK + 1), out, counts, displs)
        with self.assertRaises(TypeError):
            world.allgatherv(mine(count=RANK + 1), out, array("i", COUNTS))


class Groups(unittest.TestCase):
    def test_split(self):
        with world.split(RANK % 2, key=-RANK) as half:
            self.assertEqual(half.size, len(range(RANK % 2, SIZE, 2)))
            x = array("i", [RANK])
            half.allreduce(x)
            self.assertEqual(x[0], sum(range(RANK % 2, SIZE, 2)))
        self.assertIsNone(world.split(None))

    def test_subset(self):
        part = world.subset([2, 0])
        self.assertEqual(part and part.rank, {0: 1, 2: 0}.get(RANK))

    def test_create_group(self):
        ranks = [SIZE - 1, 0] if SIZE > 1 else [0]
        if RANK in ranks:
            with world.create_group(ranks, tag=3) as group:
                self.assertEqual(ranks[group.rank], RANK)
                x = array("i", [RANK])
                group.allreduce(x)
                self.assertEqual(x[0], sum(ranks))
            if SIZE > 1:
                with self.assertRaisesRegex(dtrain.TimeoutError, "create_group: still waiting"):
                    world.create_group(ranks, tag=RANK, timeout="1s")
        with self.assertRaisesRegex(dtrain.InvalidError, "no ranks"):
            world.create_group([])

    def test_duplicate(self):
        with world.duplicate() as other:
            self.assertEqual((other.rank, other.size), (RANK, SIZE))

    def test_state(self):
        self.assertIsNone(world.error)
        self.assertEqual(world.failed, [])


class Messages(unittest.TestCase):
    def test_ring(self):
        request = world.start.send(mine(), (RANK + 1) % SIZE, tag=7)
        x = zeros(4)
        result = world.recv(x, (RANK - 1) % SIZE, tag=7)
        request.wait()
        self.assertEqual(x[:2], mine((RANK - 1) % SIZE))
        self.assertEqual((result.bytes, result.peer), (8, (RANK - 1) % SIZE))

    def test_any_rank(self):
        if RANK != 0:
            world.send(mine(), 0)
        else:
            peers = {world.recv(zeros(2)).peer for _ in range(SIZE - 1)}
            self.assertEqual(peers, set(RANKS) - {0})

    def test_truncated(self):
        request = world.start.send(mine(), RANK)
        with self.assertRaises(dtrain.TruncatedError):
            world.recv(zeros(1), RANK)
        request.wait()


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
