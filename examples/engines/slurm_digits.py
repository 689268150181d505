#!/usr/bin/env python3
"""A step of Slurm, from a program: in an allocation, or with one of its own. The folder is shared by the nodes.
usage: slurm_digits.py [OPTION OF SRUN ...]

SPDX-License-Identifier: Apache-2.0
"""
import sys

from dtrain import launch
from train import report, train

if __name__ == "__main__":
    report("slurm", launch.run_cluster(2, 1, train, args=[True], backend="slurm", options=sys.argv[1:], timeout_seconds=300))
