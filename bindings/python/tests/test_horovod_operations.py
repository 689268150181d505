"""Operations of dtrain.horovod.torch against what one process computes.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

from horovod_ranks import refusal, run
import torch

import dtrain.horovod.torch as hvd

SIZES = (1, 2, 3)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def values(rank, shape, dtype, seed=0):
    """Small integers, which all dtypes add up without rounding."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    low = 0 if dtype == torch.uint8 else -9
    return torch.randint(low, 10, shape, generator=generator).to(dtype)


def all_values(size, shape, dtype, seed=0):
    return torch.stack([values(rank, shape, dtype, seed).double() for rank in range(size)])


def same(found, wanted, what):
    wanted = wanted.to(found.dtype)
    if found.shape != wanted.shape or not torch.equal(found, wanted):
        raise AssertionError(f"{what}: {found} instead of {wanted}")


OPS = ((hvd.Sum, lambda each: each.sum(0)), (hvd.Min, lambda each: each.amin(0)), (hvd.Max, lambda each: each.amax(0)),
       (hvd.Product, lambda each: each.prod(0)))


def reductions(rank, size):
    for dtype in INTEGERS + FLOATS:
        for shape in ((), (0,), (5,), (3, 2, 4)):
            each = all_values(size, shape, dtype)
            for op, wanted in OPS:
                if op == hvd.Product and (dtype.is_floating_point is False and torch.iinfo(dtype).bits < 16):
                    continue  # may overflow
                given = values(rank, shape, dtype)
                same(hvd.allreduce(given, op=op), wanted(each), f"{dtype} {shape} op {op}")
                same(given, values(rank, shape, dtype), "the input")
    each = all_values(size, (6,), torch.float64)
    same(hvd.allreduce(values(rank, (6,), torch.int32)), (each.sum(0) / size).trunc(), "the mean of integers")
    assert torch.allclose(hvd.allreduce(values(rank, (6,), torch.float64)), each.mean(0), rtol=1e-14)
    for name in (None, "named"):
        for turn in range(3):
            own = values(rank, (7,), torch.float32, turn)
            assert hvd.allreduce_(own, op=hvd.Sum, name=name) is own
            same(own, all_values(size, (7,), torch.float32, turn).sum(0), f"in place, {name}, turn {turn}")
    complex_values = torch.complex(values(rank, (4,), torch.float32), values(rank, (4,), torch.float32, 1))
    wanted = torch.complex(*(all_values(size, (4,), torch.float32, seed).sum(0) for seed in (0, 1)))
    same(hvd.allreduce(complex_values, op=hvd.Sum), wanted, "complex numbers")
    across = values(rank, (4, 3), torch.float32).t()
    hvd.allreduce_(across, op=hvd.Sum, name="not contiguous")
    same(across, all_values(size, (4, 3), torch.float32).sum(0).t(), "a tensor that is not contiguous")


def factors(rank, size):
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64, torch.float16):
        wide = torch.float64 if not dtype.is_floating_point else torch.float32 if dtype == torch.float16 else dtype
        own = [(values(other, (9,), dtype).to(wide) * 0.7).to(dtype) for other in range(size)]
        summed = torch.stack(own).to(torch.float64).sum(0).to(dtype)
        found = hvd.allreduce(values(rank, (9,), dtype), op=hvd.Sum, prescale_factor=0.7)
        assert torch.allclose(found.double(), summed.double(), rtol=2e-3 if dtype == torch.float16 else 1e-6), dtype
        found = hvd.allreduce(values(rank, (9,), dtype), op=hvd.Sum, postscale_factor=0.3)
        plain = all_values(size, (9,), dtype).sum(0).to(dtype)
        same(found, (plain.to(wide) * 0.3).to(dtype), f"postscale of {dtype}")
        kept = values(rank, (9,), dtype)
        for _ in range(2):  # the second has a known name
            own_copy = kept.clone()
            hvd.allreduce_(own_copy, op=hvd.Sum, prescale_factor=2.0, postscale_factor=2.0, name=f"both {dtype}")
            same(own_copy, plain * 4, f"both of {dtype}")


def groups(rank, size):
    shapes = [(3,), (2, 2), (5,), (1,)]
    wanted = [all_values(size, shape, torch.float32, i).sum(0) for i, shape in enumerate(shapes)]

    def given():
        return [values(rank, shape, torch.float32, i) for i, shape in enumerate(shapes)]
    for turn in range(2):
        for found, one in zip(hvd.grouped_allreduce(given(), op=hvd.Sum, name="group"), wanted):
            same(found, one, f"grouped_allreduce, turn {turn}")
    inside = given()
    hvd.grouped_allreduce_(inside, op=hvd.Sum)
    for found, one in zip(inside, wanted):
        same(found, one, "grouped_allreduce_")
    for found, i in zip(hvd.grouped_allgather(given()), range(4)):
        each = [values(other, shapes[i], torch.float32, i) for other in range(size)]
        same(found, torch.cat(each), "grouped_allgather")
    rows = [values(rank, (2 * size + 1, 3), torch.float32, i) for i in range(2)]
    for i, found in enumerate(hvd.grouped_reducescatter(rows, op=hvd.Sum)):
        total = all_values(size, (2 * size + 1, 3), torch.float32, i).sum(0)
        same(found, share(total, rank, size), "grouped_reducescatter")


def share(tensor, rank, size):
    whole, more = divmod(tensor.shape[0], size)
    begin = rank * whole + min(rank, more)
    return tensor[begin:begin + whole + (rank < more)]


