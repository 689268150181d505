"""dtrain.ray, and dtrain.launch on Ray: functions, servers, stateful workers, errors; examples/engines.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import time
import unittest
from array import array

os.environ["RAY_AUTH_MODE"] = "disabled"  # else Ray writes a token into the home folder
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

import dtrain
import dtrain.ray
from dtrain import launch

LIMIT = 100  # seconds
ENGINES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines"


def add_up(scale=1):
    with dtrain.Context() as context:
        values = array("f", [scale * context.rank])
        context.world.allreduce(values)
        return context.rank, values[0], os.environ["DTRAIN_LOCAL_RANK"], os.environ.get("WORD")


def use_table():
    with dtrain.Context() as context:
        table = context.world.table("table", length=2)
        table.push(array("f", [1, 2]))
        out = array("f", [0, 0])
        context.world.barrier()
        table.pull(out)
        servers = [server["rank"] for server in table.servers()]
        context.world.barrier()
        return list(out), servers


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
