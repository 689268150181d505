// The list of the collectives' algorithms. The choices of option allreduce.algorithm, the
// enumeration and the registry (collectives/algorithms/algorithm.h) are made from it. It stands
// here because options are checked without any collective.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// f(name) for each: lib/collectives/algorithms/<name>.cpp describes it. Of those that are predicted
// to take equally long, the first is chosen.
// clang-format off
#define DTRAIN_EACH_ALGORITHM(f) \
    f(direct) \
    f(ring) \
    f(recursive_doubling) \
    f(halving_doubling) \
    f(binomial_tree) \
    f(double_tree) \
    f(bruck) \
    f(hierarchical) \
    f(hierarchical_tree) \
    f(two_shot) \
    // the next one goes above this line
// clang-format on
