"""DistributedOptimizer, broadcasts of states, and SyncBatchNorm of dtrain.horovod.torch: equal to one process that has
all batches.

SPDX-License-Identifier: Apache-2.0
"""
import copy
import unittest
import warnings

from horovod_ranks import refusal, run
import torch
from torch import nn

import dtrain.horovod.torch as hvd

STEPS, BATCH = 6, 12


def model_of(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def batch_of(step):
    generator = torch.Generator().manual_seed(step)
    return (torch.randn(BATCH, 5, generator=generator, dtype=torch.float64),
            torch.randn(BATCH, 3, generator=generator, dtype=torch.float64))


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


KINDS = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
         "adam": lambda p: torch.optim.Adam(p, lr=0.01), "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1)}


def alone(kind):
    model = model_of()
    optimizer = KINDS[kind](model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, *batch_of(step)).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()  # tensors travel by files


def together(rank, size, kind, settings, passes=1):
    """Each rank has its part of each batch."""
    model = model_of(rank)
    optimizer = KINDS[kind](model.parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    groups = settings.get("groups")
    if groups == "lists":
        own = list(model.parameters())
        settings = {**settings, "groups": [[own[0], own[3]], [own[1]]]}
    plain = type(optimizer)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         backward_passes_per_step=passes, **settings)
    assert isinstance(optimizer, plain) and type(optimizer).__name__ == plain.__name__
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch_of(step)
        share = BATCH // size // passes
        for turn in range(passes):
            begin = (rank * passes + turn) * share
            (loss_of(model, x[begin:begin + share], y[begin:begin + share]) / passes).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()  # tensors travel by files


def rules(rank, size):
    """What is refused, and what is allowed only in one order."""
    model = model_of()

    def made(**settings):
        return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **settings)
    named = list(model.named_parameters())
    for settings, text in (({"named_parameters": model.parameters()}, "sequence of tuples"),
                           ({"named_parameters": named[:-1]}, "not named"),
                           ({"named_parameters": [("x", p) for _, p in named]}, "duplicates: x"),
                           ({"backward_passes_per_step": 0}, "must be > 0"),
                           ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, "op != Average"),
                           ({"groups": "all"}, "groups should be"),
                           ({"groups": [[named[0][1]], [named[0][1]]]}, "only appear once")):
        said = refusal(made, kind=ValueError, **settings)
        assert text in said, said
    optimizer = made(named_parameters=named)
    x, y = batch_of(0)
    loss_of(model, x, y).backward()
    if size > 1:
        assert "race condition" in refusal(optimizer.zero_grad, kind=AssertionError)
        assert "more than backward_passes_per_step" in refusal(loss_of(model, x, y).backward, kind=AssertionError)
    optimizer.synchronize()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    clipped = [p.grad.clone() for p in model.parameters()]
    with optimizer.skip_synchronize():
        optimizer.step()
    assert all(torch.equal(a, p.grad) for a, p in zip(clipped, model.parameters()))
    optimizer.zero_grad()
    loss_of(model, x, y).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(one.message) for one in caught)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert abs(optimizer.param_groups[0]["lr"] - 0.05) < 1e-12


