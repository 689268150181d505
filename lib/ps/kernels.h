// The inner loops of the update rules, compiled for several instruction sets and chosen at run
// time. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table_params.h"

#include <cstdint>

namespace dtrain::ps {

// The hyper-parameters of one update, with everything that is the same for all elements computed.
struct Step {
    uint32_t rule;
    double rate;         // learning rate; ADAM: with the bias correction of the first moment
    double momentum;     // MOMENTUM
    double beta1, beta2; // ADAM
    double second;       // ADAM: bias correction of the second moment
    double epsilon;
};
// number: which update of the elements this is, from 1.
Step make_step(const TableParams &params, uint64_t number);

// One update of w by g with state a and b (as many as the rule has). No two arrays overlap.
void kernel_step(const Step &step, float *w, const float *g, float *a, float *b, uint64_t count);
void kernel_step(const Step &step, double *w, const double *g, double *a, double *b,
                 uint64_t count);

} // namespace dtrain::ps
