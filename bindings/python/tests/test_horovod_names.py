"""How operations of dtrain.horovod.torch find each other: by name, in any order; and what goes wrong with them.

SPDX-License-Identifier: Apache-2.0
"""
import os
import random
import signal
import tempfile
import threading
import time
import unittest

from horovod_ranks import refusal, run
import torch

import dtrain.horovod.torch as hvd
from dtrain.horovod.common import _job


def any_order(rank, size, seed):
    """Each rank submits the same operations in an order of its own, from two threads."""
    for turn in range(3):
        order = list(range(40))
        random.Random(seed + 100 * rank + turn).shuffle(order)
        handles, lock = {}, threading.Lock()

        def submit(part, handles=handles, lock=lock):
            for index in part:
                tensor = torch.full((index + 1,), float(rank + 1))
                handle = (hvd.allgather_async(tensor, f"x{index}") if index % 4 == 1
                          else hvd.broadcast_async(tensor, index % size, f"x{index}") if index % 4 == 2
                          else hvd.allreduce_async(tensor, name=f"x{index}", op=hvd.Sum))
                with lock:
                    handles[index] = handle
        threads = [threading.Thread(target=submit, args=(order[half::2],)) for half in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for index in reversed(order):
            found = hvd.synchronize(handles[index])
            total = {1: (index + 1) * sum(range(1, size + 1)), 2: (index % size + 1) * (index + 1)}.get(
                index % 4, (index + 1) * sum(range(1, size + 1)))
            assert found.sum() == total, (turn, index, found)


def handles_and_names(rank, size):
    done = hvd.allreduce_async(torch.ones(3), name="first")
    while not hvd.poll(done):
        time.sleep(0.001)
    assert hvd.synchronize(done).sum() == 3
    assert hvd.synchronize(done) is None
    assert "no operation with handle" in refusal(hvd.poll, done, kind=ValueError)
    if rank == 0:  # until another rank submits it, this is in flight
        first = hvd.allreduce_async(torch.ones(3), name="twice")
        again = refusal(hvd.allreduce_async, torch.ones(3), name="twice", kind=ValueError)
        gather = hvd.allgather_async(torch.ones(3), name="twice")  # names are those of a kind
        hvd.barrier()
    else:
        hvd.barrier()
        first = hvd.allreduce_async(torch.ones(3), name="twice")
        gather = hvd.allgather_async(torch.ones(3), name="twice")
        again = ""
    assert hvd.synchronize(first).sum() == 3 and len(hvd.synchronize(gather)) == 3 * size
    long = "n" * 1000
    assert hvd.allreduce(torch.ones(1), name=long + "1", op=hvd.Sum) == size
    return again


def mismatches(rank, size):
    """All ranks get the error, and go on."""
    found = {}

    def fails(what, function, *arguments, **named):
        found[what] = refusal(function, *arguments, **named)
    fails("count", hvd.allreduce, torch.ones(3 + rank), name="a")
    fails("shape", hvd.allreduce, torch.ones((2, 3) if rank else (3, 2)), name="b")
    fails("dtype", hvd.allreduce, torch.ones(3, dtype=torch.float32 if rank else torch.float64), name="c")
    fails("op", hvd.allreduce, torch.ones(3), name="d", op=hvd.Sum if rank else hvd.Max)
    fails("factor", hvd.allreduce, torch.ones(3), name="e", prescale_factor=1.0 + rank)
    fails("root", hvd.broadcast, torch.ones(3), 1 if rank else 0, name="f")
    fails("rows", hvd.allgather, torch.ones(2, 3 + rank), name="g")
    fails("scalar", hvd.allgather, torch.tensor(1.0), name="h")
    fails("splits", hvd.alltoall, torch.ones(size), [1] * size if rank else [size + 1] * size, name="i")
    fails("no multiple", hvd.alltoall, torch.ones(size + 1 - (rank > 0)), name="j")
    fails("adasum", hvd.reducescatter, torch.ones(size), op=hvd.Adasum, name="k")
    for _ in range(2):
        hvd.allreduce(torch.ones(2, 3), name="known")
    fails("known", hvd.allreduce, torch.ones((2, 3) if rank else (3, 2)), name="known")
    assert hvd.allreduce(torch.ones(2, 3), name="known", op=hvd.Sum).sum() == 6 * size
    assert hvd.allreduce(torch.ones(2), name="b", op=hvd.Sum).sum() == 2 * size
    for kind, bad in ((ValueError, torch.zeros(2, dtype=torch.bool)), (ValueError, torch.ones(2).to_sparse()),
                      (ValueError, [1.0])):
        refusal(hvd.allreduce_, bad, kind=kind)
    return found


def never_submitted(rank, size, path):
    """Rank 1 submits it when rank 0 has given up. Other operations go on."""
    if rank == 0:
        text = refusal(hvd.allreduce, torch.ones(3), name="lonely")
        open(path, "w", encoding="ascii").close()
    else:
        end = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.01)
        text = refusal(hvd.allreduce, torch.ones(3), name="lonely")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == size
    return text


