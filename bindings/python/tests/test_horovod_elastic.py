"""Elastic training with Horovod's API, under dtrain-run: a lost worker costs no more than to the last commit, and those
that come get rank 0's state.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from horovod_ranks import refusal, run
import torch

import dtrain.horovod.torch as hvd
from dtrain.horovod.common import elastic
from dtrain.horovod.common.exceptions import HostsUpdatedInterrupt

SCRIPT = pathlib.Path(__file__).with_name("horovod_elastic.py")
RUN = os.path.join(os.environ["BUILD"], "bin", "dtrain-run")
LIMIT = 100  # seconds


class Jobs(unittest.TestCase):
    def job(self, workers, most, *arguments):
        """The events of each process, and the output."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([RUN, "--timeout", str(LIMIT), "--elastic", f"2:{most}", "-n", str(workers), "--",
                                   sys.executable, SCRIPT, folder, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=2 * LIMIT, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            found = [json.loads(path.read_text(encoding="ascii")) for path in pathlib.Path(folder).glob("*.json")]
        return found, done.stdout

    def check_ends(self, processes, output):
        ends = [events[-1] for events in processes if events[-1]["what"] == "ends"]
        self.assertGreaterEqual(len(ends), 2, output)
        for end in ends:
            self.assertEqual((end["history"], end["weights"]), (ends[0]["history"], ends[0]["weights"]), output)
        self.assertGreaterEqual(len(ends[0]["history"]), 30)
        return ends[0]

    def test_a_lost_worker_costs_what_came_after_the_last_commit(self):
        whole = self.check_ends(*self.job(3, 3))
        processes, output = self.job(3, 3, "kill", "1", "17")
        end = self.check_ends(processes, output)
        # The samples of a batch are the same on all ranks, so the losses do not depend on how many there are.
        for found, wanted in zip(end["history"], whole["history"]):
            self.assertAlmostEqual(found, wanted, 4)
        survivors = [events for events in processes if events[0]["batch"] == 0 and events[-1]["what"] == "ends"]
        self.assertEqual(len(survivors), 2, output)
        for events in survivors:
            entered = [event for event in events if event["what"] == "enters"]
            self.assertEqual(entered[1]["batch"], 15)
            self.assertEqual(entered[1]["done"], 15 * 2 * 3)
            self.assertEqual(entered[1]["seen"], whole["history"][:15])
            self.assertIn("reset", [event["what"] for event in events])

    def test_workers_that_come_get_the_state(self):
        processes, output = self.job(2, 3, "grow")
        self.check_ends(processes, output)
        come = [events for events in processes if events[0]["batch"] > 0]
        self.assertTrue(come, output)
        first = come[0][0]
        self.assertEqual(first["batch"] % 5, 0)
        twin = next(event for events in processes if events is not come[0] for event in events
                    if event["what"] == "enters" and event["batch"] == first["batch"])
        for what in ("weights", "seen", "done"):
            self.assertEqual(first[what], twin[what])


def states(rank, size):
    plain = elastic.ObjectState(hvd.broadcast_object, hvd.rank, batch=rank, name="x")
    plain.sync()
    assert plain.batch == 0
    plain.batch = 5
    plain.restore()
    assert plain.batch == 0
    plain.batch = 6
    plain.commit()
    plain.batch = 7
    plain.restore()
    assert plain.batch == 6
    model = torch.nn.Linear(2, 2)
    state = hvd.elastic.TorchState(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), epoch=rank)
    state.sync()
    assert state.epoch == 0 and state.model is model
    kept = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.zero_()
    state.epoch = 3
    state.restore()
    assert torch.equal(model.weight, kept) and state.epoch == 0
    called = []
    state.register_reset_callbacks([lambda: called.append(1)])
    state.on_reset()
    assert called == [1]

    @hvd.elastic.run
    def fails(_):
        hvd.allreduce(torch.ones(2 + rank))
    text = refusal(fails, state)  # a fault of the program: nothing that another attempt could mend
    assert "do not fit together" in text
    return True


class States(unittest.TestCase):
    def test_states(self):
        run(2, states)

    def test_a_fault_that_comes_again_ends_the_loop(self):
        """Without a commit in between, and with the same workers."""
        calls = []

        class Counted(elastic.State):
            def restore(self):
                calls.append("restore")

            def sync(self):
                calls.append("sync")

        class Job:
            size = 1

            class world:
                changes = {}

        def lost(_):
            raise hvd.HorovodInternalError("again", lost=True)

        def waits(state):
            if calls.count("reset"):
                return "done"
            raise HostsUpdatedInterrupt(skip)
        saved = elastic.init, elastic.is_elastic, elastic._job.current
        elastic.init, elastic.is_elastic, elastic._job.current = lambda: None, lambda: True, Job
        try:
            with self.assertRaisesRegex(hvd.HorovodInternalError, "again"):
                elastic.run_fn(lost, lambda: calls.append("reset"))(Counted(None, None))
            self.assertEqual(calls.count("restore"), elastic.MOST_RESETS)
            for skip, synced in ((False, 2), (True, 1)):
                calls.clear()
                self.assertEqual(elastic.run_fn(waits, lambda: calls.append("reset"))(Counted(None, None)), "done")
                self.assertEqual((calls.count("sync"), calls.count("restore")), (synced, 0))
        finally:
            elastic.init, elastic.is_elastic, elastic._job.current = saved

    def test_sampler(self):
        run(3, samples)


def samples(rank, size):
    sampler = hvd.elastic.ElasticSampler(list(range(20)), shuffle=True, seed=4)
    assert len(sampler) == 7
    parts = hvd.allgather_object(list(sampler))
    assert set().union(*parts) == set(range(20)) and all(len(part) == 7 for part in parts)
    sampler.record_batch(0, 4)
    again = hvd.elastic.ElasticSampler(list(range(20)), shuffle=True, seed=4)
    again.load_state_dict(sampler.state_dict())
    left = hvd.allgather_object(list(again))
    done = set().union(*[part[:4] for part in parts])
    assert len(done) == 12 and set().union(*left) == set(range(20)) - done
    again.set_epoch(1)
    assert len(again) == 7 and list(again) != parts[rank]
    again.load_state_dict({"epoch": 1, "processed_num": 20})
    assert len(again) == 0 and not list(again)
    return True


if __name__ == "__main__":
    unittest.main(verbosity=2)
