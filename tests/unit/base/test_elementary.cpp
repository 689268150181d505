// Next to the C library's, which is right to the last place but one; and bits computed once, which
// no processor may change.
// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"
#include "base/hash.h"
#include "check.h"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <numbers>

using namespace dtrain;

namespace {

double unit(uint64_t i) { return double(mix(i) >> 11) * 0x1p-53; }

void near_those_of_the_library(void **) {
    for (uint64_t i = 0; i < 200'000; i++) {
        const double v = unit(i), x = i % 3 == 0 ? 1 - v : i % 3 == 1 ? 1 - v * 1e-9 : v * 1e9 + 1;
        assert_true(std::fabs(cosine_of_turn(v) - std::cos(2 * std::numbers::pi * v)) < 2e-15);
        assert_true(std::fabs(logarithm(x) - std::log(x)) <= 1e-15 * std::fabs(std::log(x)));
        const double y = (v - 0.5) * 1000;
        assert_true(std::fabs(exponential(y) - std::exp(y)) <= 1e-15 * std::exp(y));
        assert_true(std::fabs(exponential(v) - std::exp(v)) <= 1e-15 * std::exp(v));
        const uint64_t n = i % 4000;
        const double power = std::pow(0.999, double(n));
        assert_true(std::fabs(whole_power(0.999, n) - power) <= 1e-12 * power);
    }
}

void exact_where_it_can_be(void **) {
    assert_true(logarithm(1) == 0);
    assert_true(exponential(0) == 1 && exponential(-1e9) == 0 && std::isinf(exponential(1e9)));
    assert_true(cosine_of_turn(0) == 1 && cosine_of_turn(0.5) == -1);
    assert_true(cosine_of_turn(0.25) == 0 && cosine_of_turn(0.75) == 0);
    assert_true(whole_power(0, 0) == 1 && whole_power(0, 5) == 0 && whole_power(0.5, 9) == 0x1p-9);
    assert_true(whole_power(0.9, 1) == 0.9);
    assert_true(whole_power(0.9, UINT64_MAX) == 0);
}

void the_same_bits_everywhere(void **) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < 100'000; i++)
        for (double x : {logarithm(1 - unit(i)), cosine_of_turn(unit(i)),
                         whole_power(unit(i), i % 1000), exponential(unit(i) * 100 - 50)})
            hash = mix(hash ^ std::bit_cast<uint64_t>(x));
    if (hash != 0xb274392899e2e415) fail_msg("the hash of the bits is %#lx", hash);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(near_those_of_the_library),
        cmocka_unit_test(exact_where_it_can_be),
        cmocka_unit_test(the_same_bits_everywhere),
    };
    return cmocka_run_group_tests_name("elementary", tests, nullptr, nullptr);
}
