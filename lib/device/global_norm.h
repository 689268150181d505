// The L2 norm of arrays taken together, and clipping by it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace dtrain::device {

struct FloatArray {
    void *values; // anywhere in memory
    uint64_t count;
    uint32_t dtype; // a floating one
};

// fraction * 2^exponent, the fraction 0, or from 0.5 to 1: of f64, it may be more than that holds.
struct GlobalNorm {
    double fraction = 0;
    int exponent = 0;
    double value() const; // infinite if it is more
};

// Squares are added up in f64, and scaled before where they would not fit: a function of the
// values and their order. The fraction is not finite if a value is not.
GlobalNorm global_norm(std::span<const FloatArray> arrays);

// values[i] *= most / norm, which is more: the quotient rounded to f64, and to f32 for all but f64.
void clip(const FloatArray &array, double most, const GlobalNorm &norm);

} // namespace dtrain::device
