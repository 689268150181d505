#!/usr/bin/python3
"""A job over two hosts, which are network namespaces: without options data finds its way and sums are
made host by host. Needs root.
usage: test_hosts.py BIN

SPDX-License-Identifier: Apache-2.0
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
TAG = f"dt{os.getpid()}"
NAMES = [f"{TAG}a", f"{TAG}b"]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def make_hosts():
    for name in NAMES:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
    ip("-n", NAMES[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
       NAMES[1])
    for i, name in enumerate(NAMES):
        ip("-n", name, "address", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")


def run_job(bin_folder, ranks, arguments):
    """[(exit status, what it said)] by rank; the first half of the ranks is on the first host."""
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, DTRAIN_RENDEZVOUS="tcp://10.78.0.1:7777",
                           DTRAIN_RANK=str(rank), DTRAIN_SIZE=str(ranks), DTRAIN_EXPLAIN="1",
                           DTRAIN_JOIN_TIMEOUT="60s", DTRAIN_HEARTBEAT_TIMEOUT="30s")
        processes.append(subprocess.Popen(
            ["ip", "netns", "exec", NAMES[rank * 2 // ranks], f"{bin_folder}/dtrain-bench",
             *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = [process.communicate(timeout=100)[0] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said)]


def check(results):
    for rank, (status, text) in enumerate(results):
        if status != 0:
            sys.exit(f"rank {rank} ended with {status}: {text}")
    if "hierarchical" not in results[0][1]:
        sys.exit(f"no hierarchical all-reduce: {results[0][1]}")


def main(bin_folder):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        print("skipped: making network namespaces needs root and iproute2")
        return SKIPPED
    try:
        try:
            make_hosts()
        except subprocess.CalledProcessError as error:
            print(f"skipped: no network namespaces here: {error.stderr.strip()}")
            return SKIPPED
        check(run_job(bin_folder, 4, ["--operations", "allreduce,allgather,broadcast", "--sizes",
                                      "4,100K,4M", "--iterations", "3"]))
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    print("two hosts of two ranks: hierarchical")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
