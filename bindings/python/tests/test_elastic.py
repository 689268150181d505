"""Elastic jobs of dtrain.launch on this machine: workers that fail are replaced, discovery adds and removes them, and
what ends such a job.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import dtrain
from dtrain import launch
from dtrain.launch import _discovery, _elastic
from dtrain.launch._elastic import Elastic, Placed, Policy
from dtrain.launch._hosts import Host, parse_hosts
from elastic_job import fail, fail_as_a_newcomer, fail_once, train
from launching import LIMIT, Files, quietly, said_by, wait_for_death


class Policies(unittest.TestCase):
    def policy(self, least=1, most=4, target=None, hosts="alpha:2,beta:2", timeout=600.0, discovery=None):
        return Policy(Elastic(least, most, timeout, discovery), parse_hosts(hosts), target)

    def test_free_slots_are_filled(self):
        policy = self.policy(most=3)
        placed = [Placed(0, "alpha", True)]
        self.assertEqual(policy.step(placed, 0).start, ["alpha", "beta"])
        self.assertEqual(self.policy(target=1).step(placed, 0).start, [])
        self.assertEqual(self.policy(target=2).step([], 0).start, ["alpha", "alpha"])
        policy.left()  # stopped by the program
        self.assertEqual(policy.step(placed, 0).start, ["alpha"])

    def test_slots_that_are_gone(self):
        policy = self.policy()
        placed = [Placed(0, "alpha", True), Placed(1, "alpha", True), Placed(2, "beta", True)]
        self.assertEqual(policy.step(placed, 0).stop, [])
        policy.found([Host("alpha", 1), Host("gamma", 2)])
        self.assertEqual(policy.step(placed, 0), (["gamma", "gamma"], [1, 2], ""))

    def test_pauses_grow_and_end(self):
        policy = self.policy(target=1, hosts="alpha")
        now = 0.0
        for pause in (1, 2, 4, 8):
            self.assertEqual(policy.failed("alpha", 1.0, now), "")
            self.assertEqual(policy.failed("alpha", 1.0, now), "")  # together with the first
            self.assertEqual(policy.step([], now + pause - 0.1).start, [])
            now += pause
            self.assertEqual(policy.step([], now).start, ["alpha"])
        self.assertEqual(policy.failed("alpha", 1000.0, now), "")  # one that has run for a while
        for _ in range(_elastic.MOST_FAILURES - 1):
            now += 100
            self.assertEqual(policy.failed("alpha", 1.0, now), "")
        self.assertIn("host alpha is left out: workers there have failed 5 times", policy.failed("alpha", 1.0, now + 100))
        self.assertEqual(policy.failed("alpha", 1.0, now + 200), "")
        self.assertRegex(policy.step([], now + 1000).give_up, "0 of its workers run, and it needs 1 .*every host is left out")
        policy.found([Host("beta", 1)])
        policy.found([Host("alpha", 1)])
        self.assertEqual(policy.step([], now + 1000).start, ["alpha"])  # it has been away

    def test_too_few_for_too_long(self):
        policy = self.policy(least=2, timeout=10)
        few = [Placed(0, "alpha", True), Placed(1, "alpha", False)]
        self.assertEqual(policy.step(few, 100).give_up, "")
        self.assertEqual(policy.step(few, 109).give_up, "")
        self.assertRegex(policy.step(few, 110).give_up, r"1 of its workers run, and it needs 2 .*longer than 10 s \(elastic_timeout\)")
        self.assertEqual(policy.step([one._replace(running=True) for one in few], 111).give_up, "")
        self.assertEqual(policy.step(few, 112).give_up, "")

    def test_processes_that_wait_are_no_job(self):
        policy = self.policy(timeout=10)
        placed = [Placed(5, "alpha", True), Placed(6, "alpha", True)]
        self.assertEqual(policy.step(placed, 0, leaderless=True).give_up, "")
        self.assertEqual(policy.step(placed, 9).give_up, "")
        self.assertEqual(policy.step(placed, 10, leaderless=True).give_up, "")
        self.assertRegex(policy.step(placed, 20, leaderless=True).give_up, "none of its workers is the coordinator, for longer")


class Elastically(Files):
    def end(self):
        (self.folder / "end").touch()

    def check_results(self, job, size):
        results = job.results(LIMIT)
        self.assertEqual([result["right"] for result in results], size * [True])
        self.assertEqual({result["size"] for result in results}, {size})
        return results

    def start(self, n, sizes, function=train, **settings):
        return self.launch(n, function, args=[str(self.folder)], elastic=sizes, **settings)


class Jobs(Elastically):
    def test_killed_workers_are_replaced(self):
        """Also rank 0, and the first newcomer."""
        job = self.start(3, (1, 3))
        self.wait_for(job, "of 3 in generation 0", 0, 1, 2)
        for count, victim in enumerate((1, 0, 3)):
            os.kill(job[victim].pid, signal.SIGKILL)
            self.wait_for(job, "of 3 in generation", 3 + count)
        self.end()
        self.assertEqual(self.check_results(job, 3)[0]["changes"]["size"], 3)
        self.assertGreater(job.generations, 1)
        outcome = launch.await_workers(job).check()
        self.assertTrue(outcome)
        self.assertEqual([worker.index for worker in outcome.replaced], [0, 1, 3])
        self.assertEqual([worker.index for worker in outcome.succeeded], [2, 4, 5])
        self.assertEqual(outcome.failed, [])
        self.assertEqual(job[0].reason, "killed by signal 9 (SIGKILL)")
        self.assertRegex(str(outcome), "^3 succeeded, 3 replaced after")
        self.assertEqual((job[4].name, job[4].id, job[4].rank), ("worker 4", f"{job.id}.4", None))
        self.assertEqual(sorted(path.name for path in job.logs.iterdir()), [*(f"{i}.log" for i in range(6)), "launch.log"])
        said = (job.logs / "launch.log").read_text()
        self.assertRegex(said, "worker 1 on .*: killed by signal 9 .*; the job goes on\nworker 3 starts on localhost\n")

    def test_environment(self):
        job = self.launch(2, "sh", args=["-c", "echo $DTRAIN_ELASTIC $DTRAIN_ELASTIC_MIN $DTRAIN_ELASTIC_MAX $DTRAIN_RENDEZVOUS"],
                          elastic=(1, 2), env={"DTRAIN_ELASTIC_MAX": 3})
        self.assertTrue(launch.await_workers(job, timeout_seconds=LIMIT))
        paths = [re.fullmatch("yes 1 3 file://(/.+/job)", worker.tail()[0]).group(1) for worker in job]
        self.assertEqual(len(set(paths)), 2)
        self.assertFalse(any(os.path.exists(os.path.dirname(path)) for path in paths))

    def test_servers_follow(self):
        job = self.start(2, (1, 2), servers=1)
        self.wait_for(job, "of 2 in generation 0", 0, 1)
        os.kill(job[1].pid, signal.SIGKILL)
        self.wait_for(job, "of 2 in generation", 3)
        self.end()
        self.check_results(job, 2)
        self.assertEqual([worker.id.rpartition(".")[2] for worker in job], ["0", "1", "s0", "2"])
        self.assertEqual(job[2].name, "server 0")

    def test_one_that_is_stopped_is_not_replaced(self):
        job = self.start(3, (1, 3))
        self.wait_for(job, "of 3 in generation 0", 0, 1, 2)
        launch.stop_workers(job[1])
        self.wait_for(job, "of 2 in generation 1", 0, 2)
        self.assertEqual(len(job), 3)
        job.stop()
        self.assertEqual({str(worker.state) for worker in job}, {"stopped"})
        with self.assertRaisesRegex(launch.LaunchError, "worker 0 was stopped: stopped by its launcher"):
            launch.await_workers(job).check()

    def test_before_the_job_has_formed(self):
        """The others wait for that rank; rank 0 cannot be replaced."""
        job = self.launch(3, fail_once, args=[str(self.folder), 1], elastic=(1, 3))
        self.wait_for(job, "of 3 in generation 0", 0, 2, 3)
        self.end()
        self.check_results(job, 3)
        (self.folder / "failed").unlink()
        error = self.failure(self.launch(2, fail_once, args=[str(self.folder), 0], elastic=(1, 2)), launch.WorkerError)
        self.assertRegex(str(error), "worker 0 on .*: ZeroDivisionError: a planted fault; the job could not form without rank 0")

    def start_with_one_that_waits(self):
        """A job that takes nobody in, with a newcomer for a worker that was killed."""
        job = self.launch(2, code=f"""if True:
            import dtrain, os, time
            with dtrain.Context() as context:
                context.world.barrier()
                print("begins")
                while context.rank == 1 or not os.path.exists("{self.folder}/end"):
                    time.sleep(0.05)
            """, elastic=(1, 2), grace=0.2)
        self.wait_for(job, "begins", 0, 1)
        os.kill(job[1].pid, signal.SIGKILL)
        while len(job) < 3 or len(launch.await_workers(job, timeout_seconds=0.05).running) < 2:
            self.assertTrue(launch.await_workers(job, timeout_seconds=0).running, said_by(job))
        return job

    def test_a_newcomer_that_nobody_takes_in(self):
        """The job ends without it, and it does not wait for its deadline."""
        job = self.start_with_one_that_waits()
        self.end()
        outcome = launch.await_workers(job, timeout_seconds=LIMIT).check()
        self.assertEqual([worker.index for worker in outcome.replaced], [1, 2], said_by(job))
        self.assertIn("the job is over", "\n".join(job[2].tail()))

    def test_a_newcomer_that_nobody_can_take_in(self):
        job = self.start_with_one_that_waits()
        os.kill(job[0].pid, signal.SIGKILL)
        error = self.failure(job, launch.WorkerError)
        self.assertRegex(str(error), r"worker [01] on .*: killed by signal 9 \(SIGKILL\); no worker is left that could take")
        self.assertEqual(str(job[2].state), "stopped")

    def test_all_fail(self):
        job = self.launch(2, fail, elastic=(1, 2), grace=0.1)
        error = self.failure(job, launch.WorkerError)
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertRegex(str(error), "worker [01] on .*: ZeroDivisionError: a planted fault; ")

    def test_newcomers_that_fail(self):
        """The host is left out, the job goes on; then nobody could take the last one's place."""
        with mock.patch.object(_elastic, "MOST_FAILURES", 2), mock.patch.object(_elastic, "FIRST_PAUSE", 0.1):
            job = self.start(2, (1, 2), fail_as_a_newcomer)
            self.wait_for(job, "of 2 in generation 0", 0, 1)
            (self.folder / "fail").touch()
            os.kill(job[1].pid, signal.SIGKILL)
            self.wait_for(job, "of 1 in generation 1", 0)
            while "left out" not in (job.logs / "launch.log").read_text():
                self.assertTrue(launch.await_workers(job, timeout_seconds=0.05).running, said_by(job))
        self.end()
        self.check_results(job, 1)
        self.assertRegex((job.logs / "launch.log").read_text(), "warning: host localhost is left out: workers there have "
                                                                "failed 2 times in a row")
        self.assertEqual([worker.index for worker in launch.await_workers(job).replaced], [1, 2])

    def test_too_few(self):
        with mock.patch.object(_elastic, "FIRST_PAUSE", 100.0):
            job = self.start(2, (2, 2), elastic_timeout=0.5)
            self.wait_for(job, "of 2 in generation 0", 0, 1)
            os.kill(job[1].pid, signal.SIGKILL)
            error = self.failure(job, launch.WorkerError)
        self.assertRegex(str(error), r"worker 1 on .*: killed by signal 9 \(SIGKILL\); the job could not go on: 1 of its "
                                     r"workers run, "
                                     r"and it needs 2 \(elastic\), for longer than 0\.5 s \(elastic_timeout\)")
        self.assertEqual(str(job[0].state), "stopped")

    def test_a_server_that_fails_ends_the_job(self):
        job = self.start(2, (1, 2), servers=1, grace=0.1)
        self.wait_for(job, "of 2 in generation 0", 0, 1)
        os.kill(job[2].pid, signal.SIGKILL)
        self.assertRegex(str(self.failure(job, launch.WorkerError)), "server 0 on .*: killed by signal 9")

    def test_killed_launcher(self):
        program = self.write("program.py", f"""
            import sys
            sys.path.append({os.path.dirname(os.path.abspath(__file__))!r})
            from dtrain import launch
            from elastic_job import train
            job = launch.launch_workers(2, train, args=["."], elastic=(1, 2))
            job.wait()
            """)
        child = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 cwd=self.folder)
        self.addCleanup(child.kill)
        for line in child.stdout:
            if "of 2 in generation 0" in line:
                break
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(child.pid)], capture_output=True, text=True, check=True)
        pids = [int(pid) for pid in listed.stdout.split()]
        self.assertEqual(len(pids), 2)
        child.kill()
        child.communicate()
        for pid in pids:
            self.assertTrue(wait_for_death(pid))


