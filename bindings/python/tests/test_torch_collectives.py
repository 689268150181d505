"""Collectives of torch.distributed on the backend "dtrain", compared with what a loop over all ranks' tensors gives.

SPDX-License-Identifier: Apache-2.0
"""
import functools
import unittest

from torch_ranks import OLD, dist, run, torch

from dtrain.torch._tensors import joined, wire

SIZES = (1, 2, 3)
NUMBERS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
           torch.int64]
NEWER = [getattr(torch, name) for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
         if hasattr(torch, name)]
MOVED = NUMBERS + NEWER + [torch.bool, torch.complex64, torch.complex128]
OPS = {dist.ReduceOp.SUM: torch.add, dist.ReduceOp.PRODUCT: torch.mul, dist.ReduceOp.MIN: torch.minimum,
       dist.ReduceOp.MAX: torch.maximum}


def reduced(function, samples):
    """In float64, which torch computes everything with."""
    return functools.reduce(function, [one.double() for one in samples]).to(samples[0].dtype)


def sample(rank, dtype=torch.float32, shape=(3, 4)):
    """Small whole numbers, so that sums of any order are equal; other ones on each rank."""
    made = torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(100 + rank))
    return made.view(torch.uint8)[..., ::8].contiguous().view(dtype) if "float8" in str(dtype) else made.to(dtype)


def same(found, wanted):
    if "float8" in str(wanted.dtype):
        found, wanted = found.view(torch.uint8), wanted.view(torch.uint8)
    assert found.dtype == wanted.dtype and torch.equal(found, wanted), f"{found} is not {wanted}"


def reductions(rank, size):
    for dtype in NUMBERS:
        samples = [sample(one, dtype) for one in range(size)]
        for op, naive in OPS.items():
            tensor = samples[rank].clone()
            dist.all_reduce(tensor, op=op)
            same(tensor, reduced(naive, samples))
            tensor = samples[rank].clone()
            work = dist.all_reduce(tensor, op=op, async_op=True)
            assert work.wait() and work.is_completed() and work.is_success()
            same(tensor, reduced(naive, samples))
    samples = [sample(one) for one in range(size)]
    tensor = samples[rank].clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    same(tensor, sum(samples) / size)
    for root in range(size):
        tensor = samples[rank].clone()
        dist.reduce(tensor, root)
        if rank == root:
            same(tensor, sum(samples))


def special_numbers(rank, size):
    truths = [sample(one) > 1 for one in range(size)]
    tensor = truths[rank].clone()
    dist.all_reduce(tensor)  # whether any is true
    same(tensor, torch.stack(truths).any(0))
    bits = [sample(one, torch.int32) for one in range(size)]
    tensor = bits[rank].clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.BOR)
    wanted = bits[0].clone()
    for one in bits[1:]:
        wanted |= one
    same(tensor, wanted)
    waves = [torch.complex(sample(one), sample(one + 50)) for one in range(size)]
    tensor = waves[rank].clone()
    dist.all_reduce(tensor)
    same(tensor, sum(waves))
    if not OLD:
        tensor = sample(rank)
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
        same(tensor, sum(sample(one) for one in range(size)) * 0.5)
    numbers = [sample(rank), sample(rank, torch.int64)]
    group = dist.distributed_c10d._get_default_group()
    group.allreduce_coalesced(numbers).wait()
    same(numbers[0], sum(sample(one) for one in range(size)))
    same(numbers[1], sum(sample(one, torch.int64) for one in range(size)))


def moves(rank, size):
    for dtype in MOVED:
        samples = [sample(one, dtype) for one in range(size)]
        for root in range(size):
            tensor = samples[rank].clone()
            dist.broadcast(tensor, root)
            same(tensor, samples[root])
            outputs = [torch.empty_like(samples[0]) for _ in range(size)] if rank == root else None
            dist.gather(samples[rank], outputs, root)
            for one in range(size if rank == root else 0):
                same(outputs[one], samples[one])
            tensor = torch.empty_like(samples[0])
            dist.scatter(tensor, [sample(one + 10, dtype) for one in range(size)] if rank == root else None, root)
            same(tensor, sample(rank + 10, dtype))
        outputs = [torch.empty_like(samples[0]) for _ in range(size)]
        dist.all_gather(outputs, samples[rank])
        for one in range(size):
            same(outputs[one], samples[one])
        flat = torch.empty((3 * size, 4), dtype=dtype)
        dist.all_gather_into_tensor(flat, samples[rank])
        same(flat, torch.cat([one.view(torch.uint8) for one in samples]).view(dtype) if "float8" in str(dtype)
             else torch.cat(samples))
        dist.all_gather(list(flat.chunk(size)), samples[rank])  # without copies
        same(flat[3 * (size - 1):], samples[size - 1])


