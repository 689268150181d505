"""dtrain.torch's embeddings and optimizer on two workers and one server, compared with torch's own.

SPDX-License-Identifier: Apache-2.0
"""
import sys
import time
import unittest

try:
    import torch
except ImportError:
    sys.exit(77)
from torch import nn

import dtrain
from dtrain.torch.embedding import Embedding, EmbeddingBag
from dtrain.torch.optimizer import DistributedOptimizer

torch.set_num_threads(1)
context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size
ROWS, DIM = 40, 6


def random_ids(*shape, seed):
    return torch.randint(ROWS, shape, generator=torch.Generator().manual_seed(seed))


class Case(unittest.TestCase):
    def keep(self, thing):
        """Its tables end at the end of the test, on all ranks."""
        tables = thing.tables if isinstance(thing, DistributedOptimizer) else [thing.table]
        for table in tables:
            self.addCleanup(table.close)
        self.addCleanup(world.barrier)
        return thing


class Embeddings(Case):
    def pair(self, kind, own, **settings):
        """Ours, and torch's with the same rows."""
        reference = own(ROWS, DIM, **settings)
        torch.manual_seed(1)
        with torch.no_grad():
            reference.weight.copy_(torch.randn(ROWS, DIM))
            if settings.get("padding_idx") is not None:
                reference.weight[settings["padding_idx"]] = 0
        ours = self.keep(kind(world, ROWS, DIM, name=self.id(), rule="sgd", learning_rate=0.5, **settings))
        if RANK == 0:
            ours.set_rows(torch.arange(ROWS), reference.weight)
        world.barrier()
        return ours, reference

    def train(self, ours, reference, *more, ids):
        """A step on each rank's ids; the reference takes those of all."""
        optimizer = torch.optim.SGD(reference.parameters(), lr=0.5)
        target = torch.linspace(-1, 1, DIM)
        for step in range(3):
            batch = [ids(rank, step) for rank in range(SIZE)]
            output = ours(batch[RANK], *more)
            torch.testing.assert_close(output, reference(batch[RANK], *more), rtol=1e-4, atol=1e-4)
            world.barrier()
            ((output - target) ** 2).sum().backward()
            ours.flush()
            optimizer.zero_grad()
            for part in batch:
                ((reference(part, *more) - target) ** 2).sum().backward()
            optimizer.step()
            world.barrier()
            torch.testing.assert_close(ours.rows(torch.arange(ROWS)), reference.weight.detach(), rtol=1e-4, atol=1e-4)
            world.barrier()

    def test_rows(self):
        ours, reference = self.pair(Embedding, nn.Embedding)
        self.train(ours, reference, ids=lambda rank, step: random_ids(3, 5, seed=10 * step + rank))
        self.assertEqual(list(ours.parameters()), [])

    def test_padding(self):
        ours, reference = self.pair(Embedding, nn.Embedding, padding_idx=4)
        self.train(ours, reference, ids=lambda rank, step: torch.tensor([4, rank, 4, step]))

    def test_bags(self):
        for mode in ("sum", "mean", "max"):
            with self.subTest(mode):
                ours, reference = self.pair(EmbeddingBag, nn.EmbeddingBag, mode=mode)
                offsets = torch.tensor([0, 3, 3, 7])  # one bag is empty
                self.train(ours, reference, offsets, ids=lambda rank, step: random_ids(9, seed=10 * step + rank))
                ours.table.close()
                world.barrier()

    def test_narrow_ids(self):
        ours, reference = self.pair(EmbeddingBag, nn.EmbeddingBag, mode="sum")
        offsets = torch.tensor([0, 2], dtype=torch.int32)
        self.train(ours, reference, offsets, ids=lambda rank, step: torch.tensor([1, rank, step], dtype=torch.int32))

    def test_bags_of_equal_size_and_weights(self):
        ours, reference = self.pair(EmbeddingBag, nn.EmbeddingBag, mode="sum")
        weights = torch.rand(2, 4, generator=torch.Generator().manual_seed(3))
        self.train(ours, reference, None, weights, ids=lambda rank, step: random_ids(2, 4, seed=10 * step + rank))

    def test_prefetch(self):
        ours, reference = self.pair(Embedding, nn.Embedding)
        first, second = random_ids(7, seed=1), random_ids(5, seed=2)
        ours.prefetch(first)
        ours.prefetch(second)
        torch.testing.assert_close(ours(second).detach(), reference(second).detach())
        torch.testing.assert_close(ours(first).detach(), reference(first).detach())

    def test_keys_are_any_numbers(self):
        ours = self.keep(Embedding(world, None, 2, name=self.id(), rule="sgd", learning_rate=1.0))
        ids = torch.tensor([2**62 + 1, -5, 2**62 + 1])
        if RANK == 0:
            ours(ids).sum().backward()
            ours.flush()
        world.barrier()
        self.assertEqual(ours.rows(ids[:2]).tolist(), [[-2.0, -2.0], [-1.0, -1.0]])

    def test_clocks(self):
        ours = self.keep(Embedding(world, ROWS, 1, name=self.id(), rule="sgd", learning_rate=1.0, consistency="bsp",
                                   gradient_scale=1 / SIZE))
        ours(torch.tensor([RANK, 7])).sum().backward()
        ours.clock()
        self.assertEqual(ours.rows(torch.tensor([7, 0])).flatten().tolist(), [-1.0, -1 / SIZE])

    def test_nothing_is_pushed_without_a_gradient(self):
        ours, reference = self.pair(Embedding, nn.Embedding)
        ids = torch.tensor([1, 2])
        with torch.no_grad():
            self.assertFalse(ours(ids).requires_grad)
        ours.eval()
        self.assertFalse(ours(ids).requires_grad)
        ours.train()
        self.assertTrue(ours(ids).requires_grad)
        self.assertEqual(ours(torch.empty(0, dtype=torch.int64)).shape, (0, DIM))
        del reference

    def test_refused(self):
        ours = self.keep(Embedding(world, ROWS, DIM, name=self.id()))
        with self.assertRaisesRegex(IndexError, f"id {ROWS} is not in 0 to {ROWS - 1}"):
            ours(torch.tensor([1, ROWS]))
        with self.assertRaisesRegex(IndexError, "id -1 is not"):
            ours(torch.tensor([-1]))
        with self.assertRaisesRegex(TypeError, "int64 or int32 are needed, not torch.float32"):
            ours(torch.tensor([1.0]))
        with self.assertRaisesRegex(ValueError, "mode is 'median'"):
            EmbeddingBag(world, ROWS, DIM, name="refused", mode="median")
        with self.assertRaisesRegex(ValueError, "num_embeddings is 0"):
            Embedding(world, 0, DIM, name="refused")