def killed(rank, size):
    hvd.allreduce(torch.ones(3), name="before")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    error = None
    try:
        for _ in range(1000):
            hvd.allreduce(torch.ones(3), name="before")
            hvd.allgather(torch.ones(3))
    except hvd.HorovodInternalError as caught:
        error = caught
    hvd.shutdown()
    return error.rank, error.lost, str(error)


def uneven(rank, size):
    """Rank r has r + 1 batches. Some names are known when others join, and others are new."""
    for first in range(2):
        for batch in range(rank + 1):
            there = [other for other in range(size) if other >= batch]
            total = hvd.allreduce(torch.full((5,), float(rank + 1)), name="known", op=hvd.Sum)
            assert total[0] == sum(other + 1 for other in there), (first, batch, total)
            mean = hvd.allreduce(torch.full((5,), float(size)), name=f"new {first} {batch}")
            assert mean[0] == len(there), mean
        last = hvd.join()
        assert last == size - 1, last
        hvd.barrier()
    texts = []
    if rank != 0:
        texts = [refusal(hvd.allgather, torch.ones(2)), refusal(hvd.broadcast, torch.ones(2), 1),
                 refusal(hvd.allreduce, torch.ones(2), op=hvd.Max)]
    hvd.join()
    assert hvd.allgather_object(rank) == list(range(size))  # has no name; rank 0 has missed one
    return texts


def in_sets(rank, size):
    """Rank 2 of three joins. It is the second rank of the set of 1 and 2, the first of none, and not in that of 0 and
    1; and once more with all names known."""
    both, apart = hvd.add_process_set([1, 2]), hvd.add_process_set([0, 1])
    texts = []
    for turn in range(2):
        for one in (both, apart):
            if one.included():
                assert hvd.allreduce(torch.ones(2), name="known", op=hvd.Sum, process_set=one)[0] == 2
                hvd.allreduce(torch.ones(2), name="most", op=hvd.Max, process_set=one)
        early = hvd.allreduce_async(torch.ones(2), name=f"early {turn}", op=hvd.Sum, process_set=both) if rank else 0
        if rank == 1:
            for name in ("known", f"new {turn}", None):
                assert hvd.allreduce(torch.full((2,), 3.0), name=name, op=hvd.Sum, process_set=both)[0] == 3
                assert hvd.allreduce(torch.full((2,), 4.0), name=name, process_set=both)[0] == 2
            began = time.monotonic()
            for name in ("named", None):
                texts += [refusal(hvd.allgather, torch.ones(2), name=name, process_set=both),
                          refusal(hvd.broadcast, torch.ones(2), 1, name=name, process_set=both),
                          refusal(hvd.alltoall, torch.ones(2), name=name, process_set=both),
                          refusal(hvd.reducescatter, torch.ones(2), name=name, process_set=both),
                          refusal(hvd.allreduce, torch.ones(2), op=hvd.Max, name=name, process_set=both),
                          refusal(hvd.barrier, process_set=both)]
            refusal(hvd.allreduce, torch.ones(2), name="most", op=hvd.Max, process_set=both)
            assert time.monotonic() - began < 30
        if rank != 2:
            assert hvd.allgather(torch.ones(2), process_set=apart).sum() == 4
        assert rank == 0 or hvd.synchronize(early)[0] == 2
        hvd.join()
        hvd.barrier()
    assert rank == 0 or hvd.allgather(torch.ones(2), process_set=both).sum() == 4  # has no name; rank 2 has missed some
    return texts


def lost_in_set(rank, size, path):
    """Rank 2 dies. Rank 1's join() fails, so the set of 0 and 1 is broken: it does not add zeros for rank 1."""
    pair, other = hvd.add_process_set([1, 2]), hvd.add_process_set([0, 1])
    found = None
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    elif rank == 1:
        try:
            hvd.allgather(torch.ones(1), process_set=pair)
        except hvd.HorovodInternalError as error:
            found = error.rank, str(error)
        assert "rank 2" in refusal(hvd.join)
        open(path, "w", encoding="ascii").close()
    else:
        end = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.01)
        found = None, refusal(hvd.allreduce, torch.ones(1), process_set=other)
    hvd.shutdown()
    return found