def closures(rank, size):
    """Gradients that a closure computes, and those of a group that is added later, are reduced, too."""
    model, later = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
    for one in (model, later):
        nn.init.zeros_(one.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    optimizer.add_param_group({"params": list(later.parameters())})

    def closure(optimizer=optimizer):
        optimizer.zero_grad()
        loss = ((model(torch.eye(2)[rank:rank + 1]) + 2 * later(torch.eye(2)[rank:rank + 1]))).sum()
        loss.backward()
        return loss
    assert optimizer.step(closure) == 0
    del closure
    assert torch.allclose(model.weight, torch.full((1, 2), -0.5)), model.weight
    assert torch.allclose(later.weight, torch.full((1, 2), -1.0)), later.weight
    del optimizer  # its hooks end with it
    optimizer = hvd.DistributedOptimizer(torch.optim.LBFGS(model.parameters(), max_iter=3))

    def distance():
        optimizer.zero_grad()
        loss = ((model.weight - 2 * rank) ** 2).sum()
        loss.backward()
        return loss
    optimizer.step(distance)
    assert hvd.allgather(model.weight.detach())[:1].allclose(model.weight)


def unused(rank, size):
    """Rank 0 alone uses the first layer; the others' gradients of it count as zeros."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1.0))
    used = first if rank == 0 else second
    used(torch.ones(1, 2)).sum().backward()
    optimizer.synchronize()
    assert torch.allclose(first.weight.grad, torch.ones(2, 2) / size)
    assert torch.allclose(second.weight.grad, torch.ones(2, 2) * (size - 1) / size)


def embeddings(rank, size, sparse_as_dense):
    bag = nn.EmbeddingBag(10, 3, sparse=True, mode="sum")
    hvd.broadcast_parameters(bag.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(bag.parameters(), lr=0.1), sparse_as_dense=sparse_as_dense)
    before = bag.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        bag(torch.tensor([[rank, 5]])).sum().backward()
        optimizer.step()
    wanted = torch.zeros(10, 3)
    wanted[5] = 1
    wanted[:size] += torch.ones(3) / size
    assert torch.allclose(before - bag.weight.detach(), 0.2 * wanted, atol=1e-6)


def adasum(rank, size):
    """Ranks that make the same step make it together; orthogonal ones are added."""
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), op=hvd.Adasum,
                                         named_parameters=model.named_parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert torch.allclose(model.weight, torch.full((1, 2), -0.5)), model.weight
    optimizer.zero_grad()
    model(torch.eye(2)[rank:rank + 1]).sum().backward()
    optimizer.step()
    assert torch.allclose(model.weight, torch.full((1, 2), -1.0)), model.weight
    assert "not supported" in refusal(lambda: optimizer.skip_synchronize().__enter__(), kind=AssertionError)


def states(rank, size):
    """Rank 0's state, tensors and numbers, on ranks that have none or another one."""
    for kind, make in KINDS.items():
        model = model_of()
        optimizer = make(model.parameters())
        if rank != 1:
            for step in range(rank + 1):
                loss_of(model, *batch_of(step)).backward()
                optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.5 + rank
        mine = copy.deepcopy(optimizer.state_dict()) if rank == 0 else None
        wrapped = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        hvd.broadcast_optimizer_state(wrapped, root_rank=0)
        wanted = hvd.broadcast_object(mine, 0)
        found = wrapped.state_dict()
        assert found["param_groups"] == wanted["param_groups"], kind
        assert found["state"].keys() == wanted["state"].keys(), kind
        for number, values in wanted["state"].items():
            for key, value in values.items():
                other = found["state"][number][key]
                assert torch.equal(other, value) if isinstance(value, torch.Tensor) else other == value, (kind, key)
    plain = torch.optim.LBFGS(model_of().parameters())
    assert "LBFGS" in refusal(hvd.broadcast_optimizer_state, plain, 0, kind=ValueError)
    assert "invalid params" in refusal(hvd.broadcast_parameters, 5, 0, kind=ValueError)
    parameters = list(model_of(rank).parameters())
    hvd.broadcast_parameters(parameters, root_rank=size - 1)
    assert all(torch.equal(a, b) for a, b in zip(parameters, model_of(size - 1).parameters()))


def batch_norms(rank, size):
    torch.manual_seed(3)
    for shape in ((10, 4), (10, 4, 3), (10, 4, 2, 2)):
        whole = torch.randn(shape, dtype=torch.float64)
        weights = torch.randn(shape, dtype=torch.float64)
        cuts = [0, 3, 10] if size == 2 else [0, 10]
        part = slice(cuts[rank], cuts[rank + 1])
        plain = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](4).double()
        ours = hvd.SyncBatchNorm(4).double()
        for _ in range(2):
            a, b = whole.clone().requires_grad_(), whole[part].clone().requires_grad_()
            plain.zero_grad()
            ours.zero_grad()
            expected, found = plain(a), ours(b)
            assert torch.allclose(found, expected[part], atol=1e-9)
            (expected * weights).sum().backward()
            (found * weights[part]).sum().backward()
            assert torch.allclose(b.grad, a.grad[part], atol=1e-9)
            assert torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum), plain.weight.grad)
        assert torch.allclose(ours.running_mean, plain.running_mean)
        assert torch.allclose(ours.running_var, plain.running_var)
        assert torch.allclose(ours.eval()(whole), plain.eval()(whole))
    refusal(hvd.SyncBatchNorm(3), torch.ones(3), kind=ValueError)


def close(found, wanted, tolerance):
    return torch.allclose(torch.tensor(found, dtype=torch.float64), torch.tensor(wanted, dtype=torch.float64),
                          rtol=tolerance, atol=tolerance)


class Optimizers(unittest.TestCase):
    def test_equal_to_one_process(self):
        cases = (("sgd", {}, 1), ("adam", {}, 1), ("adagrad", {}, 2), ("sgd", {"groups": 2}, 1),
                 ("sgd", {"groups": "lists"}, 1), ("sgd", {"gradient_predivide_factor": 3.0}, 2),
                 ("adam", {"groups": 1}, 2))
        for kind, settings, passes in cases:
            wanted = alone(kind)
            for size in (1, 2, 3):
                with self.subTest(kind=kind, settings=settings, passes=passes, size=size):
                    found = run(size, together, kind, settings, passes)
                    for one in found:
                        self.assertEqual(one, found[0])
                    self.assertTrue(close(found[0], wanted, 1e-9))

    def test_compression_is_near(self):
        for found in run(2, together, "sgd", {"compression": hvd.Compression.fp16}):
            self.assertTrue(close(found, alone("sgd"), 5e-3))

    def test_rules(self):
        for size in (1, 2):
            run(size, rules)

    def test_parts(self):
        run(2, unused)
        run(2, closures)
        run(2, embeddings, False)
        run(2, embeddings, True)
        run(2, adasum)

    def test_states(self):
        run(3, states)

    def test_sync_batch_norm(self):
        for size in (1, 2):
            run(size, batch_norms)


if __name__ == "__main__":
    unittest.main(verbosity=2)
