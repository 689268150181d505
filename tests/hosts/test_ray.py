"""dtrain.ray, and dtrain.launch on Ray: functions, servers, stateful workers, errors; examples/engines.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from array import array
from unittest import mock

os.environ["RAY_AUTH_MODE"] = "disabled"  # else Ray writes a token into the home folder
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

import dtrain
import dtrain.ray
from dtrain import launch
from dtrain.launch import _elastic
from elastic_job import train
from launched import use_table

LIMIT = 300  # seconds
ENGINES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines"


def add_up(scale=1):
    with dtrain.Context() as context:
        values = array("f", [scale * context.rank])
        context.world.allreduce(values)
        return context.rank, values[0], os.environ["DTRAIN_LOCAL_RANK"], os.environ.get("WORD")


def fail(how):
    with dtrain.Context() as context:
        context.world.barrier()
        if context.rank == 1:
            how()
        while True:
            context.world.allreduce(array("f", [1]))


def divide():
    return 1 / 0


def die():
    os._exit(3)


def train_and_tell(folder):
    """The pid, rank and size of each generation are names of files in the folder."""
    return train(folder, lambda world: pathlib.Path(folder, f"{os.getpid()}-{world.rank}-{world.size}").touch())


def outcome(executor, function, folder):
    try:
        return executor.run(function, [folder])
    except BaseException as error:
        return error


class Counter:
    def __init__(self, first, step=1):
        self.context = dtrain.Context()
        self.count, self.step = first, step

    def add(self):
        self.count += self.step
        values = array("f", [self.count])
        self.context.world.allreduce(values)
        return values[0]


class OnRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)

    def executor(self, *arguments, **settings):
        executor = dtrain.ray.Executor(*arguments, **settings)
        self.addCleanup(executor.shutdown)
        executor.start()
        return executor


class Executors(OnRay):
    def test_functions(self):
        executor = self.executor(3, env={"WORD": "x"}, options={"op.timeout": 30})
        for scale in (1, 2):  # one job after another
            self.assertEqual(executor.run(add_up, kwargs={"scale": scale}),
                             [(rank, 3.0 * scale, str(rank), "x") for rank in range(3)])
        self.assertEqual(ray.get(executor.run_remote(add_up, [3]))[1][1], 9.0)

    def test_servers(self):
        executor = self.executor(2, servers=2)
        for _ in range(2):
            self.assertEqual(executor.run(use_table), 2 * [([2.0, 4.0], [-1, -1])])

    def test_workers_with_a_state(self):
        executor = dtrain.ray.Executor(2)
        self.addCleanup(executor.shutdown)
        executor.start(executable_cls=Counter, executable_args=[10], executable_kwargs={"step": 5})
        self.assertEqual(executor.execute(lambda counter: counter.add()), [30.0, 30.0])
        self.assertEqual(executor.execute(lambda counter: counter.add()), [40.0, 40.0])
        self.assertEqual(executor.execute_single(lambda counter: counter.count), 20)
        with self.assertRaises(dtrain.StateError):
            executor.start()

    def test_failures_name_the_rank(self):
        for how, kind, text in ((divide, ZeroDivisionError, "rank 1: ZeroDivisionError: division by zero; 1 more failed"),
                                (die, ray.exceptions.RayActorError, "rank 1: its actor has died")):
            executor = self.executor(2)
            begin = time.monotonic()
            with self.assertRaisesRegex(launch.WorkerError, text) as caught:
                executor.run(fail, [how])
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(caught.exception.rank, 1)
            self.assertIsInstance(caught.exception, dtrain.PeerError)
            self.assertIsInstance(caught.exception.__cause__, kind)
            executor.shutdown()
            executor.start()
            self.assertEqual(len(executor.run(add_up)), 2)
            executor.shutdown()

    def test_refused(self):
        with self.assertRaisesRegex(launch.SlotsError, r"\d of 6 actors have not started within 5 s; each worker needs .*"
                                                       "'num_cpus': 1.*the cluster has"):
            dtrain.ray.Executor(6, timeout=5).start()
        with self.assertRaisesRegex(dtrain.StateError, "call start"):
            dtrain.ray.Executor(1).run(add_up)
        with self.assertRaises(dtrain.InvalidError):
            dtrain.ray.Executor(0)
        with self.assertRaisesRegex(dtrain.InvalidError, "options: 'op.timeuot' is none of dtrain's; the nearest is op_timeout"):
            dtrain.ray.Executor(1, options={"op.timeuot": 3})


class Elastic(OnRay):
    """Jobs whose actors come and go; the folder tells the function when to end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_until(self, executor, function, generations):
        """Runs the function on the executor; generations(): pids of workers by what was said, and what to do."""
        results = []
        thread = threading.Thread(target=lambda: results.append(outcome(executor, function, str(self.folder))))
        thread.start()
        try:
            generations()
        finally:
            (self.folder / "end").touch()
            thread.join(LIMIT)
        self.assertFalse(thread.is_alive())
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]

    def wait_for(self, size, count=1):
        """The pids of the workers that are in a generation of so many, once there are so many of these."""
        end = time.monotonic() + LIMIT
        while True:
            names = [path.name.split("-") for path in self.folder.glob("*-*-*")]
            found = {int(pid): int(rank) for pid, rank, of in names if int(of) == size}
            if len(found) >= count:
                return found
            self.assertLess(time.monotonic(), end, names)
            time.sleep(0.05)

    def test_actors_that_die_are_replaced(self):
        """Rank 0, too."""
        executor = self.executor(3, min_workers=1, max_workers=3)

        def generations():
            first = self.wait_for(3, 3)
            self.kill(first, 1)
            self.kill(self.wait_for(3, 4), 0)
            self.wait_for(3, 5)
        results = self.run_until(executor, train_and_tell, generations)
        self.assertEqual([(result["right"], result["size"]) for result in results], 3 * [(True, 3)])
        self.assertGreater(results[0]["steps"], 1)
        self.assertEqual(len(executor.run(os.getpid)), 3)  # a job after it

    def kill(self, found, rank):
        pid = next(pid for pid, own in found.items() if own == rank and os.path.exists(f"/proc/{pid}"))
        os.kill(pid, signal.SIGKILL)

    def test_grows_with_a_server(self):
        executor = self.executor(1, min_workers=1, max_workers=2, servers=1)
        results = self.run_until(executor, train_and_tell, lambda: self.wait_for(2, 2))
        self.assertEqual([(result["right"], result["size"]) for result in results], 2 * [(True, 2)])

    def test_failures(self):
        executor = self.executor(2, min_workers=1, max_workers=2)
        begin = time.monotonic()
        with self.assertRaisesRegex(launch.WorkerError, r"worker [01]: ZeroDivisionError: division by zero; ") \
                as caught:
            executor.run(divide)
        self.assertLess(time.monotonic() - begin, LIMIT / 2)
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        executor.shutdown()
        executor = self.executor(2, min_workers=2, elastic_timeout=1)
        with mock.patch.object(_elastic, "FIRST_PAUSE", 100.0), \
                self.assertRaisesRegex(launch.WorkerError, r"worker 1: its actor has died: .*; the job could not go on: 1 of its "
                                       r"workers run, and it needs 2 \(elastic\), for longer than 1 s \(elastic_timeout\)"):
            self.run_until(executor, train_and_tell, lambda: (self.kill(self.wait_for(2, 2), 1), time.sleep(LIMIT / 20)))

    def test_refused(self):
        for given, text in (({"min_workers": 3, "max_workers": 4}, "num_workers: 2 is not from 3 to 4"),
                            ({"max_workers": 1}, "min_workers: 2 is more than max_workers: 1"),
                            ({"min_workers": 0}, "min_workers: 0 is not from 1"),
                            ({"min_workers": 1, "elastic_timeout": -1}, "elastic_timeout: -1")):
            with self.subTest(text), self.assertRaisesRegex(dtrain.InvalidError, text):
                dtrain.ray.Executor(2, **given)
        executor = dtrain.ray.Executor(1, max_workers=2)
        self.addCleanup(executor.shutdown)
        with self.assertRaisesRegex(dtrain.InvalidError, "executable_cls: the workers of an elastic job keep no state"):
            executor.start(executable_cls=Counter)
        executor.start()
        with self.assertRaisesRegex(dtrain.StateError, r"execute\(\) is for a fixed number of workers"):
            executor.execute(lambda _: None)