def exchanges(rank, size):
    for dtype in (torch.float32, torch.bool, torch.complex64):
        whole = [sample(one, dtype, (2 * size, 3)) for one in range(size)]
        output = torch.empty_like(whole[0])
        dist.all_to_all_single(output, whole[rank])
        same(output, torch.cat([one[2 * rank:2 * rank + 2] for one in whole]))
        outputs = [torch.empty(2, 3, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, list(whole[rank].chunk(size)))
        same(torch.cat(outputs), output)
    rows = [sum(range(one + 1, one + 1 + size)) for one in range(size)]  # rank r sends r + 1 + s rows to rank s
    source = sample(rank, shape=(rows[rank], 2))
    output = torch.empty(sum(one + 1 + rank for one in range(size)), 2)
    dist.all_to_all_single(output, source, [one + 1 + rank for one in range(size)], [rank + 1 + one for one in range(size)])
    wanted = []
    for one in range(size):
        first = sum(one + 1 + other for other in range(rank))
        wanted.append(sample(one, shape=(rows[one], 2))[first:first + one + 1 + rank])
    same(output, torch.cat(wanted))
    whole = [sample(one, shape=(2 * size, 3)) for one in range(size)]
    output = torch.empty(2, 3)
    dist.reduce_scatter_tensor(output, whole[rank])
    same(output, sum(whole)[2 * rank:2 * rank + 2])
    output.zero_()
    dist.reduce_scatter(output, [part.clone() for part in whole[rank].chunk(size)])
    same(output, sum(whole)[2 * rank:2 * rank + 2])


def layouts(rank, size):
    """Tensors that are not contiguous, require grad, are empty, or are views that negate or conjugate."""
    wide = sample(rank, shape=(4, 6))
    dist.all_reduce(wide.t()[1:3])
    wanted = sample(rank, shape=(4, 6))
    wanted[:, 1:3] = sum(sample(one, shape=(4, 6)) for one in range(size))[:, 1:3]
    same(wide, wanted)
    tensor = sample(rank).requires_grad_()
    dist.all_reduce(tensor)
    same(tensor.detach(), sum(sample(one) for one in range(size)))
    output = torch.empty(4 * size, 3)
    dist.all_gather_into_tensor(output, sample(rank).t())
    same(output, torch.cat([sample(one).t() for one in range(size)]))
    empty = torch.empty(0)
    dist.all_reduce(empty)
    dist.all_gather([torch.empty(0) for _ in range(size)], empty)
    wave = torch.complex(sample(rank), sample(rank))
    dist.all_reduce(wave.conj().resolve_conj())
    outputs = [torch.empty_like(wave) for _ in range(size)]
    dist.distributed_c10d._get_default_group().allgather([outputs], [wave.conj()]).wait()
    same(outputs[rank], wave.conj().resolve_conj())
    single = torch.tensor(float(rank))
    dist.all_reduce(single)
    same(single, torch.tensor(float(sum(range(size)))))


def sparse(rank, size):
    def made(one):
        dense = sample(one, shape=(5, 2)) * (torch.arange(5) % 3 == one % 3).unsqueeze(1)
        return dense, dense.to_sparse(1)
    tensor = made(rank)[1]
    dist.all_reduce(tensor)
    same(tensor.to_dense(), sum(made(one)[0] for one in range(size)))


def large_lists(rank, size):
    """Tensors that travel each by itself, wherever they lie and whatever their strides and sizes."""
    rows = 300
    for dtype in (torch.float32, torch.bool, torch.complex64, torch.bfloat16):
        samples = [sample(one, dtype, (rows, 1 << 9)) for one in range(size)]
        outputs = [torch.empty(1 << 9, rows, dtype=dtype).t() if one % 2 else torch.empty_like(samples[one])
                   for one in range(size)]
        given = samples[rank].t().contiguous().t()
        dist.all_gather(outputs, given)
        for found, wanted in zip(outputs, samples):
            same(found, wanted)
    uneven = [sample(one, shape=(rows * (1 + 2 * one), 1 << 9)) for one in range(size)]
    outputs = [torch.empty_like(one) for one in uneven]
    work = dist.all_gather(outputs, uneven[rank], async_op=True)
    assert work.get_future().wait()[0] is not None and work.is_success()
    for found, wanted in zip(outputs, uneven):
        same(found, wanted)
    for op, naive in ((dist.ReduceOp.SUM, torch.add), (dist.ReduceOp.MAX, torch.maximum), (dist.ReduceOp.AVG, torch.add)):
        inputs = [[sample(10 * one + to, shape=(rows, 1 << 9)) for to in range(size)] for one in range(size)]
        mine = [one.clone() for one in inputs[rank]]
        output = torch.empty(1 << 9, rows).t()
        dist.reduce_scatter(output, mine, op=op)
        wanted = reduced(naive, [one[rank] for one in inputs])
        same(output, wanted / size if op == dist.ReduceOp.AVG else wanted)
        for found, before in zip(mine, inputs[rank]):
            same(found, before)
        dist.reduce_scatter(mine[rank], mine, op=op)  # into one of the inputs
        same(mine[rank], wanted / size if op == dist.ReduceOp.AVG else wanted)


def messages(rank, size):
    if size < 2:
        return
    following, before = (rank + 1) % size, (rank - 1) % size
    sent, received = sample(rank, torch.bool), torch.empty(3, 4, dtype=torch.bool)
    works = [dist.isend(sent, following, tag=7), dist.irecv(received, before, tag=7)]
    for work in works:
        work.wait()
    same(received, sample(before, torch.bool))
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.empty(3, 4)
            source = dist.recv(tensor)
            same(tensor, sample(source))
            seen.add(source)
        assert seen == set(range(1, size)), seen
    else:
        dist.send(sample(rank), 0)
    dist.barrier()  # a message to any receiver that is sent now would have been received above
    tensor = torch.empty(3, 4)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sample(rank), following),
                                        dist.P2POp(dist.irecv, tensor, before)]):
        work.wait()
    same(tensor, sample(before))