def ended(rank, size):
    """shutdown() ends what other threads wait for."""
    errors = []

    def wait(function, *arguments):
        try:
            function(*arguments)
        except hvd.HorovodInternalError as error:
            errors.append(str(error))
    if rank == 0:
        threads = [threading.Thread(target=wait, args=what) for what in (
            (hvd.allgather, torch.ones(1), "lonely"), (hvd.allreduce, torch.ones(1)))]
        for thread in threads:
            thread.start()
        late = hvd.allreduce_async(torch.ones(1), name="late")
        while len(_job.State.job.engines[0]._running) < 3:
            time.sleep(0.01)
        hvd.shutdown()
        for thread in threads:
            thread.join()
        assert hvd.synchronize(late) is None  # it is forgotten
        hvd.init()
    else:
        assert "rank 0 destroyed" in refusal(hvd.barrier)
        hvd.shutdown()
        hvd.init()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == size
    return len(errors)


class Names(unittest.TestCase):
    def test_any_order(self):
        seed = random.randrange(1 << 30)
        with self.subTest(seed=seed):
            run(3, any_order, seed)

    def test_handles_and_names(self):
        again, _ = run(2, handles_and_names)
        self.assertIn("allreduce.twice: an operation with the same name is in flight", again)

    def test_mismatches(self):
        wanted = {
            "count": r"allreduce\.a: .*rank 0 has a tensor of shape \[3\]; rank 1 has a tensor of shape \[4\]",
            "shape": r"rank 0 has a tensor of shape \[3, 2\]; rank 1 has a tensor of shape \[2, 3\]",
            "dtype": r"rank 0 has a tensor of float64\[3\]; rank 1 has a tensor of float32\[3\]",
            "op": "rank 0 has op Max; rank 1 has op Sum",
            "factor": "rank 0 has prescale_factor 1.0 .*rank 1 has prescale_factor 2.0",
            "root": "rank 0 has root rank 0; rank 1 has root rank 1",
            "rows": r"only the first dimension may differ",
            "scalar": "rank 0: its tensor has no dimensions",
            "splits": "rank 0: its splits are negative, or their sum is more",
            "no multiple": "rank 0: the first dimension of its tensor is no multiple",
            "adasum": "rank 0: the op cannot be used here",
            "known": r"allreduce\.known: the ranks' calls do not fit together: this rank has float32\[(3, 2|2, 3)\]",
        }
        for found in run(2, mismatches):
            self.assertEqual(sorted(found), sorted(wanted))
            for what, text in found.items():
                self.assertRegex(text, wanted[what])

    def test_a_name_that_a_rank_never_submits(self):
        for patience in ({"DTRAIN_OP_TIMEOUT": "3s"}, {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3"}):
            with tempfile.TemporaryDirectory() as folder:
                for text in run(2, never_submitted, os.path.join(folder, "given up"), **patience):
                    self.assertIn('"allreduce.lonely": not submitted by rank 1', text)

    def test_a_rank_that_dies(self):
        first, _, third = run(3, killed, lost=(1,))
        for rank, lost, text in (first, third):
            self.assertEqual(rank, 1, text)
            self.assertTrue(lost, text)
            self.assertRegex(text, "rank 1")

    def test_shutdown_ends_operations(self):
        self.assertEqual(run(2, ended), [2, 0])

    def test_join(self):
        for size in (1, 2, 3):
            for rank, texts in enumerate(run(size, uneven)):
                self.assertEqual(len(texts), 3 if rank else 0)
                for text in texts[:2]:
                    self.assertIn("rank 0 called join()", text)
                for text in texts[2:]:
                    self.assertIn("only allreduce with Sum and Average", text)

    def test_join_in_process_sets(self):
        for rank, texts in enumerate(run(3, in_sets)):
            self.assertEqual(len(texts), 24 if rank == 1 else 0)
            for text in texts:
                self.assertIn("rank 2 called join()", text)

    def test_a_rank_that_dies_in_a_process_set(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second, _ = run(3, lost_in_set, os.path.join(folder, "in set"), lost=(2,))
        self.assertEqual(second[0], 2, second[1])
        self.assertIn("in process set [1, 2], whose ranks are numbered from 0 here", second[1])
        self.assertIn("join() has failed", first[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
