// The parameters of a compressor, checked and completed with defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain.h"

#include <cstdint>
#include <vector>

namespace dtrain::compression {

struct Matrix {
    uint64_t rows = 0, columns = 0;
};

struct Params {
    uint64_t count = 0;
    uint64_t kept = 0; // TOPK: number of elements that a rank sends
    // POWERSGD: they follow each other in the vector. The last row of a single one may be longer
    // than what is left of the vector.
    std::vector<Matrix> matrices;
    uint64_t seed = 0;
    uint32_t kind = 0; // DTRAIN_COMPRESS_*
    uint32_t block = 0;
    uint32_t rank = 0; // POWERSGD
    uint32_t flags = 0;

    bool has_feedback() const { return (flags & DTRAIN_COMPRESS_NO_FEEDBACK) == 0; }
    bool is_stochastic() const { return (flags & DTRAIN_COMPRESS_STOCHASTIC) != 0; }
};

// Of the rows and columns of all matrices.
uint64_t hash_of(const std::vector<Matrix> &matrices);

Status read_params(const dtrain_compressor_params_t &given, Params &out);

} // namespace dtrain::compression
