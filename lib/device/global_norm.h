// The L2 norm of several arrays together, and clipping by it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace dtrain::device {

struct FloatArray {
    void *values; // no alignment needed
    uint64_t count;
    uint32_t dtype; // a floating-point type
};

// The norm is fraction * 2^exponent, where fraction is 0 or from 0.5 to 1; the norm of f64 arrays
// may exceed the range of f64.
struct GlobalNorm {
    double fraction = 0;
    int exponent = 0;
    double value() const; // infinite if it exceeds f64
};

// Adds up squares in f64, and scales the values first if the squares would not fit. The result
// depends only on the values and their order. The fraction is not finite if a value is not.
GlobalNorm global_norm(std::span<const FloatArray> arrays);

// values[i] *= most / norm, where norm > most. The quotient is rounded to f64, and to f32 for all
// types but f64.
void clip(const FloatArray &array, double most, const GlobalNorm &norm);

} // namespace dtrain::device
