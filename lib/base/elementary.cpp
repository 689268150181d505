// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"

#include <array>
#include <cmath>
#include <cstddef>
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

// (-1)^i / (2 i + first)!: of the cosine (0) and the sine (1).
constexpr Series taylor(size_t first) {
    Series c{1};
    for (size_t i = 1; i < terms; i++)
        c[i] = -c[i - 1] / (double(2 * i + first) * double(2 * i + first - 1));
    return c;
}
constexpr Series cosine = taylor(0), sine = taylor(1);

double sum(const Series &c, double x) {
    double value = c[terms - 1];
    for (size_t i = terms - 1; i-- > 0;) value = value * x + c[i];
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

// The nearest quarter's sine or cosine.
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
