#!/usr/bin/env python3
"""Processes of this machine: two workers by all-reduce, then two with a server.

SPDX-License-Identifier: Apache-2.0
"""
from dtrain import launch
from train import report, train

if __name__ == "__main__":
    report("local", launch.run_cluster(2, 0, train, timeout_seconds=120))
    report("local, with a server", launch.run_cluster(2, 1, train, args=[True], timeout_seconds=120))
