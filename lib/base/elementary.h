// Elementary functions that give the same bits on all processors. Those of the C library do not: it
// chooses between versions with and without fused multiply-add.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain {

double logarithm(double x); // natural logarithm of a normal number > 0
double exponential(double x);
double cosine_of_turn(double v); // cos(2 pi v), 0 <= v < 1
// Computes the power by repeated squaring; 0 to the power of 0 is 1.
double whole_power(double base, uint64_t exponent);

} // namespace dtrain
