#!/usr/bin/python3
"""Eight ranks that share a twentieth of a core join, add up for a while, and leave: none of them is taken for dead.
Needs root, and a control group for processors.
usage: test_starved.py BIN PROGRAM

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import time

SKIPPED = 77
RANKS, SECONDS = 8, 10
PERIOD_US, QUOTA_US = 100_000, 5_000


def make_group():
    """The folder of a new group with so little of a core, in the first hierarchy that has processors."""
    name = f"dtrain-test-{os.getpid()}"
    folder = pathlib.Path("/sys/fs/cgroup/cpu") / name  # version 1
    if folder.parent.is_dir():
        folder.mkdir()
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        return folder
    folder = pathlib.Path("/sys/fs/cgroup") / name
    folder.mkdir()
    if not (folder / "cpu.max").exists():
        folder.rmdir()
        raise OSError("the controller of processors is not in use")
    (folder / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
    return folder


def remove(folder):
    for pid in (folder / "cgroup.procs").read_text().split():
        os.kill(int(pid), 9)
    for _ in range(100):  # until the last process has ended
        try:
            return folder.rmdir()
        except OSError:
            time.sleep(0.1)
    return folder.rmdir()


def run(folder, bin_folder, program, transports):
    def enter():
        (folder / "cgroup.procs").write_text(str(os.getpid()))

    job = subprocess.run(
        [f"{bin_folder}/dtrain-run", "-n", str(RANKS), "--", program, "20000", str(SECONDS)], preexec_fn=enter,
        env=dict(os.environ, DTRAIN_TRANSPORTS=transports), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120)
    done = sum(line.endswith("done") for line in job.stdout.splitlines())
    if job.returncode != 0 or done != RANKS or "failed" in job.stdout:
        sys.exit(f"over {transports}, {done} of {RANKS} did all: status {job.returncode}\n{job.stdout}")
    print(f"over {transports}: all {RANKS} did all")


def main(bin_folder, program):
    try:
        folder = make_group()
    except OSError as error:
        print(f"skipped: no group with a part of a core can be made here: {error}")
        return SKIPPED
    try:
        for transports in ("shm,tcp", "tcp"):
            run(folder, bin_folder, program, transports)
    finally:
        remove(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
