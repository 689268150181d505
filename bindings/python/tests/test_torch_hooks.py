"""Gradients of DistributedDataParallel through compressors and with priorities, averages of parameters instead.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

from torch_ranks import dist, run, torch

from dtrain.torch import averaging, hooks

KINDS = {"f16": {}, "bf16": {}, "int8": {}, "topk": {"ratio": 0.1}, "onebit": {}, "powersgd": {"rank": 2}}


def task(rank, count=64):
    """Samples of a function that the network below can learn."""
    generator = torch.Generator().manual_seed(20 + rank)
    inputs = torch.randn(count, 8, generator=generator)
    return inputs, torch.stack([inputs[:, :4].sum(1), inputs[:, 2] - inputs[:, 5]], 1)


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))


def train(model, rank, steps=60, after=None):
    """The first loss and the last."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    inputs, labels = task(rank)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if after is not None:
            after()
        losses.append(loss.item())
    return losses[0], losses[-1]


def vector(model):
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])


def spread(model):
    """The largest difference between this rank's parameters and another's."""
    own = vector(model)
    copies = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(copies, own)
    return max((one - own).abs().max().item() for one in copies)


def compressed(rank, size):
    plain = torch.nn.parallel.DistributedDataParallel(network())
    first, reached = train(plain, rank)
    assert reached < 0.2 * first, (first, reached)
    for kind, settings in KINDS.items():
        model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.001)
        state = hooks.Compressed(kind, **settings)
        model.register_comm_hook(state, hooks.reduce)
        begun, ended = train(model, rank)
        assert ended < max(2 * reached, 0.3 * begun), (kind, begun, ended, reached)
        assert spread(model) == 0, kind
        stats = state.stats()
        assert stats["operations"] >= 59 and stats["sent_bytes"] < 0.8 * stats["raw_bytes"], (kind, stats)
        state.reset()
        if kind in ("f16", "bf16"):
            assert torch.allclose(vector(model), vector(plain), atol=0.02), kind
    model = torch.nn.parallel.DistributedDataParallel(network().double())
    model.register_comm_hook(hooks.Compressed("onebit"), hooks.reduce)  # no float32: as they are
    wanted = torch.nn.parallel.DistributedDataParallel(network().double())
    for one in (model, wanted):
        inputs, labels = task(rank)
        torch.nn.functional.mse_loss(one(inputs.double()), labels.double()).backward()
    for one, other in zip(model.parameters(), wanted.parameters()):
        assert torch.allclose(one.grad, other.grad)


def prioritized(rank, size):
    plain = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.0005)
    train(plain, rank, 10)
    for state in (hooks.Prioritized(), hooks.Hook(dist.new_group(list(range(size))))):
        model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.0005)
        model.register_comm_hook(state, hooks.reduce)
        train(model, rank, 10)
        assert torch.allclose(vector(model), vector(plain), atol=1e-6)


def local(rank, size):
    model = network()
    average = averaging.Periodic(model.parameters(), every=5)
    spreads = []
    first, last = train(model, rank, 50, lambda: spreads.append((average.step(), spread(model))))
    assert last < 0.3 * first, (first, last)
    for number, (averaged, difference) in enumerate(spreads):
        assert averaged == (number % 5 == 4) and (difference == 0) == averaged, (number, averaged, difference)


def post_local(rank, size):
    model = torch.nn.parallel.DistributedDataParallel(network())
    model.register_comm_hook(hooks.PostLocal(10), hooks.reduce)
    average = averaging.Periodic(model.parameters(), every=4, begin=10)
    spreads = []
    train(model, rank, 30, lambda: (average.step(), spreads.append(spread(model))))
    together = [difference == 0 for difference in spreads]
    assert together == [number < 10 or (number - 9) % 4 == 0 for number in range(30)], together


def neighbors(rank, size):
    model = network()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(rank)
    mean = vector(model).clone()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    ring = averaging.Neighbors(model.parameters(), "ring")
    for _ in range(40):
        ring.step()
    assert torch.allclose(vector(model), mean, atol=1e-3), (vector(model) - mean).abs().max()
    model = network()
    ring = averaging.Neighbors(model.parameters(), "ring")
    first, last = train(model, rank, 60, ring.step)
    assert last < 0.3 * first and spread(model) < 0.5, (first, last)
    try:
        averaging.Neighbors([], "ring")
        raise AssertionError("no parameters were accepted")
    except ValueError as error:
        assert "parameters" in str(error)


class Extras(unittest.TestCase):
    def test_compressed(self):
        run(2, compressed)

    def test_prioritized(self):
        run(2, prioritized)

    def test_local(self):
        run(2, local)

    def test_post_local(self):
        run(2, post_local)

    def test_neighbors(self):
        run(4, neighbors)


if __name__ == "__main__":
    unittest.main()