def gathers(rank, size):
    for dtype in INTEGERS + FLOATS + (torch.bool, torch.complex64):
        own = values(rank, (rank, 2, 3), torch.float32).to(dtype)
        wanted = torch.cat([values(other, (other, 2, 3), torch.float32).to(dtype) for other in range(size)])
        same(hvd.allgather(own), wanted, f"allgather of {dtype}")
        for root in range(size):
            own = values(rank, (4, 2), torch.float32).to(dtype)
            wanted = values(root, (4, 2), torch.float32).to(dtype)
            same(hvd.broadcast(own, root), wanted, f"broadcast of {dtype}")
            assert hvd.broadcast_(own, root, name="in place") is own
            same(own, wanted, f"broadcast_ of {dtype}")
    same(hvd.broadcast(torch.tensor(float(rank)), size - 1), torch.tensor(float(size - 1)), "broadcast of a scalar")
    same(hvd.allgather(torch.zeros(0, 3)), torch.zeros(0, 3), "allgather of nothing")
    assert hvd.allgather_object({"rank": rank}) == [{"rank": other} for other in range(size)]
    assert hvd.broadcast_object([rank, "text"], size - 1) == [size - 1, "text"]


def exchanges(rank, size):
    """Rank r sends r + j + 1 rows to rank j."""
    for dtype in (torch.int64, torch.float32, torch.bool):
        splits = [rank + other + 1 for other in range(size)]
        own = (torch.arange(sum(splits)) + 100 * rank).view(-1, 1).expand(-1, 2).to(dtype)
        wanted = []
        for other in range(size):
            before = sum(other + j + 1 for j in range(rank))
            wanted.append((torch.arange(before, before + other + rank + 1) + 100 * other).view(-1, 1).expand(-1, 2))
        for given in (splits, torch.tensor(splits, dtype=torch.int32)):
            found, received = hvd.alltoall(own, given)
            same(found, torch.cat(wanted).to(dtype), f"alltoall of {dtype}")
            assert received.tolist() == splits and received.dtype == torch.int32
    same(hvd.alltoall(torch.arange(size) + 10 * rank), torch.arange(size) * 10 + rank, "alltoall without splits")
    for rows in (size, 2 * size + 1, 1):
        for op, wanted in ((hvd.Sum, lambda each: each.sum(0)), (hvd.Average, lambda each: each.mean(0))):
            found = hvd.reducescatter(values(rank, (rows, 3), torch.float64), op=op)
            assert torch.allclose(found, share(wanted(all_values(size, (rows, 3), torch.float64)), rank, size))


def derivatives(rank, size):
    """Of the sum over all ranks of <result, weights>, as Horovod defines them."""
    x = torch.ones(2, 3, requires_grad=True)
    weights = torch.full((2, 3), float(rank + 1))
    (hvd.allreduce(x, op=hvd.Sum) * weights).sum().backward()
    same(x.grad, torch.full((2, 3), float(sum(range(1, size + 1)))), "of allreduce")
    y = torch.ones(rank + 1, 2, requires_grad=True)
    total = size * (size + 1) // 2
    weights = torch.arange(total * 2.0).view(total, 2)
    (hvd.allgather(y) * weights).sum().backward()
    begin = rank * (rank + 1) // 2
    same(y.grad, weights[begin:begin + rank + 1], "of allgather")
    z = torch.ones(4, requires_grad=True)
    (hvd.broadcast(z, 0) * (rank + 1)).sum().backward()
    assert torch.allclose(z.grad, torch.full((4,), (size + 1) / 2 if rank == 0 else 0.0))
    a = torch.ones(size * 2, requires_grad=True)
    (hvd.alltoall(a) * (rank + 1)).sum().backward()
    same(a.grad, torch.arange(1, size + 1).repeat_interleave(2).float(), "of alltoall")
    s = torch.ones(size * 2, 2, requires_grad=True)
    (hvd.reducescatter(s, op=hvd.Sum) * (rank + 1)).sum().backward()
    same(s.grad, size * torch.arange(1.0, size + 1).repeat_interleave(2).view(-1, 1).expand(-1, 2), "of reducescatter")
    pair = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    first, second = hvd.grouped_allreduce(pair, op=hvd.Sum)
    (first.sum() + 2 * second.sum()).backward()
    same(pair[1].grad, torch.full((3,), 2.0 * size), "of grouped_allreduce")


def sparse(rank, size):
    def of(other):
        return torch.sparse_coo_tensor([[other, 4]], [[1.0, 2.0], [3.0, 4.0]], (6, 2))
    own, dense = of(rank), sum(of(other).to_dense() for other in range(size))
    same(hvd.sparse_allreduce_async(own, "sparse", hvd.Sum)().to_dense(), dense, "sparse sum")
    assert torch.allclose(hvd.sparse_allreduce_async(own, "sparse", hvd.Average)().to_dense(), dense / size)
    assert "op must be" in refusal(hvd.sparse_allreduce_async, own, "sparse", hvd.Max, kind=NotImplementedError)


def compressed(rank, size):
    own = values(rank, (50,), torch.float32)
    for method in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
        found = hvd.allreduce(own, compression=method, op=hvd.Sum)
        same(found, all_values(size, (50,), torch.float32).sum(0), method.__name__)
        assert found.dtype == torch.float32


class Operations(unittest.TestCase):
    def test_against_one_process(self):
        for part in (reductions, factors, groups, gathers, exchanges, derivatives, sparse, compressed):
            for size in SIZES:
                with self.subTest(part=part.__name__, size=size):
                    run(size, part)


if __name__ == "__main__":
    unittest.main(verbosity=2)