class Launching(OnRay):
    def launch(self, n, what, **settings):
        return launch.launch_workers(n, what, backend="ray", output=False, progress=False, **settings)

    def test_functions_and_servers(self):
        self.assertEqual(self.launch(2, use_table, servers=1, cpu=1, memory="100MiB").results(LIMIT), 2 * [([2.0, 4.0], [-1])])

    def test_failure(self):
        job = self.launch(2, "sh", args=["-c", "echo rank $DTRAIN_RANK; sleep $((30 - 30 * DTRAIN_RANK)); exit 4"], grace=0.2)
        with self.assertRaisesRegex(launch.WorkerError, "rank 1 on .*: exit status 4; its last line: rank 1"):
            job.wait(LIMIT).check()

    def test_more_than_the_cluster_has(self):
        job = self.launch(6, "true")
        self.assertEqual(len(launch.await_workers(job, timeout_seconds=8).pending), 6)  # none starts before all are there
        job.stop()
        self.assertEqual({str(worker.state) for worker in job}, {"stopped"})
        end = time.monotonic() + LIMIT
        while ray.available_resources().get("CPU") != 4 and time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(ray.available_resources().get("CPU"), 4)


class Examples(unittest.TestCase):
    def test_digits(self):
        done = subprocess.run([sys.executable, ENGINES / "ray_digits.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "RAY_OVERRIDE_RESOURCES": '{"CPU": 4}'}, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?s)ray: 2 workers, 9.*ray, with a server: 2 workers, 9.*stateful workers \[0, 1\]")


if __name__ == "__main__":
    unittest.main()
