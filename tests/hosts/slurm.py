"""A Slurm of one machine, for tests: slurmctld and slurmd in a folder of their own, on free ports.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from ports import free_ports  # noqa: E402

PROGRAMS = ("slurmctld", "slurmd", "srun", "scontrol")
CONFIGURATION = """
ClusterName=dtrain
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:8 State=UP
"""


def missing():
    """What a Slurm needs that this machine lacks: "" if nothing."""
    lacks = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacks:
        return f"{', '.join(lacks)} not installed"
    return "" if os.geteuid() == 0 else "slurmd needs root"


class Slurm:
    """with Slurm() as slurm: slurm.run(["-n", "2", program])"""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-slurm-"))
        self.daemons = []

    def __enter__(self):
        controller, daemon = free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        configuration = self.folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname(), controller=controller, daemon=daemon, folder=self.folder,
            cpus=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(configuration)}
        try:
            for program in ("slurmctld", "slurmd"):
                with open(self.folder / f"{program}.log", "w") as log:
                    self.daemons.append(subprocess.Popen([program, "-D"], env=self.environment,
                                                         stdout=log, stderr=log))
            self.wait_until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_idle(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            said = subprocess.run(["scontrol", "show", "nodes"], env=self.environment,
                                  capture_output=True, text=True)
            if "State=IDLE" in said.stdout:
                return
            time.sleep(0.2)
        logs = "\n".join((self.folder / f"{name}.log").read_text() for name in ("slurmctld", "slurmd"))
        raise RuntimeError(f"Slurm does not start within {seconds} s: {said.stdout}{said.stderr}\n{logs}")

    def run(self, arguments, seconds=100, **variables):
        """(exit status, what it said) of srun with these arguments"""
        done = subprocess.run(["srun", "--overcommit", *arguments], env={**self.environment, **variables},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return done.returncode, done.stdout

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
