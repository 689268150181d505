#!/bin/sh
# PyTorch's launcher; dtrain listens next to its store. usage: torchrun.sh [OPTION OF TORCHRUN ...]
# SPDX-License-Identifier: Apache-2.0
exec torchrun --nproc-per-node=2 "$@" "$(dirname "$0")/../digits/python/digits.py"