class Discovery(Elastically):
    def setUp(self):
        super().setUp()
        self.answers = {"localhost": 2}

    def discover(self):
        answer = self.answers
        return answer() if callable(answer) else answer

    def elastic(self, n, sizes, **more):
        return self.start(n, sizes, discovery=self.discover, discovery_interval=0.05, **more)

    def test_grows_and_shrinks(self):
        job = self.elastic(2, (1, 4))
        self.wait_for(job, "of 2 in generation 0", 0, 1)
        self.answers = "localhost:3\n"
        self.wait_for(job, "of 3 in generation", 0, 1, 2)
        self.answers = {"localhost": 1}
        self.wait_for(job, "of 1 in generation", 0)
        self.assertEqual([str(job[i].state) for i in (1, 2)], ["stopped", "stopped"], said_by(job))
        self.assertEqual(job[1].reason, "host localhost is no longer there for it (discovery)")
        self.end()
        self.check_results(job, 1)
        self.assertEqual([worker.index for worker in launch.await_workers(job).check().replaced], [1, 2])

    def test_begins_with_what_is_there(self):
        job = self.elastic(4, (2, 4))
        self.assertEqual(len(job), 2)
        self.end()
        self.check_results(job, 2)

    def said(self, job, text):
        end = time.monotonic() + LIMIT
        while text not in (job.logs / "launch.log").read_text():
            self.assertLess(time.monotonic(), end, said_by(job))
            time.sleep(0.02)
        return (job.logs / "launch.log").read_text()

    def test_what_goes_wrong_is_said_once(self):
        job = self.elastic(2, (1, 4))
        self.wait_for(job, "of 2 in generation 0", 0, 1)
        self.answers = fail
        said = self.said(job, "planted")
        self.assertIn("warning: discovery: Discovery.discover raised ZeroDivisionError: a planted fault; the last list of hosts "
                      "stays", said)
        self.answers = "two of them"
        self.assertIn("returned what cannot be used: hosts: 'two of them' is not HOST", self.said(job, "two of them"))
        self.answers = {"alpha": 1}
        self.said(job, "host alpha: backend \"local\" has only localhost")
        over = threading.Event()
        self.addCleanup(over.set)
        with mock.patch.object(_discovery, "PATIENCE", 0.2):
            self.answers = lambda: over.wait(LIMIT)
            self.said(job, "the call of Discovery.discover has not returned for 0.2 s; the last list of hosts stays")
        self.assertEqual(self.said(job, "planted").count("planted"), 1)
        self.end()
        self.check_results(job, 2)

    def test_nothing_starts(self):
        over = threading.Event()
        self.addCleanup(over.set)
        for answers, kind, text in (
                (fail, launch.BackendError, "raised ZeroDivisionError: a planted fault; nothing was started"),
                ({}, launch.BackendError, "returned what cannot be used: hosts: at least one is needed"),
                ({"localhost": 1}, launch.SlotsError, "the hosts have 1 slots, and the job needs 2 workers")):
            self.answers = answers
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                self.elastic(2, (2, 4))
        self.answers = lambda: over.wait(LIMIT)
        with mock.patch.object(_discovery, "PATIENCE", 0.2), \
                self.assertRaisesRegex(launch.BackendError, "has not returned for 0.2 s; nothing was started"):
            self.elastic(2, (2, 4))


