"""dtrain.launch through srun, on a Slurm of this machine (slurm.py), and examples/engines under it.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import time
import unittest
from unittest import mock

import slurm

from dtrain import launch

SKIPPED = 77
LIMIT = 300  # seconds
os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # the shells' python3
ENGINES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines"
QUIET = {"backend": "slurm", "options": ["--overcommit"], "output": False, "progress": False}


def add_up():
    import dtrain
    from array import array
    with dtrain.Context() as context:
        values = array("f", [context.rank])
        context.world.allreduce(values)
        table = context.world.table("table", length=1)
        servers = [server["rank"] for server in table.servers()]
        context.world.barrier()
        return values[0], servers, os.environ["SLURM_CPUS_PER_TASK"]


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(slurm.Slurm())
        cls.enterClassContext(mock.patch.dict(os.environ, cls.cluster.environment))

    def test_function_with_a_server(self):
        self.assertEqual(launch.run_cluster(2, 1, add_up, timeout_seconds=LIMIT, cpu=1, memory="10MiB", **QUIET),
                         2 * [(1.0, [-1], "1")])

    def test_output_and_failure(self):
        script = "echo hello of $DTRAIN_SERVERS $SLURM_PROCID; sleep 0.$SLURM_PROCID; exit $((3 * SLURM_PROCID))"
        job = launch.launch_workers(2, "sh", args=["-c", script], grace=0.5, **QUIET)
        outcome = launch.await_workers(job, timeout_seconds=LIMIT)
        self.assertEqual(job[1].tail(), ["hello of 0 1"])
        with self.assertRaisesRegex(launch.WorkerError, "rank 1 on .*: exit status 3; its last line: hello of 0 1"):
            outcome.check()
        self.assertEqual([worker.rank for worker in outcome.succeeded], [0])

    def test_stop_leaves_nothing(self):
        job = launch.launch_workers(2, "sleep", args=["100"], **QUIET)
        self.assertEqual(len(launch.await_workers(job, False, LIMIT).running), 2)
        pids = [worker.pid for worker in job]
        job.stop()
        self.assertEqual([str(worker.state) for worker in job], ["stopped", "stopped"])
        end = time.monotonic() + LIMIT
        while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse([pid for pid in pids if os.path.exists(f"/proc/{pid}")])

    def test_what_srun_refuses(self):
        job = launch.launch_workers(1, "true", **{**QUIET, "partition": "nowhere"})
        with self.assertRaisesRegex(launch.BackendError, "srun has ended with status 1: .*invalid partition"):
            job.wait(LIMIT).check()

    def test_examples(self):
        environment = {**self.cluster.environment, "DTRAIN_JOIN_TIMEOUT": "60s"}
        for command, said in (
                ([ENGINES / "srun.sh", "--overcommit"], "2 workers, train_by_allreduce"),
                (["sbatch", "--wait", "--overcommit", f"--output={self.cluster.folder}/out", ENGINES / "srun.sh",
                  "--overcommit"], ""),
                (["salloc", "--ntasks=3", "--overcommit", sys.executable, ENGINES / "slurm_digits.py", "--overcommit"],
                 "slurm: 2 workers")):
            environment["DIGITS"] = str(ENGINES.parent / "digits/python/digits.py")
            done = subprocess.run([*command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=LIMIT)
            text = done.stdout
            if command[0] == "sbatch":
                text += (self.cluster.folder / "out").read_text()
            self.assertEqual(done.returncode, 0, text)
            self.assertIn(said or "2 workers, train_by_allreduce", text)


if __name__ == "__main__":
    if slurm.missing():
        print(f"skipped: {slurm.missing()}")
        sys.exit(SKIPPED)
    unittest.main()
