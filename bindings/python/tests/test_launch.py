"""dtrain.launch on this machine: functions, scripts and programs as workers; what fails, and how it is named; that
nothing is left running.

SPDX-License-Identifier: Apache-2.0
"""
import io
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import unittest
from array import array
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import dtrain
from dtrain import launch
from launched import add_up, fail_on, return_what_cannot_be_sent, size_of, use_table
from launching import LIMIT, Files, lives, quietly, wait_for_death

TRAIN = """
    import sys, dtrain
    from array import array
    with dtrain.Context() as context:
        world = context.world
        values = array("f", [world.rank])
        world.allreduce(values)
        print(f"rank {world.rank} of {world.size}: {values[0]:g}", *sys.argv[1:])
"""


class Functions(Files):
    def test_results_are_in_rank_order(self):
        self.assertEqual(launch.run_cluster(3, 0, add_up, args=[2], timeout_seconds=LIMIT, **quietly()),
                         [(0, 6.0), (1, 6.0), (2, 6.0)])
        self.assertEqual(launch.run_cluster(1, 0, add_up, kwargs={"scale": 2}, timeout_seconds=LIMIT, **quietly()), [(0, 0.0)])

    def test_servers(self):
        self.assertEqual(launch.run_cluster(2, 2, use_table, timeout_seconds=LIMIT, **quietly()),
                         2 * [([2.0, 4.0], [-1, -1])])

    def test_large_arguments_and_results(self):
        data = os.urandom(1 << 20)
        (result,) = launch.run_cluster(1, 0, size_of, args=[data], timeout_seconds=LIMIT, **quietly())
        self.assertEqual(result, data[::-1])

    def test_an_exception_is_the_cause_and_the_others_are_stopped(self):
        begin = time.monotonic()
        job = self.launch(3, fail_on, args=[1], grace=0.2)
        error = self.failure(job, launch.WorkerError)
        self.assertLess(time.monotonic() - begin, LIMIT / 2)
        self.assertIsInstance(error, dtrain.PeerError)
        self.assertEqual(error.rank, 1)
        self.assertIs(error.worker, job[1])
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertRegex(str(error), "rank 1 on .*: ZeroDivisionError: a planted fault")
        self.assertIn("in fail_on", job[1].traceback)
        self.assertEqual([str(worker.state) for worker in job], ["stopped", "failed", "stopped"])
        self.assertEqual(job[0].reason, "stopped, since rank 1 failed")

    def test_what_cannot_be_sent(self):
        with open(os.devnull) as file, self.assertRaisesRegex(launch.SendError, "cannot be sent to workers"):
            launch.launch_workers(1, size_of, args=[file])
        with mock.patch.dict(sys.modules, {"cloudpickle": None}), \
                self.assertRaisesRegex(launch.SendError, "pip install cloudpickle, or put the function into a module"):
            function = size_of
            with mock.patch.object(function, "__module__", "__main__"):
                launch.launch_workers(1, function, args=[b""])
        with mock.patch.dict(sys.modules, {"cloudpickle": None}):
            job = self.launch(1, return_what_cannot_be_sent)
            self.assertRegex(str(self.failure(job, launch.WorkerError)), "rank 0 on .*pickle.*return_what_cannot_be_sent")

    def test_ends_as_a_program_does(self):
        job = self.launch(1, sys.exit, args=[3])
        self.assertIn("exit status 3", str(self.failure(job, launch.WorkerError)))
        job = self.launch(1, sys.exit, args=["too bad"])
        self.assertIn("exit status 1; its last line: too bad", str(self.failure(job, launch.WorkerError)))

    def test_a_killed_worker_is_blamed_rather_than_those_who_notice(self):
        job = self.launch(3, code=TRAIN_FOREVER)
        self.wait_for(job, "begins", 0, 1, 2)
        os.kill(job[2].pid, signal.SIGKILL)
        error = self.failure(job, launch.WorkerError)
        self.assertEqual(error.rank, 2)
        self.assertIn("killed by signal 9 (SIGKILL)", str(error))
        self.assertEqual((job[2].exit_status, job[2].signal), (137, 9))
        for rank in (0, 1):
            self.assertIn("rank 2", "\n".join(job[rank].tail()))


TRAIN_FOREVER = """
import dtrain, os
from array import array
with dtrain.Context() as context:
    context.world.barrier()
    print("begins")
    while True:
        context.world.allreduce(array("f", [1.0]))
"""


