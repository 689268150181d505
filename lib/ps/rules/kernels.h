// Kernels, the inner loops of the update rules: each is compiled for several instruction sets, one
// of which is chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/step.h"

#include <cstdint>

namespace dtrain::ps {

inline constexpr uint32_t max_slots = 3; // a, b and c

// Updates w by g with the rule's state a, b, c (slots that the rule lacks are not read). No two
// arrays may overlap; no alignment beyond the element's is needed.
template <class T>
using Kernel = void (*)(const Step &step, T *w, const T *g, T *a, T *b, T *c, uint64_t count);

#ifdef __x86_64__
inline constexpr uint32_t instruction_sets = 3; // generic, avx2, avx512
#else
inline constexpr uint32_t instruction_sets = 1;
#endif

struct InstructionSet {
    const char *name;
    uint32_t index; // below instruction_sets
};

// The rank-th best set that this processor can run (0 = the best), nullptr beyond the last one.
const InstructionSet *supported_set(uint32_t rank);

// One loop for each type and instruction set. Every set computes the same results, bit for bit.
struct Kernels {
    Kernel<float> f32[instruction_sets];
    Kernel<double> f64[instruction_sets];
    template <class T> Kernel<T> of(const InstructionSet &set) const {
        if constexpr (sizeof(T) == 4)
            return f32[set.index];
        else
            return f64[set.index];
    }
};

// Kernels that more than one file uses; DTRAIN_KERNEL() defines them. adjust runs before a rule and
// computes a = scale * clipped g + decay * w. proximal runs after it: the proximal step on w.
extern const Kernels sgd_kernels, adjust_kernels, proximal_kernels;

} // namespace dtrain::ps
