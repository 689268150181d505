#!/usr/bin/python3
"""A job over two hosts, which are network namespaces with two links: without options data finds its
way and sums are made host by host; told of both links it takes both. Needs root.
usage: test_hosts.py BIN

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess
import sys

from namespaces import ip, run_on_hosts

TAG = f"dt{os.getpid()}"
NAMES = [f"{TAG}a", f"{TAG}b"]


def make_links():
    for link in range(2):
        card = f"eth{link}"
        ip("-n", NAMES[0], "link", "add", card, "type", "veth", "peer", "name", card, "netns",
           NAMES[1])
        for i, name in enumerate(NAMES):
            ip("-n", name, "address", "add", f"10.78.{link}.{i + 1}/24", "dev", card)
            ip("-n", name, "link", "set", card, "up")


def sent(name):
    """Bytes that the links of a host have sent."""
    links = json.loads(subprocess.run(["ip", "-s", "-j", "-n", name, "link"], check=True,
                                      capture_output=True, text=True).stdout)
    return [link["stats64"]["tx"]["bytes"] for link in links if link["ifname"].startswith("eth")]


def run_job(bin_folder, ranks, arguments, **options):
    """[(exit status, what it said)] by rank; the first half of the ranks is on the first host."""
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, DTRAIN_RENDEZVOUS="tcp://10.78.0.1:7777",
                           DTRAIN_RANK=str(rank), DTRAIN_SIZE=str(ranks), DTRAIN_EXPLAIN="1",
                           DTRAIN_JOIN_TIMEOUT="60s", DTRAIN_HEARTBEAT_TIMEOUT="30s", **options)
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


def check_rails(bin_folder, arguments):
    before = sent(NAMES[0])
    check(run_job(bin_folder, 4, arguments, DTRAIN_TCP_INTERFACE="eth0,eth1"))
    first, second = [after - b for after, b in zip(sent(NAMES[0]), before)]
    if second < 0.6 * first or first < 0.6 * second:
        sys.exit(f"the two links sent {first} and {second} bytes")
    status, text = run_job(bin_folder, 2, arguments, DTRAIN_TCP_INTERFACE="eth0,eth7")[0]
    if status == 0 or "eth7" not in text:
        sys.exit(f"a link that there is not: {status}, {text}")


def main(bin_folder):
    def test():
        arguments = ["--operations", "allreduce,allgather,broadcast", "--sizes", "4,100K,4M",
                     "--iterations", "3"]
        check(run_job(bin_folder, 4, arguments))
        check_rails(bin_folder, arguments)
        print("two hosts of two ranks: hierarchical, over one link and over two")
        return 0
    return run_on_hosts(NAMES, make_links, test)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
