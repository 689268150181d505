"""init(), ranks, process sets, timelines and requests of Horovod's API.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from array import array
from unittest import mock

from horovod_ranks import refusal, run
import torch

import dtrain
import dtrain.horovod.torch as hvd
from dtrain import horovod
from dtrain.horovod import _run
from dtrain.horovod.common import _job, _knobs, _request
from dtrain.horovod.common._request import Request
from launched import sum_by_horovod

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "HOROVOD.md"


def what_it_knows(rank, size):
    hvd.init()  # again: of no effect
    assert hvd.is_initialized() and (hvd.rank(), hvd.size()) == (rank, size)
    assert hvd.mpi_threads_supported() and hvd.gloo_built() and hvd.gloo_enabled()
    assert not any((hvd.mpi_built(), hvd.mpi_enabled(), hvd.nccl_built(), hvd.cuda_built(), hvd.rocm_built(),
                    hvd.ccl_built(), hvd.ddl_built()))
    return (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous())


def again(rank, size):
    """init() works after shutdown(), as often as it is called."""
    for _ in range(3):
        hvd.shutdown()
        hvd.shutdown()
        assert not hvd.is_initialized()
        assert "has not been initialized" in refusal(hvd.rank, kind=ValueError)
        assert "has not been initialized" in refusal(hvd.allreduce, torch.ones(1), kind=ValueError)
        hvd.init()
        assert hvd.allreduce(torch.ones(2), op=hvd.Sum).sum() == 2 * size
    return True


def another(rank, size):
    """A process that has been in one job may be in another one after it, as processes of Ray and Spark are."""
    hvd.shutdown()
    os.environ.update(DTRAIN_RANK="0", DTRAIN_SIZE="1")
    hvd.init()
    found = hvd.rank(), hvd.size(), hvd.allreduce(torch.ones(1), op=hvd.Sum).item()
    hvd.shutdown()
    return found


def sets(rank, size):
    one, pair = hvd.add_process_set([size - 1]), hvd.add_process_set(hvd.ProcessSet([1, 0]))
    assert hvd.global_process_set.process_set_id == 0 and hvd.global_process_set.ranks == list(range(size))
    assert (one.process_set_id, pair.process_set_id) == (1, 2)
    assert pair.ranks == [0, 1] and pair.size() == 2 and one.size() == 1
    assert pair.included() == (rank < 2) and one.included() == (rank == size - 1)
    mine = pair if rank < 2 else one
    for _ in range(2):
        assert hvd.allreduce(torch.ones(3), op=hvd.Sum, name="same name", process_set=mine).sum() == 3 * mine.size()
    assert hvd.allgather(torch.tensor([rank]), process_set=mine).tolist() == mine.ranks
    assert hvd.broadcast(torch.tensor([rank]), mine.ranks[-1], process_set=mine).tolist() == mine.ranks[-1:]
    assert mine.rank() == mine.ranks.index(rank)
    assert hvd.broadcast_object(rank, mine.ranks[0], process_set=mine) == mine.ranks[0]
    assert hvd.reducescatter(torch.ones(mine.size(), 2), op=hvd.Sum, process_set=mine).sum() == 2 * mine.size()
    hvd.barrier(process_set=mine)
    if rank == 2:
        assert "does not have rank 2" in refusal(hvd.allreduce, torch.ones(1), process_set=pair)
        assert "not part of" in refusal(pair.rank, kind=ValueError)
        assert "none of the ranks" in refusal(hvd.broadcast, torch.ones(1), 0, process_set=one, kind=ValueError)
    for wrong, text in (([0, 1], "duplicate"), (range(size), "duplicate"), ([0, size], "different ranks"),
                        ([0, 0], "different ranks"), ([], "different ranks"), ([-1], "different ranks"),
                        (["a"], "a list of ranks"), (5, "a list of ranks")):
        assert text in refusal(lambda given=wrong: hvd.add_process_set(hvd.ProcessSet(given)), kind=ValueError), text
    assert hvd.remove_process_set(pair) and pair.process_set_id is None and pair.size() is None
    assert not hvd.remove_process_set(pair) and not hvd.remove_process_set(hvd.global_process_set)
    assert "has not been registered" in refusal(hvd.allreduce, torch.ones(1), process_set=pair)
    assert hvd.add_process_set([0, 1]).process_set_id == 3
    hvd.shutdown()
    given = [hvd.ProcessSet([0]), hvd.ProcessSet([1, 2])]
    hvd.init(process_sets=given)
    assert [one.process_set_id for one in given] == [1, 2]
    hvd.shutdown()
    assert "duplicate" in refusal(hvd.init, process_sets=[hvd.ProcessSet([0]), hvd.ProcessSet([0])], kind=ValueError)
    assert not hvd.is_initialized()
    hvd.init(process_sets="dynamic")
    return True


def tables(rank, size):
    """Parameters on servers, beside operations by name."""
    table = hvd.global_process_set.communicator.table("numbers", length=2, rule="sgd", learning_rate=1.0)
    for _ in range(3):
        table.push(torch.ones(2))
        hvd.allreduce(torch.ones(3), name="beside")
    hvd.barrier()
    found = torch.zeros(2)
    table.pull(found)
    hvd.barrier()
    table.close()
    own = hvd.add_process_set([0])
    assert "no communicator" in refusal(lambda: own.communicator, kind=ValueError)
    return found.tolist()


def timelines(rank, size, path):
    hvd.start_timeline(path)
    hvd.allreduce(torch.ones(3), name="a tensor of the timeline")
    hvd.stop_timeline()
    hvd.stop_timeline()
    if rank == 0:
        with open(path, encoding="utf-8") as file:
            assert any("allreduce.a tensor of the timeline" in str(event) for event in json.load(file))
    hvd.start_timeline(path + ".%r")
    hvd.barrier()
    hvd.stop_timeline()
    assert os.path.exists(f"{path}.{rank}")
    missing = os.path.join(path + ".folder", "that", "is", "missing.%r")
    return "cannot" in refusal(hvd.start_timeline, missing)


class Jobs(unittest.TestCase):
    def test_what_it_knows(self):
        for size in (1, 2):
            self.assertEqual(run(size, what_it_knows), [(rank, size, 0, 1, True) for rank in range(size)])

    def test_places(self):
        places = [_job.place_of(rank, ["a", "b", "a", "b", "a"]) for rank in range(5)]
        self.assertEqual([place[:4] for place in places],
                         [(0, 3, 0, 2), (0, 2, 1, 2), (1, 3, 0, 2), (1, 2, 1, 2), (2, 3, 0, 1)])
        self.assertFalse(places[0].homogeneous)

    def test_again(self):
        run(1, again)
        run(2, again)
        self.assertEqual(run(2, another), [(0, 1, 1.0)] * 2)

    def test_process_sets(self):
        run(3, sets)

    def test_tables(self):
        self.assertEqual(run(2, tables), [[-6, -6]] * 2)

    def test_timelines(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(2, timelines, os.path.join(folder, "line")), [True, True])

    def test_a_communicator_of_mpi4py(self):
        class World:
            """Of one process."""
            def Get_size(self):  # pylint: disable=invalid-name
                return 1

            def Get_rank(self):  # pylint: disable=invalid-name
                return 0

            def allgather(self, value):
                return [value]
        hvd.init(World())
        self.addCleanup(hvd.shutdown)
        self.assertEqual((hvd.rank(), hvd.size()), (0, 1))
        self.assertEqual(hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist(), [1, 1])

    def test_common_needs_no_framework(self):
        code = ("import sys, dtrain.horovod.common.basics, dtrain.horovod.common.elastic\n"
                "sys.exit(any(name in sys.modules for name in ('torch', 'tensorflow', 'numpy')))")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False, timeout=100).returncode, 0)

    def test_wrong_arguments_of_init(self):
        for named, kind in (({"comm": [0, 1]}, NotImplementedError), ({"process_sets": "static"}, ValueError),
                            ({"process_sets": [[0, 1]]}, ValueError)):
            with self.assertRaises(kind):
                hvd.init(**named)
        self.assertFalse(hvd.is_initialized())


class Runs(unittest.TestCase):
    """horovod.run(): a job from within this program."""

    def test_processes_of_this_machine(self):
        found = horovod.run(sum_by_horovod, args=(3,), num_proc=2, hosts="localhost:2", use_gloo=True, verbose=2)
        self.assertEqual(found, [(0, 6.0), (1, 6.0)])
        with self.assertWarns(DeprecationWarning):
            self.assertEqual(horovod.run(sum_by_horovod, kwargs={"scale": 2}, np=1, start_timeout=60), [(0, 2.0)])

    def test_what_is_started(self):
        started = []
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(
                _run, "run_cluster", lambda *arguments, **settings: started.append((arguments, settings))):
            script = pathlib.Path(folder, "hosts.sh")
            script.write_text("#!/bin/sh\necho alpha:2\necho beta slots=1\n", encoding="ascii")
            script.chmod(0o700)
            file = pathlib.Path(folder, "hostfile")
            file.write_text("# all of them\nalpha slots=2 \n\nbeta:1\n", encoding="ascii")
            horovod.run(print, num_proc=3, hostfile=str(file), ssh_port=22, network_interface="eth0,eth1")
            horovod.run(print, num_proc=2, min_num_proc=1, max_num_proc=4, host_discovery_script=str(script))
            horovod.run(print, num_proc=2, min_num_proc=1)
        (first, given), (_, found), (_, here) = started
        self.assertEqual(first, (3, 0, print))
        self.assertEqual((given["backend"], given["hosts"], given["port"], given["env"]),
                         ("ssh", {"alpha": 2, "beta": 1}, 22, {"DTRAIN_TCP_INTERFACE": "eth0,eth1"}))
        self.assertEqual((found["backend"], found["elastic"], "hosts" in found), ("ssh", (1, 4), False))
        self.assertEqual(here["elastic"], (1, 2))
        self.assertNotIn("backend", here)

    def test_wrong_arguments(self):
        for named, kind, text in (({"hosts": "a", "hostfile": "b"}, ValueError, "one of hosts"),
                                  ({"processes": 3}, TypeError, "no argument 'processes'"),
                                  ({"hosts": "a b c"}, ValueError, "is not HOST or HOST:SLOTS")):
            with self.assertRaisesRegex(kind, text):
                horovod.run(print, **named)


class Requests(unittest.TestCase):
    def test_what_is_read_is_what_was_written(self):
        generator = random.Random(5)
        for _ in range(200):
            request = Request(generator.choice(_request.KINDS), generator.choice(_request.DTYPES),
                              tuple(generator.randrange(1 << 40) for _ in range(generator.randrange(17))),
                              generator.randrange(-1, 6), generator.randrange(-1, 9), generator.uniform(-5, 5),
                              generator.choice((0.0, 1.0, float("inf"), 1e-300)), generator.randrange(6))
            words = _request.encode(Request("barrier")) + _request.encode(request)
            self.assertEqual(_request.decode(words, 1), request)

    def test_impossible_shapes_are_refused(self):
        self.assertIn("rank 1: the shape [-2] is not possible",
                      _request.problem([Request("allgather", shape=(2,)), Request("allgather", shape=(-2,))]))

    def test_rubbish_is_read_without_failing(self):
        generator = random.Random(6)
        for _ in range(200):
            words = array("q", [generator.randrange(-(1 << 63), 1 << 63) for _ in range(2 * _request.WORDS)])
            self.assertTrue(_request.problem([_request.decode(words, 0), _request.decode(words, 1)]))

    def test_ranks_are_named_as_the_program_does(self):
        requests = [Request("broadcast", "float32", (2,), root=3), Request("broadcast", "float32", (2,), root=5)]
        self.assertEqual(_request.problem(requests, [3, 5]), "rank 3 has root rank 3; rank 5 has root rank 5")
        many = [Request("barrier")] + [Request("allgather")] * 11
        self.assertIn("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more have allgather", _request.problem(many))


class Knobs(unittest.TestCase):
    def test_variables(self):
        self.assertEqual(_knobs.queue_settings({}), {})
        self.assertEqual(_knobs.queue_settings({
            "HOROVOD_FUSION_THRESHOLD": "67108864", "HOROVOD_CYCLE_TIME": "2.5",
            "HOROVOD_STALL_CHECK_TIME_SECONDS": "30", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "0"}),
            {"bucket_bytes": 64 << 20, "cycle": 0.0025, "stall_warn": 30.0, "stall_fail": float("inf")})
        self.assertEqual(_knobs.queue_settings({"HOROVOD_STALL_CHECK_DISABLE": "1", "HOROVOD_FUSION_THRESHOLD": "0"}),
                         {"bucket_bytes": 4096, "stall_warn": float("inf")})
        for wrong in ("many", "inf", "nan"):
            with self.assertRaisesRegex(dtrain.ConfigError, "HOROVOD_FUSION_THRESHOLD"):
                _knobs.queue_settings({"HOROVOD_FUSION_THRESHOLD": wrong})

    def test_they_are_used(self):
        with mock.patch.dict(os.environ, {"HOROVOD_CYCLE_TIME": "soon"}):
            with self.assertRaisesRegex(dtrain.ConfigError, "HOROVOD_CYCLE_TIME='soon'"):
                hvd.init()
        self.assertFalse(hvd.is_initialized())


class Page(unittest.TestCase):
    def test_its_table_has_every_name(self):
        """Rows of the page's tables begin with names in backquotes. Those of TensorFlow and Keras are compared in
        tests/hosts/horovod_tensorflow_ops.py."""
        listed, others = set(), False
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                others = "TensorFlow" in line or "Keras" in line
            if line.startswith("| `") and not others:
                listed.update(name.split("(")[0] for name in line.split("|")[1].split("`")[1::2])
        self.assertEqual(sorted(set(hvd.__all__) - listed), [])
        for name in hvd.elastic.__all__:
            self.assertIn(f"elastic.{name}", listed)
        for name in listed:
            if not name.startswith(("HOROVOD_", "horovod", "elastic.", "Compression.", "-")) and name.isidentifier():
                self.assertTrue(hasattr(hvd, name), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