class Scripts(Files):
    def test_script_with_arguments_in_its_folder(self):
        self.write("train.py", TRAIN)
        out = io.StringIO()
        with redirect_stdout(out):
            job = launch.launch_workers(2, "train.py", args=["--epochs", 3], cwd=self.folder, logs=self.folder / "logs",
                                        progress=False)
            self.assertTrue(launch.await_workers(job, timeout_seconds=LIMIT), out.getvalue())
        self.assertEqual(sorted(out.getvalue().splitlines()),
                         ["[0] rank 0 of 2: 1 --epochs 3", "[1] rank 1 of 2: 1 --epochs 3"])
        self.assertEqual(job[1].tail(), ["rank 1 of 2: 1 --epochs 3"])
        self.assertEqual(job[1].log_path.read_text(), "rank 1 of 2: 1 --epochs 3\n")
        self.assertEqual(job[1].address.rpartition(":")[2], str(job[1].pid))

    def test_program_and_its_environment(self):
        script = 'echo $DTRAIN_ROLE $DTRAIN_RANK $DTRAIN_SIZE $DTRAIN_SERVERS $DTRAIN_LOCAL_RANK ' \
                 '$DTRAIN_LOCAL_SIZE ${DTRAIN_LISTEN_FD:+listens} $OMP_NUM_THREADS $MINE; echo ${#DTRAIN_SECRET} >&2'
        with mock.patch.dict(os.environ, {"DTRAIN_RANK": "7", "DTRAIN_LISTEN_FD": "1"}):
            job = self.launch(2, "sh", args=["-c", script], cpu=2, env={"MINE": 5})
            self.assertTrue(launch.await_workers(job, timeout_seconds=LIMIT))
        self.assertEqual(job[0].tail(), ["worker 0 2 0 0 2 listens 2 5", "64"])
        self.assertEqual(job[1].tail(), ["worker 1 2 0 1 2 2 5", "64"])

    def test_output_without_ends_of_lines(self):
        job = self.launch(1, "sh", args=["-c", "printf begin; head -c 200000 /dev/zero | tr '\\0' x; printf end"])
        self.assertTrue(launch.await_workers(job, timeout_seconds=LIMIT))
        self.assertEqual(len(job[0].log_path.read_bytes().replace(b"\n", b"")), 200008)
        self.assertEqual("".join(job[0].tail(200))[-4:], "xend")  # where a long line is cut depends on what arrives when

    def test_missing(self):
        with self.assertRaisesRegex(launch.ScriptError, "script nowhere.py does not exist in .*nothing was started"):
            launch.launch_workers(1, "nowhere.py")
        with self.assertRaisesRegex(launch.ScriptError, "cwd: /nowhere is not a folder"):
            launch.launch_workers(1, "nowhere.py", cwd="/nowhere")
        job = self.launch(2, "no-such-program")
        self.assertIn("program no-such-program is not found on", str(self.failure(job, launch.ScriptError)))

    def test_a_worker_that_dies_before_joining(self):
        begin = time.monotonic()
        job = self.launch(2, code=f"import os\nif os.environ['DTRAIN_RANK'] == '1': os._exit(5)\n{TRAIN_FOREVER}",
                          grace=0.1)
        error = self.failure(job, launch.WorkerError)
        self.assertLess(time.monotonic() - begin, LIMIT / 2)
        self.assertIn("exit status 5", str(error))
        self.assertEqual(error.rank, 1)

    def test_failures_of_others_are_survived(self):
        job = self.launch(2, "sh", args=["-c", "sleep 0.$((3 * DTRAIN_RANK)); exit $((1 - DTRAIN_RANK))"], grace=0,
                          keep_going=True)
        outcome = launch.await_workers(job, timeout_seconds=LIMIT)
        self.assertEqual([worker.rank for worker in outcome.failed], [0])
        self.assertEqual([worker.rank for worker in outcome.succeeded], [1])


class Waiting(Files):
    def test_timeout_and_stop(self):
        job = self.launch(2, "sleep", args=[str(LIMIT)])
        started = launch.await_workers(job, wait_for_completion=False, timeout_seconds=LIMIT)
        self.assertEqual(len(started.running), 2)
        outcome = launch.await_workers(job, timeout_seconds=0.1)
        self.assertEqual([worker.rank for worker in outcome.running], [0, 1])
        with self.assertRaisesRegex(launch.LaunchTimeoutError, r"2 of 2 workers have not ended within \d+\.\d s: rank 0 "
                                    r"\(running at .*stop_workers"):
            outcome.check()
        self.assertTrue(issubclass(launch.LaunchTimeoutError, TimeoutError))
        launch.stop_workers(job.ids[1])
        outcome = launch.await_workers(job, timeout_seconds=0)
        self.assertEqual([worker.rank for worker in outcome.stopped], [1])
        self.assertEqual([worker.rank for worker in outcome.running], [0])
        pid = job[0].pid
        launch.stop_workers([job[0]])
        self.assertFalse(lives(pid))
        self.assertEqual(job[0].reason, "stopped by its launcher")
        with self.assertRaisesRegex(launch.LaunchError, "rank 0 was stopped: stopped by its launcher"):
            launch.await_workers(job).check()

    def test_what_ignores_the_request_is_killed(self):
        job = self.launch(1, "sh", args=["-c", "trap '' TERM; echo ready; sleep 100 & sleep 100"])
        self.wait_for(job, "ready", 0)
        begin = time.monotonic()
        job.stop()
        self.assertLess(time.monotonic() - begin, 10)
        self.assertFalse(lives(job[0].pid))
        self.assertEqual(job[0].signal, signal.SIGKILL)

    def test_run_cluster_leaves_nothing(self):
        path = self.folder / "pid"
        for seconds in (1.5, 6, 24):  # a busy machine may have started nothing by then
            with self.assertRaises(launch.LaunchTimeoutError):
                launch.run_cluster(1, 1, "sh", args=["-c", f"echo $$ > {path}; sleep 100"], timeout_seconds=seconds,
                                   **quietly())
            if path.exists() and path.read_text():
                break
        self.assertTrue(wait_for_death(int(path.read_text())))

    def test_progress(self):
        said = io.StringIO()
        with redirect_stderr(said):
            job = launch.launch_workers(2, "sleep", args=["0.1"], output=False)
            launch.await_workers(job, timeout_seconds=LIMIT)
            launch.await_workers(launch.launch_workers(1, "true", **quietly()), timeout_seconds=LIMIT)
        lines = said.getvalue().splitlines()
        self.assertRegex(lines[-1], r"dtrain.launch: sleep: 2 succeeded \(\d\.\d s\)")
        self.assertNotIn("true", said.getvalue())

    def test_ids(self):
        job = self.launch(1, "true", servers=1, server_command=["true"])
        self.assertEqual([worker.id for worker in job], [f"{job.id}.0", f"{job.id}.s0"])
        self.assertTrue(launch.await_workers(job.id, timeout_seconds=LIMIT))
        with self.assertRaisesRegex(dtrain.InvalidError, "'nobody.0' is not the id of a worker"):
            launch.await_workers(["nobody.0"])
        self.assertEqual(pickle.loads(pickle.dumps(job[0].as_dict()))["state"], "succeeded")


