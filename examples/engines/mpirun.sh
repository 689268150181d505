#!/bin/sh
# Open MPI's mpirun, MPICH's mpiexec and their like: nothing but the program. usage: mpirun.sh [OPTION OF MPIRUN ...]
# SPDX-License-Identifier: Apache-2.0
exec "${MPIRUN:-mpirun}" "$@" -n 2 python3 "$(dirname "$0")/../digits/python/digits.py"