def futures(rank, size):
    """Many operations in flight at once, whose futures complete by themselves, in any order of asking."""
    tensors = [torch.full((1000,), float(rank + number)) for number in range(600)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = [work.get_future().then(lambda done: done.value()[0] * 2) for work in reversed(works)]
    total = sum(range(size))
    for number, future in zip(reversed(range(600)), doubled):
        same(future.wait(), torch.full((1000,), 2.0 * (total + size * number)))


class OnGpu(torch.Tensor):
    """Stands for a tensor of a GPU, which no operation may use in place. It shows nothing of streams."""
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)


def of_gpus(rank, size):
    group = dist.distributed_c10d._get_default_group()
    plain = [sample(one) for one in range(size)]
    own = plain[rank].clone().as_subclass(OnGpu)
    array = wire(own, "tensor", True, True)
    assert array.tensor.data_ptr() != own.data_ptr() and array.finish is not None
    group.allreduce([own]).wait()
    same(own.as_subclass(torch.Tensor), sum(plain))
    outputs = torch.zeros(size, 3, 4).as_subclass(OnGpu)
    group.allgather([list(outputs)], [plain[rank].clone().as_subclass(OnGpu)]).wait()
    same(outputs.as_subclass(torch.Tensor), torch.stack(plain))
    parts = list(torch.stack(plain).as_subclass(OnGpu))
    assert joined(parts, "inputs", False).tensor.data_ptr() != parts[0].data_ptr()
    sent = torch.stack(plain).as_subclass(OnGpu)
    received = torch.zeros(3, 4).as_subclass(OnGpu)
    group.reduce_scatter([received], [list(sent)]).wait()
    same(received.as_subclass(torch.Tensor), plain[rank] * size)
    group.broadcast([received]).wait()
    same(received.as_subclass(torch.Tensor), plain[0] * size)


class Collectives(unittest.TestCase):
    """Each case for 1, 2 and 3 ranks."""


def case(function):
    def test(self):
        for size in SIZES:
            with self.subTest(size=size):
                run(size, function)
    return test


for checked in (reductions, special_numbers, moves, exchanges, layouts, sparse, large_lists, messages,
                futures, of_gpus):
    setattr(Collectives, f"test_{checked.__name__}", case(checked))

if __name__ == "__main__":
    unittest.main()
