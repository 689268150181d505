// The descriptor of an update rule. Each rule has a file of its own with its formula, its kernels
// and its descriptor, `<name>_rule`, from which everything else that knows the rule follows
// (docs/EXTENDING.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"
#include "ps/rules/kernels.h"

#include <cstdint>

namespace dtrain::ps {

struct RuleInfo {
    const char *name;
    // For docs/PARAMETER_SERVER.md: what an update does, in Markdown, and who published it.
    const char *formula, *source = "";
    enum : uint32_t {
        optimizer = 1,     // has a learning rate, clipping, ...; floating-point tables only
        counts_steps = 2,  // needs the number of updates of each element
        counts_rows = 4,   // needs the number of updates of each row
        row_state = 8,     // slots hold one number per row
        own_decay = 16,    // the rule applies the weight decay; it is not added to g
        own_proximal = 32, // the rule applies l1 and l2 itself
        floats = 64,       // floating-point tables only
        backs_up = 128,    // needs the values that each worker pulled last
        own_steps = 256    // counts updates itself, regardless of the table's `steps`
    };
    uint32_t flags = 0;
    const char *slots[max_slots] = {}; // names of the state's arrays
    uint32_t accumulator = max_slots;  // the slot that starts at `accumulator`; max_slots: none
    uint32_t combine = DTRAIN_SUM;     // combines a clock's pushes; without `update` it is the rule
    // backs_up: slot a has the values that the worker pulled.
    const Kernels *update = nullptr;
    // For rules with norms: a pass before the update that writes the direction to c (nullptr: the
    // direction is g), and the factor of the rate, computed from the norms. count: elements of the
    // row; state: the row's state.
    const Kernels *direction = nullptr;
    double (*ratio)(const Step &step, const Norms &norms, uint64_t count, double &state) = nullptr;
    double rate = 0.01, epsilon = 1e-8, beta1 = 0.9, beta2 = 0.999; // defaults
    uint32_t takes = 0; // DTRAIN_GIVEN_*: the numbers in the rule's formula

    bool is(uint32_t flag) const { return (flags & flag) != 0; }
    bool counts() const { return is(counts_steps | counts_rows); }
    uint32_t slot_count() const {
        uint32_t n = 0;
        while (n < max_slots && slots[n] != nullptr) ++n;
        return n;
    }
};

// What most optimizers are, and the numbers that groups of them take.
inline constexpr uint32_t float_optimizer = RuleInfo::optimizer | RuleInfo::floats;
inline constexpr uint32_t takes_rate = DTRAIN_GIVEN_LEARNING_RATE,
                          takes_epsilon = takes_rate | DTRAIN_GIVEN_EPSILON,
                          takes_momentum = takes_rate | DTRAIN_GIVEN_MOMENTUM,
                          takes_rho = takes_epsilon | DTRAIN_GIVEN_RHO,
                          takes_betas = takes_rate | DTRAIN_GIVEN_BETA1 | DTRAIN_GIVEN_BETA2,
                          takes_moments = takes_epsilon | takes_betas,
                          takes_accumulator = DTRAIN_GIVEN_ACCUMULATOR;

} // namespace dtrain::ps
