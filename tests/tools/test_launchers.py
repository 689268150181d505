#!/usr/bin/python3
"""Processes that a launcher of parallel programs has started join each other without configuration, or
are refused, and are never jobs of one each: under mpirun and hydra where they are installed, and under
what others put into the environment.
usage: test_launchers.py BIN

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from ports import free_port  # noqa: E402

BENCH = ["--operations", "allreduce", "--sizes", "4", "--iterations", "2"]
LAUNCHERS = ("DTRAIN_", "OMPI_", "PMI", "SLURM_", "MV2_", "FLUX_", "JSM_", "HOROVOD_")
CLEAN = {key: value for key, value in os.environ.items()
         if not key.startswith(LAUNCHERS) and key not in ("RANK", "WORLD_SIZE", "TF_CONFIG")}
CLEAN |= {"DTRAIN_JOIN_TIMEOUT": "60s", "DTRAIN_HEARTBEAT_TIMEOUT": "30s",
          "LSAN_OPTIONS": os.environ.get("LSAN_OPTIONS", "")}
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-np", "2"]
HYDRA = ["mpiexec.hydra", "-n", "2"]
# What two processes of each get.
ENVIRONMENTS = {
    "PMI_SIZE=2": [{"PMI_RANK": str(rank), "PMI_SIZE": "2"} for rank in range(2)],
    "SLURM_STEP_NUM_TASKS=2": [
        {"SLURM_JOB_ID": "3", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_NTASKS": "2",
         "SLURM_STEP_NUM_TASKS": "2"} for rank in range(2)],
    "MV2_COMM_WORLD_SIZE=2": [
        {"MV2_COMM_WORLD_RANK": str(rank), "MV2_COMM_WORLD_SIZE": "2"} for rank in range(2)],
}
bin_folder = ""


def run(command, **variables):
    """(exit status, what it said)"""
    done = subprocess.run([*command, f"{bin_folder}/dtrain-bench", *BENCH], env={**CLEAN, **variables},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    return done.returncode, done.stdout


def run_each(environments, **variables):
    """What run() says of each process, of which all run at once."""
    processes = [subprocess.Popen([f"{bin_folder}/dtrain-bench", *BENCH],
                                  env={**CLEAN, **variables, **own}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for own in environments]
    said = [process.communicate(timeout=100)[0] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said)]


class Launchers(unittest.TestCase):
    def check_launcher(self, command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is not installed")
        status, text = run(command)
        self.assertEqual(status, 0, text)
        self.assertIn("2 ranks", text)
        status, text = run(command, DTRAIN_RENDEZVOUS=f"tcp://127.0.0.1:{free_port()}")
        self.assertEqual(status, 0, text)
        self.assertIn("2 ranks", text)
        status, text = run(command, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        self.assertEqual(status, 0, text)
        self.assertIn("2 ranks", text)

    def test_open_mpi(self):
        self.check_launcher(OPEN_MPI)

    def test_hydra(self):
        self.check_launcher(HYDRA)

    def test_environments(self):
        for evidence, processes in ENVIRONMENTS.items():
            with self.subTest(evidence):
                for status, text in run_each(processes):
                    self.assertNotEqual(status, 0, text)
                    self.assertIn(f"{evidence} says that this is rank ", text)
                rendezvous = f"tcp://127.0.0.1:{free_port()}"
                for status, text in run_each(processes, DTRAIN_RENDEZVOUS=rendezvous):
                    self.assertEqual(status, 0, text)

    def test_alone(self):
        for variables in ({"SLURM_JOB_ID": "3", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"},
                          {"PMI_RANK": "1", "PMI_SIZE": "2", "DTRAIN_SIZE": "1"}):
            status, text = run([], **variables)
            self.assertEqual(status, 0, text)

    def test_described(self):
        """dtrain-info says what would be chosen, and what stands against it."""
        for variables, joins, rendezvous in (({}, True, ""), ({"PMI_RANK": "1", "PMI_SIZE": "2"}, False, None),
                                             ({"SM_HOSTS": '["a", "b"]', "SM_CURRENT_HOST": "b"}, True,
                                              "tcp://a:10854")):
            done = subprocess.run([f"{bin_folder}/dtrain-info", "--join"], env={**CLEAN, **variables},
                                  capture_output=True, text=True, timeout=100)
            self.assertEqual(done.returncode == 0, joins, done.stderr)
            said = json.loads(done.stdout)
            self.assertEqual(said["joins"], joins)
            self.assertEqual(said.get("rendezvous"), rendezvous)
            here = [source["started_by"] for source in said["sources"] if source["here"]]
            self.assertEqual(len(here), 1 if variables else 0, here)

    def test_misspelled(self):
        _, text = run([], DTRAIN_RENDEVOUS="tcp://127.0.0.1:1", DTRAIN_SIZE="1")
        self.assertEqual(text.count("DTRAIN_RENDEVOUS is not one of dtrain's"), 1, text)
        self.assertIn("DTRAIN_RENDEZVOUS", text)


if __name__ == "__main__":
    bin_folder = sys.argv.pop(1)
    unittest.main()
