// The names of all algorithms, as choices of option allreduce.algorithm; or only the one that
// DTRAIN_TEST_ALGORITHM names.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lib/base/collective_algorithms.h"

#include <cstdlib>
#include <string>
#include <vector>

inline std::vector<std::string> tested_algorithms() {
    if (const char *name = std::getenv("DTRAIN_TEST_ALGORITHM")) return {name};
#define DTRAIN_QUOTED(name) #name,
    return {DTRAIN_EACH_ALGORITHM(DTRAIN_QUOTED)};
#undef DTRAIN_QUOTED
}