class Optimizers(Case):
    def model(self):
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))

    def loss(self, model, rank, step):
        data = torch.randn(8, 7, generator=torch.Generator().manual_seed(100 * step + rank))
        return ((model(data[:, :5]) - data[:, 5:]) ** 2).mean()

    def compare(self, make_reference, label="", **settings):
        model, reference = self.model(), self.model()
        if RANK > 0:  # all begin with rank 0's values
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.zero_()
        optimizer = self.keep(DistributedOptimizer(model.parameters(), world, name=self.id() + label, **settings))
        alone = make_reference(reference.parameters())
        for step in range(5):
            optimizer.zero_grad()
            self.loss(model, RANK, step).backward()
            optimizer.step()
            alone.zero_grad()
            (sum(self.loss(reference, rank, step) for rank in range(SIZE)) / SIZE).backward()
            alone.step()
        for own, expected in zip(model.parameters(), reference.parameters()):
            torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)
        return model, optimizer

    def test_sgd(self):
        self.compare(lambda parameters: torch.optim.SGD(parameters, lr=0.1), rule="sgd", lr=0.1)

    def test_momentum(self):
        self.compare(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), rule="momentum",
                     learning_rate=0.1, momentum=0.9)

    def test_adam(self):
        self.compare(lambda parameters: torch.optim.Adam(parameters, lr=0.01), rule="adam", lr=0.01, steps="table",
                     epsilon=1e-8)

    def test_consistency_by_its_constant(self):
        self.compare(lambda parameters: torch.optim.SGD(parameters, lr=0.1), rule="sgd", lr=0.1,
                     consistency=dtrain.Consistency.BSP)

    def test_quorum_of_all(self):
        self.compare(lambda parameters: torch.optim.SGD(parameters, lr=0.1), rule="sgd", lr=0.1,
                     consistency="quorum", quorum=SIZE)

    def test_overlap(self):
        """Pushes during the backward pass, of each parameter or of all together."""
        for number, bytes_ in enumerate((1, 64, 1 << 20)):
            for rule, make in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
                with self.subTest(bytes_=bytes_, rule=rule):
                    more = {"steps": "table", "epsilon": 1e-8} if rule == "adam" else {}
                    self.compare(lambda parameters, make=make: make(parameters, lr=0.01), rule=rule, lr=0.01, overlap=True,
                                 bucket_bytes=bytes_, label=f"{rule}{number}", **more)
        self.compare(lambda parameters: torch.optim.SGD(parameters, lr=0.1), rule="sgd", lr=0.1, overlap=True,
                     bucket_bytes=1, consistency="quorum", quorum=SIZE, label="quorum")

    def test_overlap_pushes_while_backward_runs(self):
        model = self.model()
        optimizer = self.keep(DistributedOptimizer(model.parameters(), world, name=self.id(), rule="sgd", lr=0.1,
                                                   overlap=True, bucket_bytes=1))
        buckets = optimizer._parts[0][0].overlap._buckets
        self.assertEqual(len(buckets), 4)
        seen = []
        inputs = torch.randn(2, 5, requires_grad=True)
        hidden = model[1](model[0](inputs))
        hidden.register_hook(lambda _: seen.append([one.request is not None for one in buckets]))
        model[2](hidden).sum().backward()
        self.assertEqual(len(seen), 1)
        self.assertEqual(seen[0][:2], [False, False])
        self.assertEqual([one.request is not None for one in buckets], [True] * 4)
        optimizer.step()
        self.assertEqual([one.request is not None for one in buckets], [False] * 4)

    def test_overlap_waits_for_all_pushes_after_one_has_failed(self):
        model, waited = self.model(), []
        optimizer = self.keep(DistributedOptimizer(model.parameters(), world, name=self.id(), rule="sgd", lr=0.1,
                                                   overlap=True, bucket_bytes=1))
        overlap = optimizer._parts[0][0].overlap

        class Push:
            def __init__(self, number):
                self.number = number

            def wait(self):
                waited.append(self.number)
                if self.number in (1, 2):
                    raise dtrain.TimeoutError(f"push {self.number}")
        for number, bucket in enumerate(overlap._buckets):
            bucket.request = Push(number)
        with self.assertRaisesRegex(dtrain.TimeoutError, "push 1"):
            overlap.finish()
        self.assertEqual(waited, [0, 1, 2, 3])
        self.assertEqual([bucket.request for bucket in overlap._buckets], [None] * 4)

    def test_overlap_of_several_backward_passes(self):
        """Gradients are added up without pushes; parameters may have none; a pass too many is refused."""
        model, reference = self.model(), self.model()
        unused, alone = nn.Parameter(torch.ones(3)), torch.optim.SGD(reference.parameters(), lr=0.1)
        optimizer = self.keep(DistributedOptimizer([*model.parameters(), unused], world, name=self.id(), rule="sgd", lr=0.1,
                                                   overlap=True, bucket_bytes=1))
        for step in range(3):
            optimizer.zero_grad()
            with optimizer.no_sync():
                self.loss(model, RANK, 10 + step).backward()
            self.loss(model, RANK, step).backward()
            optimizer.step()
            alone.zero_grad()
            (sum(self.loss(reference, rank, at) for rank in range(SIZE) for at in (step, 10 + step)) / SIZE).backward()
            alone.step()
        for own, expected in zip(model.parameters(), reference.parameters()):
            torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(unused.tolist(), [1.0] * 3)
        self.loss(model, RANK, 0).backward()
        with self.assertRaisesRegex(RuntimeError, "no_sync"):
            self.loss(model, RANK, 0).backward()
        optimizer.step()

    def test_bound_of_ssp(self):
        """A worker is at most `staleness` clocks ahead of the slowest one, with overlap and without."""
        for overlap in (False, True):
            with self.subTest(overlap=overlap):
                weight = nn.Parameter(torch.zeros(4))
                optimizer = self.keep(DistributedOptimizer(
                    [weight], world, name=f"{self.id()}.{overlap}", rule="sgd", lr=1.0, overlap=overlap, bucket_bytes=1,
                    consistency=dtrain.Consistency.SSP, staleness=2))
                for step in range(1, 9):
                    if RANK == 1:
                        time.sleep(0.05)
                    (weight.sum() * -1.0).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    # Each worker adds one at each step.
                    self.assertGreaterEqual(weight[0].item(), step + (SIZE - 1) * (step - 2))
                world.barrier()
                optimizer.pull()
                self.assertEqual(weight.tolist(), [8.0 * SIZE] * 4)

    def test_groups_and_schedulers(self):
        model, reference = self.model(), self.model()
        optimizer = self.keep(DistributedOptimizer(
            [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters(), "rule": "momentum",
                                                           "momentum": 0.5}],
            world, name=self.id(), rule="sgd", lr=0.1))
        alone = torch.optim.SGD([{"params": reference[0].parameters(), "lr": 0.5},
                                 {"params": reference[2].parameters(), "momentum": 0.5}], lr=0.1)
        schedulers = [torch.optim.lr_scheduler.ExponentialLR(one, 0.5) for one in (optimizer, alone)]
        for step in range(4):
            for net, one, ranks in ((model, optimizer, [RANK]), (reference, alone, range(SIZE))):
                one.zero_grad()
                (sum(self.loss(net, rank, step) for rank in ranks) / len(ranks)).backward()
                one.step()
            for scheduler in schedulers:
                scheduler.step()
        for own, expected in zip(model.parameters(), reference.parameters()):
            torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)

    def test_own_pace(self):
        for consistency, more in (("async", {}), ("ssp", {"staleness": 1})):
            with self.subTest(consistency):
                model = self.model()
                optimizer = self.keep(DistributedOptimizer(model.parameters(), world, name=f"{self.id()}.{consistency}",
                                                           rule="sgd", lr=0.05, consistency=consistency, **more))
                before = float(self.loss(model, RANK, 0))
                for _ in range(30):
                    optimizer.zero_grad()
                    self.loss(model, RANK, 0).backward()
                    optimizer.step()
                self.assertLess(float(self.loss(model, RANK, 0)), before)
                world.barrier()
                optimizer.pull()
                ends = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
                sums = ends.clone()
                world.allreduce(sums)
                torch.testing.assert_close(sums, SIZE * ends)

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "a parameter of torch.float16"):
            DistributedOptimizer([nn.Parameter(torch.zeros(2, dtype=torch.float16))], world, name="refused")


if __name__ == "__main__":
    unittest.main()
