// Numbers as texts: the shortest that read as the same number. std::to_chars() is the reference.
// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"
#include "check.h"

#include <bit>
#include <charconv>
#include <clocale>
#include <cmath>
#include <limits>
#include <random>

using namespace dtrain;

namespace {

std::string reference(double number) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

void expect_alike(double number) {
    const std::string text = decimal_text(number), expected = reference(number);
    if (text != expected) fail_msg("%a: %s instead of %s", number, text.c_str(), expected.c_str());
}

void numbers_that_people_write(void **) {
    for (int exponent = -30; exponent <= 30; exponent++)
        for (int digits = 1; digits < 500; digits++)
            expect_alike(double(digits) * std::pow(10, exponent));
    for (double number : {0.0, -0.0, 0.1, -0.25, 1e22, 1e23, 123456789012345678901.0, 1e-5, 0.0001})
        expect_alike(number);
    expect_alike(std::numeric_limits<double>::infinity());
    expect_alike(-std::numeric_limits<double>::infinity());
    expect_alike(std::numeric_limits<double>::max());
    expect_alike(std::numeric_limits<double>::denorm_min());
}

void any_number(void **) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 60'000; i++) {
        const auto number = std::bit_cast<double>(random());
        if (!std::isnan(number)) expect_alike(number);
        expect_alike(double(random()) / double(1 << 20));
        expect_alike(double(float(random())) * 0x1p-64);
    }
}

// The nearest text of so many digits need not be one that reads as a power of two, because the
// numbers below it are nearer than those above.
void powers_of_two(void **) {
    for (int exponent = -1074; exponent < 1024; exponent++) {
        expect_alike(std::ldexp(1, exponent));
        expect_alike(std::nextafter(std::ldexp(1, exponent), 0));
    }
}

void the_locale_makes_no_difference(void **) {
    const char *found = nullptr;
    for (const char *name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"})
        if (found == nullptr) found = setlocale(LC_ALL, name);
    expect_alike(0.1);
    expect_alike(1234567.5);
    expect_alike(1.5e-9);
    setlocale(LC_ALL, "C");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_people_write),
        cmocka_unit_test(any_number),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(the_locale_makes_no_difference),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
