#!/usr/bin/env python3
"""Hosts that are reached by ssh; each has Python with dtrain, NumPy, and this folder.
usage: ssh_digits.py HOST:SLOTS,HOST:SLOTS [ARGUMENT OF SSH ...]

SPDX-License-Identifier: Apache-2.0
"""
import sys

from dtrain import launch
from train import report, train

if __name__ == "__main__":
    hosts, *options = sys.argv[1:]
    workers = sum(int(host.rpartition(":")[2]) for host in hosts.split(","))
    report("ssh", launch.run_cluster(workers, 0, train, backend="ssh", hosts=hosts, options=options, timeout_seconds=120))
