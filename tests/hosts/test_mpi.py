#!/usr/bin/python3
"""Jobs join under real launchers without a word of configuration: Open MPI's mpirun, MPICH's hydra, and
srun with PMI-2, PMIx and neither; as workers, as workers with servers, and one job after another.
usage: test_mpi.py BIN REJOIN

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

import slurm

OTHERS = re.compile("DTRAIN_|OMPI_|PMI|SLURM_|MV2_|FLUX_|JSM_|HOROVOD_|PET_|SM_|AWS_BATCH_|"
                    "(RANK|WORLD_SIZE|TF_CONFIG|JOB_COMPLETION_INDEX|NUM_PROCESSES)$")
CLEAN = {key: value for key, value in os.environ.items() if not OTHERS.match(key)}
CLEAN |= {"DTRAIN_JOIN_TIMEOUT": "60s", "DTRAIN_HEARTBEAT_TIMEOUT": "30s"}
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"]
HYDRA = ["mpiexec.hydra"]
BENCH = ["--operations", "allreduce", "--sizes", "4", "--iterations", "2"]
bin_folder = rejoin = ""


def run(command, **variables):
    """(exit status, what it said)"""
    done = subprocess.run(command, env={**CLEAN, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


class Launchers(unittest.TestCase):
    def check(self, start):
        """start(arguments, **variables): (exit status, text) of processes under the launcher"""
        bench = [f"{bin_folder}/dtrain-bench", *BENCH]
        for size in (2, 4):
            status, text = start(["-n", str(size), *bench])
            self.assertEqual(status, 0, text)
            self.assertIn(f"{size} ranks", text)
        status, text = start(["-n", "3", rejoin, "3"])
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count("joined 3 times"), 3, text)
        status, text = start(["-n", "2", f"{bin_folder}/dtrain-info", "--join"])
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count('"joins": true'), 2, text)
        # A process that does not come is an error of the others, within their time.
        late = f"if test $(( {self.rank} )) = 1; then sleep 8; else exec $0 \"$@\"; fi"
        status, text = start(["-n", "2", "sh", "-c", late, *bench], DTRAIN_JOIN_TIMEOUT="1s")
        self.assertNotEqual(status, 0, text)
        self.assertIn("DTRAIN_ERR_TIMEOUT", text)

    def test_open_mpi(self):
        if shutil.which(OPEN_MPI[0]) is None:
            self.skipTest(f"{OPEN_MPI[0]} is not installed")
        self.rank = "$OMPI_COMM_WORLD_RANK"
        self.check(lambda arguments, **variables: run([*OPEN_MPI, *arguments], **variables))
        workers = ["-n", "2", f"{bin_folder}/dtrain-bench", *BENCH]
        status, text = run([*OPEN_MPI, *workers, ":", "-n", "1", f"{bin_folder}/dtrain-server"],
                           DTRAIN_SERVERS="1")
        self.assertEqual(status, 0, text)
        self.assertIn("2 ranks", text)

    def test_hydra(self):
        if shutil.which(HYDRA[0]) is None:
            self.skipTest(f"{HYDRA[0]} is not installed")
        self.rank = "$PMI_RANK"
        self.check(lambda arguments, **variables: run([*HYDRA, *arguments], **variables))

    def test_slurm(self):
        if slurm.missing():
            self.skipTest(slurm.missing())
        self.rank = "$SLURM_PROCID"
        with slurm.Slurm() as cluster:
            for kind in ("pmi2", "pmix", "none"):
                with self.subTest(kind):
                    self.check(lambda arguments, **variables: cluster.run(
                        [f"--mpi={kind}", *arguments],
                        **{"DTRAIN_JOIN_TIMEOUT": "60s", "DTRAIN_HEARTBEAT_TIMEOUT": "30s", **variables}))


if __name__ == "__main__":
    bin_folder, rejoin = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
