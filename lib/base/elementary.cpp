// Computes elementary functions by series, in the same order of operations everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

namespace dtrain {
namespace {

constexpr size_t terms = 12;
using Series = std::array<double, terms>;

constexpr Series inverse_odd_numbers = [] { // 1/3, 1/5, ...
    Series c{};
    for (size_t i = 0; i < terms; i++) c[i] = 1 / double(2 * i + 3);
    return c;
}();

// Coefficients (-1)^i / (2 i + first)! of the cosine (first = 0) and the sine (first = 1).
constexpr Series taylor(size_t first) {
    Series c{1};
    for (size_t i = 1; i < terms; i++)
        c[i] = -c[i - 1] / (double(2 * i + first) * double(2 * i + first - 1));
    return c;
}
constexpr Series cosine = taylor(0), sine = taylor(1);

constexpr auto inverse_factorials = [] { // 1, 1, 1/2, 1/6, ...
    std::array<double, 16> c{1};
    for (size_t i = 1; i < c.size(); i++) c[i] = c[i - 1] / double(i);
    return c;
}();

template <size_t n> double sum(const std::array<double, n> &c, double x) {
    double value = c[n - 1];
    for (size_t i = n - 1; i-- > 0;) value = value * x + c[i];
    return value;
}

} // namespace

// 2 atanh((m - 1) / (m + 1)) + e log 2 for x = m 2^e with m near 1.
double logarithm(double x) {
    int exponent;
    double m = std::frexp(x, &exponent); // in [1/2, 1)
    if (m < std::numbers::sqrt2 / 2) {
        m *= 2;
        exponent--;
    }
    const double s = (m - 1) / (m + 1), square = s * s;
    return exponent * std::numbers::ln2 + 2 * s * (1 + square * sum(inverse_odd_numbers, square));
}

// Computes 2^k e^r for x = k log 2 + r. log 2 is split into two numbers, so that k times the first
// is exact.
double exponential(double x) {
    if (x > 1000) return std::numeric_limits<double>::infinity();
    if (x < -1000) return 0;
    constexpr double most = 0x1.62e42feep-1, rest = 0x1.a39ef35793c76p-33;
    const double k = std::floor(x / std::numbers::ln2 + 0.5), r = x - k * most - k * rest;
    return std::ldexp(sum(inverse_factorials, r), int(k));
}

// Computes the sine or cosine of the distance to the nearest quarter turn.
double cosine_of_turn(double v) {
    const double quarter = std::floor(4 * v + 0.5), x = (4 * v - quarter) * (std::numbers::pi / 2);
    const double value = int(quarter) % 2 == 0 ? sum(cosine, x * x) : x * sum(sine, x * x);
    return int(quarter) % 4 == 1 || int(quarter) % 4 == 2 ? -value : value;
}

double whole_power(double base, uint64_t exponent) {
    double result = 1;
    for (; exponent != 0 && result != 0; exponent /= 2, base *= base)
        if (exponent % 2 != 0) result *= base;
    return result;
}

} // namespace dtrain
