// The algorithms that tests go over: all, or only the one that DTRAIN_TEST_ALGORITHM names.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "collectives/algorithms/algorithm.h"

#include <cstdlib>
#include <vector>

inline std::vector<dtrain::collectives::Algorithm> tested_algorithms() {
    using namespace dtrain::collectives;
    const char *name = std::getenv("DTRAIN_TEST_ALGORITHM");
    std::span<const Algorithm> all = all_algorithms();
    if (name == nullptr) return {all.begin(), all.end()};
    Algorithm one;
    if (!parse_algorithm(name, one))
        fail_msg("DTRAIN_TEST_ALGORITHM=%s: there is no such algorithm", name);
    return {one};
}
