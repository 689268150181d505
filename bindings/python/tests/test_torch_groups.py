"""Groups, object collectives, barriers, forks and the two forms of the backend "dtrain" of torch.distributed.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import datetime
import os
import pathlib
import threading
import time
import unittest
import zlib

from torch_ranks import OLD, dist, initialize, run, torch

import dtrain
import dtrain.torch


def threads():
    """How many there are, without those that ask the kernel for huge pages, which end by themselves."""
    count = 0
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            count += pathlib.Path("/proc/self/task", task, "comm").read_text() != "dtrain-pages\n"
    return count


def subgroups(rank, size):
    pairs = [[0, 1], [1, 2], [0, 2], [0, 1, 2]]
    groups = [dist.new_group(ranks) for ranks in pairs]
    for ranks, group in zip(pairs, groups):
        if rank not in ranks:
            continue
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == sum(ranks), (ranks, tensor)
        assert dist.get_rank(group) == ranks.index(rank) and dist.get_world_size(group) == len(ranks)
        tensor = torch.tensor([float(rank)])
        dist.broadcast(tensor, ranks[-1], group=group)
        assert tensor.item() == ranks[-1]
    again = dist.new_group([0, 1])  # the same ranks as before
    if rank < 2:
        tensor = torch.tensor([1.0])
        dist.all_reduce(tensor, group=again)
        dist.all_reduce(tensor, group=groups[0])
        assert tensor.item() == 4.0
        dist.destroy_process_group(again)
    return size


def many_groups(rank, size):
    """Groups have neither threads nor contexts of their own."""
    dist.barrier()
    before = threads()
    groups = [dist.new_group(list(range(size))) for _ in range(30)]
    for group in groups:
        dist.barrier(group=group)
    end = time.monotonic() + 60  # one may not have its name yet
    while threads() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert threads() <= before, (before, threads(), rank)


def names(rank, size):
    """Names of one hash value are different groups, of the same ranks at the same time."""
    first, second = "plumless", "buckeroo"
    assert zlib.crc32(first.encode()) == zlib.crc32(second.encode())
    job = dist.distributed_c10d._get_default_group()._job
    groups, limit = {}, datetime.timedelta(seconds=60)

    def make(name):
        groups[name] = job.group([0, 1], name, limit)
    makers = [threading.Thread(target=make, args=(name,)) for name in ((first, second) if rank else (second, first))]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    for name, value in ((first, 1.0), (second, 2.0)):
        tensor = torch.tensor([value])
        groups[name].allreduce(tensor)
        assert tensor.item() == 2 * value, (name, tensor)
        groups[name].close()


def objects(rank, size):
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "more": [rank] * rank})
    assert every == [{"rank": one, "more": [one] * one} for one in range(size)]
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(("of", rank), gathered, dst=1)
    assert gathered == ([("of", one) for one in range(size)] if rank == 1 else None)
    told = [f"from {rank}", rank]
    dist.broadcast_object_list(told, src=1)
    assert told == ["from 1", 1]
    part = [None]
    dist.scatter_object_list(part, [f"for {one}" for one in range(size)] if rank == 0 else None, src=0)
    assert part == [f"for {rank}"]


def again(rank, size, path):
    """The default group is destroyed and made again, in the same process and over the same store."""
    store = dist.FileStore(path, size)
    for turn in range(3):  # torch's own barrier over the store had one key before 2.0
        initialize(rank, size, path, store=dist.PrefixStore(str(turn) if OLD else "", store))
        tensor = torch.tensor([turn + rank])
        dist.all_reduce(tensor)
        assert tensor.item() == turn * size + sum(range(size))
        dist.barrier()
        dist.destroy_process_group()
    contexts = [one for one in dtrain._context._open if not one.closed]
    assert not contexts, contexts


def forks(rank, size):
    """Workers of a DataLoader are forked from ranks; they neither use nor end the group."""
    dataset = torch.utils.data.TensorDataset(torch.arange(20.0))
    for _ in range(2):
        loader = torch.utils.data.DataLoader(dataset, batch_size=5, num_workers=2, multiprocessing_context="fork")
        total = torch.zeros(1)
        for (batch,) in loader:
            total += batch.sum()
            dist.all_reduce(batch)
        assert total.item() == 190.0
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
            text = "no error"
        except RuntimeError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    assert "forked" in text, text
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size, rank


def monitored(rank, size):
    group = dist.distributed_c10d._get_default_group()
    group.monitored_barrier(datetime.timedelta(seconds=30))
    if rank == 2:
        time.sleep(3)  # rank 0 gives up meanwhile
    try:
        group.monitored_barrier(datetime.timedelta(seconds=1), wait_all_ranks=True)
        raise AssertionError("rank 2 was not missed")
    except RuntimeError as error:
        assert "timeout" in str(error) or "Timed out" in str(error), error
        if rank == 0:
            assert "Rank 2 failed to pass monitoredBarrier" in str(error), error
    store = dist.distributed_c10d._get_default_store()
    if rank == 2:
        time.sleep(1)
        store.add("rank 2 comes", 1)
    group.monitored_barrier(datetime.timedelta(seconds=30))  # not passed by rank 2's late message for the one before
    assert store.add("rank 2 comes", 0) == 1
    assert size == 3


def many_threads(rank, size):
    """Each thread has a group; their operations are in flight together."""
    groups = [dist.new_group(list(range(size))) for _ in range(4)]
    wrong = []

    def work(group, number):
        for turn in range(50):
            tensor = torch.full((100 * number + 1,), float(rank + turn))
            dist.all_reduce(tensor, group=group, async_op=turn % 2 == 0) and None
            done = dist.all_reduce(torch.zeros(1), group=group, async_op=True)
            done.wait()
            if tensor[0].item() != sum(range(size)) + turn * size:
                wrong.append((number, turn, tensor))
    runners = [threading.Thread(target=work, args=(group, number)) for number, group in enumerate(groups)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert not wrong, wrong[0]


def beside_gloo(rank, size):
    """A group of dtrain in a program whose default group is another backend's."""
    group = dist.new_group([0, 2], backend="dtrain")
    if rank != 1:
        tensor = torch.tensor([rank + 1.0])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == 4.0
    tensor = torch.tensor([1.0])
    dist.all_reduce(tensor)
    assert tensor.item() == size


