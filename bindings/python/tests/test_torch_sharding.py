"""Models whose parameters are divided over the ranks of the backend "dtrain" (FSDP in both versions, DTensor, tensor
parallelism) train as in one process; so do those under torch's own checks of calls (TORCH_DISTRIBUTED_DEBUG=DETAIL).

SPDX-License-Identifier: Apache-2.0
"""
import copy
import unittest

from test_torch_ddp import alone, close, network, train
from torch_ranks import OLD, dist, initialize, run, torch


def mesh_of(size):
    return torch.distributed.device_mesh.init_device_mesh("cpu", (size,))


def fully_sharded(rank, size):
    """FSDP2: parameters are DTensors, gathered before each layer and freed after it."""
    from torch.distributed.fsdp import fully_shard
    own = network()
    wanted = alone(copy.deepcopy(own), size)
    for layer in own:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh_of(size))
    fully_shard(own, mesh=mesh_of(size))
    train(own, rank, size)
    for found, other in zip(own.parameters(), wanted.parameters()):
        assert torch.allclose(found.full_tensor(), other), (found.full_tensor() - other).abs().max()


def flat_sharded(rank, size):
    """FSDP1: layers are flat parameters, whose storages are resized."""
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    own = network()
    wanted = alone(copy.deepcopy(own), size)
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        inner = copy.deepcopy(own)
        for index, layer in enumerate(inner):
            if list(layer.parameters()):
                inner[index] = FullyShardedDataParallel(layer, sharding_strategy=strategy, device_id=torch.device("cpu"))
        model = FullyShardedDataParallel(inner, sharding_strategy=strategy, device_id=torch.device("cpu"))
        train(model, rank, size)
        with FullyShardedDataParallel.summon_full_params(model):
            close(model, wanted)


def distributed_tensors(rank, size):
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    mesh = mesh_of(size)
    whole = torch.arange(float(5 * size * 2 * size)).reshape(5 * size, 2 * size)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(rows.to_local(), whole.chunk(size)[rank])
    assert torch.equal(rows.redistribute(mesh, [Replicate()]).to_local(), whole)
    assert torch.equal(rows.redistribute(mesh, [Shard(1)]).to_local(), whole.chunk(size, 1)[rank])  # all-to-all
    partial = DTensor.from_local(torch.full((2, size), float(rank)), mesh, [Partial()])
    assert torch.equal(partial.full_tensor(), torch.full((2, size), float(sum(range(size)))))
    assert torch.equal(partial.redistribute(mesh, [Shard(1)]).to_local(), torch.full((2, 1), float(sum(range(size)))))
    product = rows @ distribute_tensor(whole.t().contiguous(), mesh, [Replicate()])
    assert torch.equal(product.full_tensor(), whole @ whole.t())


def parallel_tensors(rank, size):
    """The columns of one layer and the rows of the next one are on different ranks."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    torch.manual_seed(4)
    own = torch.nn.Sequential(torch.nn.Linear(6, 4 * size), torch.nn.ReLU(), torch.nn.Linear(4 * size, 3)).double()
    wanted = copy.deepcopy(own)
    parallelize_module(own, mesh_of(size), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    inputs = torch.randn(5, 6).double()
    for model in (own, wanted):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs).square().sum().backward()
            optimizer.step()
    for found, other in zip(own.parameters(), wanted.parameters()):
        assert torch.allclose(found.full_tensor(), other), (found.full_tensor() - other).abs().max()


def checked(rank, size, path, backend, says):
    """torch compares the calls of the ranks through gloo where it wraps the group; the library does by itself."""
    from torch.testing._internal.distributed import fake_pg  # noqa: F401  pylint: disable=unused-import
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    initialize(rank, size, path, backend)
    own = network()
    wanted = alone(copy.deepcopy(own), size)
    model = torch.nn.parallel.DistributedDataParallel(own)
    train(model, rank, size)
    close(model.module, wanted)
    group = dist.new_group([0, 1])
    dist.barrier(group=group)
    dist.monitored_barrier()
    every = [None] * size
    dist.all_gather_object(every, rank)
    assert every == list(range(size))
    try:
        dist.all_reduce(torch.ones(3 + rank))
        raise AssertionError("nobody has seen that the tensors differ")
    except RuntimeError as error:
        for text in says:
            assert text in str(error), error
    dist.destroy_process_group()


@unittest.skipIf(OLD, "DTensor and FSDP for the CPU are newer than this torch")
class Sharding(unittest.TestCase):
    def test_fully_sharded(self):
        run(2, fully_sharded)

    def test_flat_sharded(self):
        run(2, flat_sharded)

    def test_distributed_tensors(self):
        for size in (2, 3):
            run(size, distributed_tensors)

    def test_parallel_tensors(self):
        run(2, parallel_tensors)


@unittest.skipIf(OLD, "this torch sets the level of checks by its environment only")
class Checks(unittest.TestCase):
    def test_whole_group(self):
        run(2, checked, "dtrain", ("ranks made different calls", "f32[3]", "f32[4]"), backend=None)

    @unittest.skipUnless(dist.is_gloo_available(), "torch has no gloo")
    def test_backend_of_a_group(self):
        run(2, checked, "cpu:dtrain,cuda:fake", ("mismatch", "TensorShape=[3]", "TensorShape=[4]"), backend=None)


if __name__ == "__main__":
    unittest.main()
