#!/bin/sh
#SBATCH --ntasks=2
# Slurm: `sbatch srun.sh`, or `./srun.sh` at once; srun.sh [OPTION OF SRUN ...]. DIGITS: where the program is, which a
# script in Slurm's spool does not know.
# SPDX-License-Identifier: Apache-2.0
exec srun --ntasks=2 "$@" python3 "${DIGITS:-$(dirname "$0")/../digits/python/digits.py}"