def backend_form(rank, size):
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor)
    assert tensor.item() == sum(range(size))
    work = dist.all_reduce(tensor, async_op=True)
    assert work.get_future().wait()[0].item() == size * sum(range(size))
    assert isinstance(dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu")),
                      dtrain.torch._forms.Backend)
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.barrier(group=group)
    every = [None] * size
    dist.all_gather_object(every, rank)
    assert every == list(range(size))


def gpus_alone(rank, size):
    """Tensors of the CPU travel by gloo; helpers find the part of GPUs, which is dtrain's."""
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor)
    assert tensor.item() == sum(range(size))
    own = dtrain.torch._access.group_of(None)
    assert isinstance(own, dtrain.torch._forms.Backend) and own.communicator.size == size


def options(rank, size, path):
    initialize(rank, size, path, pg_options={"transports": "tcp"})
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    names = [device["name"] for device in dist.distributed_c10d._get_default_group().communicator._context.describe()[
        "transports"]]
    assert tensor.item() == size and names == ["tcp"], names
    dist.destroy_process_group()


def traced(rank, size, path):
    """Calls are in the library's timeline, under torch's names, and in torch's profiler."""
    initialize(rank, size, path, pg_options={"timeline": f"{path}.%r.json"})
    group = dist.new_group([0, 1])
    with torch.profiler.profile() as profile:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3), async_op=True).wait()
        dist.broadcast(torch.ones(3), 0, group=group)
        dist.all_reduce_coalesced([torch.ones(3), torch.ones(2)])
        dist.all_reduce(torch.ones(3).to_sparse())
    seen = [event.key for event in profile.key_averages() for _ in range(event.count) if event.key.startswith("dtrain:")]
    assert sorted(seen) == ["dtrain:all_reduce"] * 3 + ["dtrain:all_reduce_coalesced", "dtrain:broadcast"], seen
    whole = dist.distributed_c10d._get_default_group()
    names = [whole._name, group._name]
    assert names[0] != names[1], names
    whole.communicator._context.stop_timeline()
    with open(f"{path}.{rank}.json", encoding="utf-8") as file:
        text = file.read()
    for what, name, count in (("all_reduce", names[0], 3), ("broadcast", names[1], 1), ("all_reduce_coalesced", names[0], 1)):
        assert text.count(f'"torch: {what}, group {name}"') == count, text
    assert text.count('"name":"allreduce"') == 4, text  # the library's records


class Groups(unittest.TestCase):
    def test_subgroups(self):
        run(3, subgroups)

    def test_many_groups(self):
        run(2, many_groups)

    def test_names(self):
        run(2, names)

    def test_objects(self):
        run(3, objects)

    def test_again(self):
        run(2, again, backend=None)

    def test_forks(self):
        run(2, forks)

    def test_monitored_barrier(self):
        run(3, monitored)

    def test_threads(self):
        run(2, many_threads)

    @unittest.skipUnless(dist.is_gloo_available(), "torch has no gloo")
    def test_beside_gloo(self):
        run(3, beside_gloo, backend="gloo")

    @unittest.skipIf(OLD, "one backend for each group before torch 2.0")
    def test_backend_form(self):
        run(3, backend_form, backend="cpu:dtrain,cuda:gloo")

    @unittest.skipIf(OLD, "one backend for each group before torch 2.0")
    def test_gpus_alone(self):
        run(2, gpus_alone, backend="cpu:gloo,cuda:dtrain")

    def test_options(self):
        run(2, options, backend=None)

    def test_traced(self):
        run(2, traced, backend=None)

    def test_alone(self):
        run(1, objects_alone)


def objects_alone(_rank, _size):
    every = [None]
    dist.all_gather_object(every, 1)
    assert every == [1]


if __name__ == "__main__":
    unittest.main()
