#!/usr/bin/env bash
# Builds the tree and runs, on the machine's own GPU, all tests that need no driver for tests, the examples, NCCL and
# PyTorch over dtrain where they are installed, and the benchmarks. Needs no network.
# usage: tests/gpu/on_hardware.sh [--built] [--at-once N] [FOLDER (build/hardware)] [PART...]
#   --built      FOLDER holds bin, lib, plugins and tests, built elsewhere
#   --at-once N  tests beside each other (6)
#   PART         facts suites contract examples nccl torch speed (all of them)
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

built=no at_once=6
while [[ ${1:-} == --* ]]; do
    case $1 in
    --built) built=yes ;;
    --at-once) at_once=$2 && shift ;;
    *) sed -n '2,9s/^# //p' "$0" && exit 2 ;;
    esac
    shift
done
build=$PWD/${1:-build/hardware}
shift
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(facts suites contract examples nccl torch speed)
suites=(device_test_cuda device_test_cuda_processes gpu_test_memory gpu_test_buffers gpu_test_tables gpu_test_streams
    gpu_test_one_device gpu_test_one_device_kinds gpu_test_one_device_streams gpu_test_shards gpu_test_shard_calls
    gpu_test_shard_errors gpu_test_shard_waits gpu_test_errors gpu_test_calls_that_wait)
on_gpu=(collectives) # contracts with buffers on the host and on GPUs
in_gpu=(tables rules averages) # contracts on tables in a GPU's memory
failed=()

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
step() { # name command...: goes on after a failure
    local name=$1
    shift
    say "$name"
    timeout 200 "$@" && return
    echo "$name: failed with $?"
    failed+=("$name")
}

build() {
    say "build"
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDTRAIN_JOINED=ON -DDTRAIN_BENCH=ON &&
        ninja -C "$build" dtrain dtrain_device_cuda dtrain_transport_shm dtrain_transport_tcp "${suites[@]}" \
            "${on_gpu[@]/#/contract_test_}" "${in_gpu[@]/#/contract_test_}" dtrain-info bench_gpu bench_gpu_facts \
            gpu_digits dtrain-run nccl_net || exit 1
    ninja -C "$build" gpu_digits_kernels python_extension || true # there may be neither nvcc nor SWIG
}

# A GPU's driver cannot be used after fork(), so each case has a process; suites of plugins fork by themselves.
cases() { # program setting: lines "program case setting"
    if [[ $1 = device_* ]]; then
        echo "$1 all $2"
        return
    fi
    grep -o 'cmocka_unit_test[a-z_]*([a-z_0-9]*' "tests/${1/_test_//test_}.cpp" | sed 's/.*(//' |
        while read -r name; do echo "$1 $name $2"; done
}
one() { # program case setting
    local log=$build/logs/$1.$2
    if timeout 60 env DTRAIN_OP_TIMEOUT=20s "$3" "$build/tests/$1" "${2/#all/*}" >"$log" 2>&1; then
        if grep -q 'SKIPPED' "$log"; then echo "skipped $1 $2"; else echo "passed $1 $2"; fi
    else
        echo "failed $1 $2 with $?"
    fi
}
export -f one
export build
run_cases() { # name, lines of cases on stdin
    say "$1"
    mkdir -p "$build/logs"
    xargs -P "$at_once" -L 1 bash -c 'one "$@"' one >"$build/logs/results.$1"
    local word
    for word in passed skipped failed; do printf '%s %d  ' "$word" "$(grep -c "^$word" "$build/logs/results.$1")"; done
    echo
    grep '^failed' "$build/logs/results.$1" | while read -r _ program name rest; do
        echo "-- $program $name $rest"
        grep -v '^\[' "$build/logs/$program.$name" | tail -n 6 | cut -c 1-300
    done
    ! grep -q '^failed' "$build/logs/results.$1" || failed+=("$1")
}

torch() { # the extension is of this Python's version
    local include made=$build/bindings/python
    include=$(python3 -c 'import torch, sysconfig; print(sysconfig.get_paths()["include"])') || return 0
    local compile=(gcc -O1 -fPIC -w -D_GNU_SOURCE -Iinclude -Ibindings/python/extension "-I$include" -c)
    "${compile[@]}" -DPyInit__dtrain=dtrain_swig_module -o "$made/swig.o" "$made/dtrain_python.c" &&
        "${compile[@]}" -o "$made/module.o" bindings/python/extension/module.c &&
        gcc -shared -o "$build/python/dtrain/_dtrain.so" "$made/swig.o" "$made/module.o" "$build"/lib/libdtrain.so.? ||
        return 1
    PYTHONPATH=$build/python python3 -m torch.distributed.run --nproc-per-node 2 examples/torch/digits.py --gpu
}

[ $built = yes ] || build
export DTRAIN_PLUGIN_PATH=$build/plugins DTRAIN_ACCELERATORS=cuda LD_LIBRARY_PATH=$build/lib
say "what there is"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
"$build/bin/dtrain-info" | grep -A12 '"accelerators"'

wants facts && step "facts" "$build/bin/bench_gpu_facts"
wants suites && for suite in "${suites[@]}"; do cases "$suite" DTRAIN_TEST_REAL_CUDA=1; done | run_cases suites
wants contract && { for name in "${on_gpu[@]}"; do cases "contract_test_$name" DTRAIN_TEST_GPU=1; done
    for name in "${in_gpu[@]}"; do cases "contract_test_$name" DTRAIN_TEST_TABLES=cuda; done; } | run_cases contract
if wants examples && [ -e "$build/bin/gpu_digits.ptx" ]; then
    step "example" "$build/bin/dtrain-run" -n 2 -- "$build/bin/gpu_digits" "$build/bin/gpu_digits.ptx" examples/digits/data
fi
wants nccl && step "NCCL over dtrain" python3 plugins/nccl/try_on_gpu --plugin "$build/plugins/hosts/libnccl-net-dtrain.so"
wants torch && { export -f torch && step "PyTorch over dtrain" bash -c torch; }
wants speed && step "speed" "$build/bin/bench_gpu"

say "end"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
