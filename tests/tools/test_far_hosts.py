#!/usr/bin/python3
"""Three hosts, which are network namespaces behind a switch that keeps frames for 5 ms, or for none: the ranks notice
how long the way is, and choose their algorithms by it. Needs root.
usage: test_far_hosts.py BIN DELAY

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import subprocess
import sys

from namespaces import ip, run_on_hosts

TAG = f"dt{os.getpid()}"
HOSTS = [f"{TAG}h{i}" for i in range(3)]
SWITCH = f"{TAG}s"
WAY_US = 5000


def make_links():
    for i, name in enumerate(HOSTS):
        ip("-n", SWITCH, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", SWITCH, "link", "set", f"port{i}", "up")
        ip("-n", name, "address", "add", f"10.80.0.{i + 1}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")


def explained(bin_folder, program, way_us):
    """{bytes: (algorithm, predicted us)} of the all-reduces of a job whose frames take so long."""
    switch = subprocess.Popen(["ip", "netns", "exec", SWITCH, program, str(way_us),
                               *(f"port{i}" for i in range(len(HOSTS)))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not switch.stdout.readline():
        sys.exit("the switch did not start")
    processes = []
    for rank, name in enumerate(HOSTS):
        environment = dict(os.environ, DTRAIN_RENDEZVOUS="tcp://10.80.0.1:7777", DTRAIN_RANK=str(rank),
                           DTRAIN_SIZE=str(len(HOSTS)), DTRAIN_EXPLAIN="1", DTRAIN_JOIN_TIMEOUT="60s",
                           DTRAIN_HEARTBEAT_TIMEOUT="30s")
        processes.append(subprocess.Popen(
            ["ip", "netns", "exec", name, f"{bin_folder}/dtrain-bench", "--operations", "allreduce", "--sizes",
             "4,100K", "--iterations", "3"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = [process.communicate(timeout=100)[0] for process in processes]
    switch.stdin.close()
    switch.wait()
    if any(process.returncode != 0 for process in processes):
        sys.exit(f"a rank failed: {said}")
    found = {}
    for line in said[0].splitlines():
        match = re.search(r"allreduce of (\d+) bytes .* over 3 ranks: (\w+) \(predicted ([\d.]+) us\)", line)
        if match:
            found[int(match[1])] = (match[2], float(match[3]))
    if not {4, 102400} <= set(found):
        sys.exit(f"nothing is explained: {said[0]}")
    return found


def main(bin_folder, program):
    def test():
        near, far = explained(bin_folder, program, 0), explained(bin_folder, program, WAY_US)
        if near[4][1] > WAY_US / 5:
            sys.exit(f"between near hosts: {near}")
        # A busy machine may keep the frames for longer, and the figure is a power of two.
        if far[4][0] != "direct" or not 0.7 * WAY_US < far[4][1] < 10 * WAY_US:
            sys.exit(f"4 bytes between far hosts: {far}")
        if far[102400][0] not in ("direct", "two_shot"):  # one way or two; all others take more
            sys.exit(f"100 KiB between far hosts: {far}")
        print(f"near: {near}, far: {far}")
        return 0
    return run_on_hosts([SWITCH, *HOSTS], make_links, test)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