class Arguments(unittest.TestCase):
    def test_refused(self):
        for text, kind, given in (
                ("elastic: min: 3 is more than elastic: max: 2", dtrain.InvalidError, {"elastic": (3, 2)}),
                ("elastic: min: 0 is not from 1", dtrain.InvalidError, {"elastic": (0, 2)}),
                ("n: 2 is not from 3 to 4", dtrain.InvalidError, {"elastic": (3, 4)}),
                ("elastic: 2 is not a pair", dtrain.InvalidError, {"elastic": 2}),
                ("elastic: max: an int is needed", TypeError, {"elastic": (1, "2")}),
                ("discovery: only an elastic job", dtrain.InvalidError, {"discovery": dict}),
                ("discovery: a function is needed", TypeError, {"elastic": (1, 2), "discovery": "script"}),
                ("discovery_interval: 0", dtrain.InvalidError, {"elastic": (1, 2), "discovery_interval": 0}),
                ("elastic_timeout: -1", dtrain.InvalidError, {"elastic": (1, 2), "elastic_timeout": -1}),
                ("keep_going: an elastic job", dtrain.InvalidError, {"elastic": (1, 2), "keep_going": True}),
                ("hosts and discovery: give one of them", launch.BackendError,
                 {"elastic": (1, 2), "discovery": lambda: "a", "backend": "ssh", "hosts": "a"}),
                ("hosts: backend \"ssh\" needs them", dtrain.InvalidError, {"backend": "ssh"}),
                ("address: any worker of an elastic job", launch.BackendError,
                 {"elastic": (1, 2), "backend": "ssh", "hosts": "a:2", "address": "10.0.0.1"})):
            with self.subTest(text), self.assertRaisesRegex(kind, text), mock.patch("shutil.which", return_value="/usr/bin/ssh"):
                launch.launch_workers(**{"n": 2, "script_or_function": "true", **quietly(), **given})

    def test_engines_that_cannot(self):
        for name, text, settings in (("slurm", "use backend \"ssh\"", {}), ("kubernetes", "restart its pods", {"image": "x"}),
                                     ("ray", "dtrain.ray.Executor\\(min_workers", {}), ("spark", "use backend \"ssh\"", {})):
            with self.subTest(name), \
                    self.assertRaisesRegex(launch.BackendError, f"elastic: backend \"{name}\" cannot add workers.*{text}"):
                launch.launch_workers(2, "true", elastic=(1, 2), backend=name, **settings)


if __name__ == "__main__":
    unittest.main()
