// The initial values of a row of a sparse table: a function of seed and key, so that they do not
// depend on which server makes the row, or when.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

enum class Distribution : uint32_t { constant = 1, uniform = 2, normal = 3 };

struct RowInitializer {
    Distribution distribution = Distribution::constant;
    uint32_t dtype = 0; // floating-point unless the distribution is constant
    uint32_t dim = 0;
    double a = 0, b = 0; // constant: a; uniform: from a to b; normal: mean a, standard deviation b
    uint64_t seed = 0;

    // Writes dim values.
    void fill(uint64_t key, void *values) const;
};

} // namespace dtrain::ps
