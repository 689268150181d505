"""What goes wrong under torch.distributed on the backend "dtrain": ranks that die or never come, timeouts, wrong
arguments, calls that differ, ends with operations in flight. Each is an error that says so, never a hang.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import datetime
import os
import signal
import time
import unittest

from torch_ranks import dist, initialize, run, torch

import dtrain.torch

def failure(function, *arguments, **named):
    """The error that the call ends with."""
    try:
        function(*arguments, **named)
    except Exception as error:  # pylint: disable=broad-except
        return error
    raise AssertionError("there was no error")


def expect(error, kind, *texts):
    assert isinstance(error, kind), repr(error)
    for text in texts:
        assert text in str(error), f"{text!r} is not in: {error}"


def killed(rank, size):
    dist.all_reduce(torch.ones(10))
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work = dist.all_reduce(torch.ones(10), async_op=True)
    error = failure(work.wait)
    expect(error, RuntimeError, f"rank {size - 1}")
    assert error.rank == size - 1 and isinstance(error.__cause__, dtrain.PeerError), repr(error.__cause__)
    assert work.is_completed() and not work.is_success() and work.exception() is error
    expect(failure(dist.barrier), RuntimeError)


def killed_with_future(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    future = dist.all_reduce(torch.ones(10), async_op=True).get_future()
    expect(failure(future.wait), RuntimeError, "rank 1")
    expect(failure(future.then(lambda done: done.value()).wait), RuntimeError, "rank 1")


def killed_in_training(rank, size):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    expect(failure(lambda: [model(torch.ones(2, 4)).sum().backward() for _ in range(3)]), RuntimeError, "rank 1")


def timeouts(rank, size):
    short = datetime.timedelta(milliseconds=200)
    if rank == 0:
        work = dist.irecv(torch.ones(1), 1, tag=9)
        expect(failure(work.wait, short), RuntimeError, "Timed out")
        work.wait()  # it has gone on
        options = torch._C._distributed_c10d.BarrierOptions()
        options.timeout = short
        expect(failure(lambda: dist.group.WORLD.barrier(options).wait()), RuntimeError, "Timed out")
    else:
        time.sleep(2)
        dist.send(torch.ones(1), 0, tag=9)
        time.sleep(2)
        failure(dist.barrier)  # rank 0 has given up


def never_came(rank, size, path):
    if rank == 1:
        return
    expect(failure(initialize, rank, size, path, timeout=2.0), RuntimeError, "Timed out", "rank 1")


def differing(rank, size):
    """Tensors of other sizes or types than the other rank's: the error names both. A sender and a root may be done
    before anybody sees it."""
    count = 3 + rank
    ones, mine = torch.ones, torch.ones(3 + rank)
    both = [torch.ones(count) for _ in range(size)]
    differs = ("f32[3]", "f32[4]")
    cases = [
        (lambda group: dist.all_reduce(mine, group=group), (0, 1), differs),
        (lambda group: dist.all_reduce(mine, group=group, async_op=True).wait(), (0, 1), differs),
        (lambda group: dist.all_reduce(mine, group=group, async_op=True).get_future().wait(), (0, 1), differs),
        (lambda group: dist.all_reduce(ones(3).to(torch.int32 if rank else torch.float32), group=group), (0, 1), ("i32", "f32")),
        (lambda group: dist.all_reduce_coalesced([ones(2), mine], group=group), (0, 1), differs),
        (lambda group: dist.broadcast(mine, 0, group=group), (1,), differs),
        (lambda group: dist.reduce(mine, 0, group=group), (0,), differs),
        (lambda group: dist.all_gather(both, mine, group=group), (0, 1), differs),
        (lambda group: dist.gather(mine, both if rank == 0 else None, group=group), (0,), differs),
        (lambda group: dist.scatter(mine, both if rank == 0 else None, group=group), (1,), differs),
        (lambda group: dist.reduce_scatter(mine, both, group=group), (0, 1), differs),
        (lambda group: group.alltoall(both, [one.clone() for one in both]).wait(), (0, 1), ("12 bytes", "16 bytes")),
        (lambda group: dist.all_to_all_single(ones(2 * count), ones(2 * count), group=group), (0, 1), differs),
        (lambda group: group.send([ones(9)], 1, 0).wait() if rank == 0 else group.recv([mine], 0, 0).wait(), (1,),
         ("36 bytes", "16")),
    ]
    for number, (call, fails, texts) in enumerate(cases):
        group = dist.new_group([0, 1])
        if rank in fails:
            expect(failure(call, group), RuntimeError, *texts)
        else:
            try:
                call(group)
            except RuntimeError:
                pass  # it has heard of the other's error
        tensor = ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == size, number


def missing(rank, size):
    """A rank that never makes the call, under the timeout of the group."""
    group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
    if rank == 0:
        expect(failure(dist.all_reduce, torch.ones(1), group=group), RuntimeError, "Timed out", "it waits for rank 1")
    dist.barrier()
    group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
    if rank == 0:
        expect(failure(dist.all_reduce, torch.ones(1 << 20), group=group), RuntimeError, "Timed out", "it waits for rank 1")
    dist.barrier()
    group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
    if rank == 0:
        expect(failure(dist.recv, torch.ones(1), 1, group=group), RuntimeError, "Timed out", "recv from rank 1")
        future = dist.irecv(torch.ones(1), 1, group=group).get_future()
        expect(failure(future.wait), RuntimeError, "Timed out")
    dist.barrier()


def resized(rank, size):
    """Tensors that get other memory while their operations are in flight."""
    if rank == 0:
        tensor = torch.zeros(2)
        storage = dtrain.torch._tensors.storage_of(tensor)
        work = dist.irecv(tensor, 1)
        kept = torch.frombuffer((ctypes.c_float * 2).from_address(storage.data_ptr()), dtype=torch.float32)
        other = torch.zeros(2)
        tensor.set_(other)  # the old memory stays with the operation
        dist.barrier()
        work.wait()
        assert kept.tolist() == [1.0, 1.0] and tensor.tolist() == [0.0, 0.0]
        tensor = torch.ones(2)
        work = dist.isend(tensor, 1)  # short, so it has left already
        tensor.resize_(1 << 12)
        expect(failure(work.wait), RuntimeError, "resized")
    else:
        dist.barrier()
        dist.send(torch.ones(2), 0)
        dist.recv(torch.empty(2), 0)


def arguments(rank, size):
    group = dist.distributed_c10d._get_default_group()
    elsewhere = torch.ones(2, device="meta")
    for wrong in (lambda: dist.all_reduce(elsewhere), lambda: dist.broadcast(elsewhere, 0),
                  lambda: dist.all_gather([elsewhere] * size, elsewhere)):
        expect(failure(wrong), RuntimeError, "meta", "cpu()")
    quantized = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
    expect(failure(dist.all_reduce, quantized), TypeError, "qint8")
    expect(failure(dist.all_reduce, torch.ones(2, dtype=torch.bool), op=dist.ReduceOp.AVG), TypeError, "AVG")
    expect(failure(dist.all_reduce, torch.ones(2), op=dist.ReduceOp.BAND), Exception, "band")
    expect(failure(dist.broadcast, torch.ones(2).to_sparse(), 0), RuntimeError, "sparse")
    expect(failure(group.allreduce, [torch.ones(1), torch.ones(1)]), ValueError, "one tensor, not 2")
    expect(failure(group.allgather, [[torch.ones(1)]], [torch.ones(1)]), ValueError, "1 tensors for 2 ranks")
    expect(failure(group.alltoall_base, torch.ones(4), torch.ones(4), [1, 1], [2, 2]), ValueError, "output_split_sizes")
    expect(failure(group.alltoall_base, torch.ones(4), torch.ones(4), [1, 3], [4]), ValueError, "1 numbers for 2 ranks")
    expect(failure(group._allgather_base, torch.ones(5), torch.ones(2)), ValueError, "5 elements")
    expect(failure(group._allgather_base, torch.ones(4), torch.ones(2).int()), ValueError, "one dtype")
    expect(failure(group.send, [torch.ones(1)], 7, 0), Exception, "7")
    tensor = torch.ones(1)  # the group has survived all of that
    dist.all_reduce(tensor)
    assert tensor.item() == size, rank


def lost_tensors(rank, size):
    """Tensors that nobody holds while their operation runs."""
    works = [dist.all_reduce(torch.full((10000,), float(rank)), async_op=True) for _ in range(50)]
    values = [work.result()[0] for work in works]
    assert all(value[-1].item() == sum(range(size)) for value in values)
    for _ in range(50):
        dist.all_reduce(torch.full((10000,), float(rank)), async_op=True)  # neither are the works
    dist.barrier()


def ends(rank, size):
    """Destroying a group whose operations are in flight."""
    if rank == 0:
        work = dist.irecv(torch.ones(1), 1)
        future = work.get_future()
    begun = time.monotonic()
    dist.barrier()
    dist.destroy_process_group()
    assert time.monotonic() - begun < 30
    if rank == 0:
        group_is_gone = failure(future.wait)
        expect(group_is_gone, RuntimeError)


def aborts(rank, size):
    group = dist.distributed_c10d._get_default_group()
    dist.barrier()
    if rank == 0:
        group.abort()
        expect(failure(dist.all_reduce, torch.ones(1)), RuntimeError)
    else:
        expect(failure(dist.all_reduce, torch.ones(1)), RuntimeError, "rank 0")


def after_the_end(rank, size):
    group = dist.distributed_c10d._get_default_group()
    dist.destroy_process_group()
    group.shutdown()
    expect(failure(group.allreduce, [torch.ones(1)]), RuntimeError, "destroyed")


def interrupted(rank, size):
    """Ctrl-C ends a wait, of each kind, and the group is as before where the call can still be completed."""
    group = dist.group.WORLD
    if rank != 0:
        dist.barrier()
        dist.send(torch.ones(1), 0, tag=1)
        group.monitored_barrier(datetime.timedelta(seconds=50))
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    work = dist.irecv(torch.ones(1), 1, tag=1)
    for wait in (lambda: dist.recv(torch.ones(1), 1, tag=2), work.wait, lambda: work.wait(datetime.timedelta(seconds=50)),
                 lambda: group.monitored_barrier(datetime.timedelta(seconds=50))):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert isinstance(interrupt(wait), KeyboardInterrupt)
    dist.barrier()
    work.wait()
    group.monitored_barrier(datetime.timedelta(seconds=50))


def interrupted_collective(rank, size):
    """The rank that gives up breaks the group, so that the others need not wait for their timeouts."""
    if rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert isinstance(interrupt(lambda: dist.all_reduce(torch.ones(1))), KeyboardInterrupt)
        dist.distributed_c10d._get_default_group().abort()
    else:
        expect(failure(dist.recv, torch.ones(1), 0, tag=5), RuntimeError, "rank 0")


def interrupt(wait):
    try:
        wait()
    except BaseException as error:  # pylint: disable=broad-except
        return error
    return None


class Faults(unittest.TestCase):
    def test_killed(self):
        for size in (2, 3):
            run(size, killed, lost=(size - 1,))

    def test_killed_with_future(self):
        run(3, killed_with_future, lost=(1,))

    def test_killed_in_training(self):
        run(3, killed_in_training, lost=(1,))

    def test_timeouts(self):
        run(2, timeouts)

    def test_never_came(self):
        run(2, never_came, backend=None)

    def test_differing(self):
        run(2, differing)

    def test_missing(self):
        run(2, missing)

    def test_resized(self):
        run(2, resized)

    def test_arguments(self):
        run(2, arguments)

    def test_lost_tensors(self):
        run(2, lost_tensors)

    def test_ends(self):
        run(2, ends)

    def test_aborts(self):
        run(2, aborts)

    def test_after_the_end(self):
        run(2, after_the_end)

    def test_interrupted(self):
        run(2, interrupted)

    def test_interrupted_collective(self):
        run(2, interrupted_collective)


if __name__ == "__main__":
    unittest.main()