class Ends(Files):
    """Programs that end with workers running."""
    PROGRAM = """
        import os, sys, time
        from dtrain import launch
        job = launch.launch_workers(2, "sh", args=["-c", "trap '' TERM; echo $$ $PPID; sleep 100"], progress=False)
        while not all(worker.tail() for worker in job):
            outcome = launch.await_workers(job, timeout_seconds=0.05)
            assert outcome.running or outcome.pending, outcome.failed
        print("ready", flush=True)
        {end}
    """

    def check(self, end, kill=None):
        path = self.write("program.py", self.PROGRAM.format(end=end))
        program = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(program.kill)
        pids = []
        for line in program.stdout:
            if line == "ready\n":
                break
            pids += map(int, line.split()[1:])
        self.assertEqual(len(pids), 4)
        if kill is not None:
            program.send_signal(kill)
        ready, _, _ = select.select([program.stdout], [], [], LIMIT)
        self.assertTrue(ready)
        program.communicate(timeout=LIMIT)
        for pid in pids:
            self.assertTrue(wait_for_death(pid))

    def test_at_exit(self):
        self.check("pass")

    def test_killed(self):
        self.check("time.sleep(100)", signal.SIGKILL)

    def test_interrupted(self):
        self.check("launch.await_workers(job, timeout_seconds=100)", signal.SIGINT)

    def test_agent_killed(self):
        job = self.launch(2, "sh", args=["-c", "echo agent $PPID; sleep 100"], grace=0.1)
        self.wait_for(job, "agent", 0, 1)
        os.kill(int(job[1].tail()[0].split()[1]), signal.SIGKILL)
        error = self.failure(job, launch.LaunchError)
        self.assertIn("has ended with status -9 before its worker", str(error))
        for worker in job:
            self.assertTrue(wait_for_death(worker.pid))


class Arguments(unittest.TestCase):
    def test_refused(self):
        for text, error, kind in (
                ("n: 0 is not from 1", {"n": 0}, dtrain.InvalidError),
                ("n: an int", {"n": "2"}, TypeError),
                ("servers: -1", {"servers": -1}, dtrain.InvalidError),
                ("args: a list", {"args": "x"}, TypeError),
                ("cpu: 0", {"cpu": 0}, dtrain.InvalidError),
                ("memory: '2 lbs'", {"memory": "2 lbs"}, dtrain.InvalidError),
                ("env: 'a=b'", {"env": {"a=b": 1}}, dtrain.InvalidError),
                ("backend: 'slrum' \\(\"slurm\"\\?\\) is none of local, ssh", {"backend": "slrum"}, dtrain.InvalidError),
                ("hosts: backend \"local\" has no such setting; it has no settings", {"hosts": ["a"]}, dtrain.InvalidError),
                ("kwargs: only a function", {"kwargs": {"a": 1}}, dtrain.InvalidError),
                ("only one of them", {"code": "pass"}, dtrain.InvalidError)):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                launch.launch_workers(**{"n": 1, "script_or_function": "true", **quietly(), **error})

    def test_memory(self):
        self.assertEqual([launch.make_plan(1, "true", memory=memory).memory for memory in (2, 0.5, "512MiB", "2G", "100k")],
                         [2 << 30, 1 << 29, 512 << 20, 2 * 10 ** 9, 100_000])


if __name__ == "__main__":
    unittest.main()
