// Looks for the fewest digits that read as the same number.
// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace dtrain {
namespace {

constexpr int enough_digits = 17; // for any number

// digits[0].digits[1]digits[2]... times 10 to the exponent
struct Decimal {
    std::string digits;
    int exponent = 0;
};

Decimal round_to(int digits, double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*e", digits - 1, number);
    Decimal out;
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') out.digits += *at; // the point is the locale's
    out.exponent = std::atoi(at + 1);
    return out;
}

std::string scientific(const Decimal &decimal) {
    std::string text = decimal.digits;
    if (text.size() > 1) text.insert(1, ".");
    char exponent[8];
    std::snprintf(exponent, sizeof exponent, "e%+03d", decimal.exponent);
    return text + exponent;
}

std::string fixed(const Decimal &decimal, double number) {
    const int exponent = decimal.exponent, last = int(decimal.digits.size()) - 1;
    if (exponent < 0) return "0." + std::string(size_t(-exponent - 1), '0') + decimal.digits;
    if (exponent < last) return std::string(decimal.digits).insert(size_t(exponent) + 1, ".");
    char whole[320]; // all of its digits
    std::snprintf(whole, sizeof whole, "%.0f", number);
    return whole;
}

bool reads_as(const std::string &text, double number) {
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    return read == number;
}

} // namespace

std::string decimal_text(double number) {
    const std::string sign = std::signbit(number) ? "-" : "";
    const double size = std::fabs(number);
    if (std::isnan(size)) return sign + "nan";
    if (std::isinf(size)) return sign + "inf";
    if (size == 0) return sign + "0";
    for (int digits = 1;; digits++) {
        Decimal decimal = round_to(digits, size);
        if (digits < enough_digits && !reads_as(scientific(decimal), size)) {
            // Of a power of two, the next larger text may be the one: numbers above it are farther
            // apart than those below. After a 9 it has fewer digits.
            if (decimal.digits.back()++ == '9' || !reads_as(scientific(decimal), size)) continue;
        }
        const std::string plain = fixed(decimal, size), other = scientific(decimal);
        return sign + (plain.size() <= other.size() ? plain : other);
    }
}

} // namespace dtrain
