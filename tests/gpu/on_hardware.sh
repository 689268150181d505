#!/usr/bin/env bash
# Builds the tree and runs what needs no driver for tests on the machine's own GPU: the conformance suite of plugins,
# the tests of buffers on GPUs, and a benchmark. Needs no network. Each part after the build has 75 s.
# usage: tests/gpu/on_hardware.sh [FOLDER for what is built (build/hardware)]
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/hardware}
failed=()

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
part() { # name command...: goes on after a failure
    local name=$1
    shift
    say "$name"
    timeout 75 "$@" && return
    echo "$name: failed with $?"
    failed+=("$name")
}

say "build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDTRAIN_JOINED=ON -DDTRAIN_BENCH=ON || exit 1
ninja -C "$build" dtrain dtrain_device_cuda dtrain_transport_shm dtrain_transport_tcp device_test_cuda gpu_test_memory \
    gpu_test_one_device gpu_test_shards gpu_test_shard_calls contract_test_collectives dtrain-info bench_gpu \
    gpu_digits dtrain-run || exit 1

export DTRAIN_PLUGIN_PATH=$PWD/$build/plugins DTRAIN_ACCELERATORS=cuda
unset LD_LIBRARY_PATH # there is no driver for tests
say "what there is"
nvidia-smi -L
"$build/bin/dtrain-info" | grep -A12 '"accelerators"'

part "conformance suite of plugins" env DTRAIN_TEST_REAL_CUDA=1 "$build/tests/device_test_cuda"
part "memory" "$build/tests/gpu_test_memory"
part "ranks on one GPU" "$build/tests/gpu_test_one_device"
part "tables in the GPU's memory" "$build/tests/gpu_test_shards"
part "calls on such tables" "$build/tests/gpu_test_shard_calls"
part "collectives, with buffers here and there" env DTRAIN_TEST_GPU=1 "$build/tests/contract_test_collectives"
if ninja -C "$build" gpu_digits_kernels; then # there is nvcc
    part "example" "$build/bin/dtrain-run" -n 2 -- "$build/bin/gpu_digits" "$build/bin/gpu_digits.ptx" examples/digits/data
fi
part "speed" "$build/bin/bench_gpu"

say "end"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
