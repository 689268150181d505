"""Training under DistributedDataParallel on the backend "dtrain" gives what one process computes with all samples.

SPDX-License-Identifier: Apache-2.0
"""
import copy
import unittest

from torch_ranks import dist, run, torch

STEPS, SAMPLES = 4, 6


def network():
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10),
                               torch.nn.Tanh(), torch.nn.Linear(10, 3)).double()


def batch(step, size):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(SAMPLES * size, 1, 8, 8, generator=generator).double(), torch.randint(
        0, 3, (SAMPLES * size,), generator=generator)


def alone(model, size, steps=STEPS):
    """One process with the samples of all ranks."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(steps):
        inputs, labels = batch(step, size)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return model


def train(model, rank, size, steps=STEPS):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(steps):
        inputs, labels = batch(step, size)
        mine = slice(rank * SAMPLES, (rank + 1) * SAMPLES)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[mine]), labels[mine]).backward()
        optimizer.step()
    return model


def close(found, wanted, limit=1e-9):
    for one, other in zip(found.parameters(), wanted.parameters()):
        assert torch.allclose(one, other, rtol=limit, atol=limit), (one - other).abs().max()


def equal_everywhere(model):
    for parameter in model.parameters():
        copies = [torch.empty_like(parameter) for _ in range(dist.get_world_size())]
        dist.all_gather(copies, parameter.detach())
        assert all(torch.equal(copies[0], one) for one in copies)


def plain(rank, size):
    own = network()
    wanted = alone(copy.deepcopy(own), size)
    for settings in ({}, {"bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        model = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(own), **settings)
        train(model, rank, size)
        close(model.module, wanted)
        equal_everywhere(model)


def from_rank_0(rank, size):
    """The constructor gives all ranks the parameters of rank 0, and buffers are those of rank 0 at each step."""
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6)))
    equal_everywhere(model)
    for _ in range(3):
        model(torch.randn(5, 4)).sum().backward()
    model(torch.randn(5, 4))
    mean = model.module[1].running_mean.clone()
    dist.broadcast(mean, 0)
    dist.barrier()


def unused(rank, size):
    """Parameters that only some ranks use, and a group of some ranks."""
    class Either(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])

        def forward(self, inputs):
            return self.parts[rank % 2](inputs)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(Either(), find_unused_parameters=True)
    model(torch.ones(2, 3)).sum().backward()
    for index, part in enumerate(model.module.parts):
        users = sum(one % 2 == index for one in range(size))
        assert torch.allclose(part.bias.grad, torch.full((3,), 2.0 * users / size)), part.bias.grad
    group = dist.new_group([0, 1])
    if rank < 2:
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), process_group=group)
        model(torch.full((1, 2), float(rank))).sum().backward()
        assert torch.allclose(model.module.weight.grad, torch.full((2, 2), 0.5))


def sparse_gradients(rank, size):
    torch.manual_seed(2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(10, 3, sparse=True))
    model(torch.tensor([rank, 9])).sum().backward()
    gradient = model.module.weight.grad
    assert gradient.is_sparse
    wanted = torch.zeros(10, 3)
    wanted[9] = 1.0
    wanted[:size] += 1.0 / size
    assert torch.allclose(gradient.to_dense(), wanted), gradient.to_dense()


def no_sync(rank, size):
    """Gradients of several batches are added up before they are sent."""
    own = network()
    model = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(own))
    for step in range(3):
        inputs, labels = batch(step, size)
        mine = slice(rank * SAMPLES, (rank + 1) * SAMPLES)

        def backward():
            torch.nn.functional.cross_entropy(model(inputs[mine]), labels[mine]).backward()
        if step < 2:
            with model.no_sync():
                backward()
        else:
            backward()
        torch.nn.functional.cross_entropy(own(inputs), labels).backward()
    for one, other in zip(model.module.parameters(), own.parameters()):
        assert torch.allclose(one.grad, other.grad)


class Training(unittest.TestCase):
    def test_plain(self):
        for size in (1, 2, 3):
            run(size, plain)

    def test_from_rank_0(self):
        run(3, from_rank_0)

    def test_unused(self):
        run(3, unused)

    def test_sparse_gradients(self):
        run(2, sparse_gradients)

    def test_no_sync(self):
        run(2, no_sync)


if __name__ == "__main__":
    unittest.main()
