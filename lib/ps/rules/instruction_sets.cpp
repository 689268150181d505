// The instruction sets that kernels are compiled for, and the choice of the best one.
// SPDX-License-Identifier: Apache-2.0
#include "device/cpu.h"
#include "ps/rules/kernels.h"

namespace dtrain::ps {
namespace {

constexpr InstructionSet sets[] = {{"generic", 0}, {"avx2", 1}, {"avx512", 2}};

} // namespace

const InstructionSet *supported_set(uint32_t rank) {
#ifdef __x86_64__
    if (device::cpu_has_avx512() && rank-- == 0) return &sets[2];
    if (device::cpu_has_avx2() && rank-- == 0) return &sets[1];
#endif
    return rank == 0 ? &sets[0] : nullptr;
}

} // namespace dtrain::ps
