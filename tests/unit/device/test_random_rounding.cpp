// f32 to f16 and bf16, rounded at random: the kernels of every instruction set, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/kernel_table.h"
#include "device/kernels.h"
#include "dtrain.h"

namespace {

using namespace dtrain::device;

constexpr uint32_t halves[] = {DTRAIN_F16, DTRAIN_BF16};

uint32_t random_word(uint32_t seed, uint32_t number) {
    uint32_t h = seed ^ number * 0x9e3779b9u;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

// The distance to the next larger magnitude of the dtype.
double step_at(uint32_t dtype, double magnitude) {
    const int bits = dtype == DTRAIN_F16 ? 10 : 7, least = dtype == DTRAIN_F16 ? -14 : -126;
    const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
    return std::ldexp(1, exponent - bits);
}

// By the definition, in double: bits of the word that are below the fraction's make it go up.
float expected(uint32_t dtype, float x, uint32_t word) {
    const double magnitude = std::fabs(double(x));
    const double largest = dtype == DTRAIN_F16 ? 65504 : 0x1.fep127;
    if (!(magnitude < largest)) return std::numeric_limits<float>::quiet_NaN();
    const double step = step_at(dtype, magnitude), below = std::floor(magnitude / step);
    const double fraction = magnitude / step - below;
    bool up = false;
    if (dtype == DTRAIN_F16 && magnitude < 0x1p-14)
        up = fraction > double(word >> 8) * 0x1p-24;
    else if (dtype == DTRAIN_F16)
        up = fraction * 0x1p13 + double(word >> 19) >= 0x1p13;
    else
        up = fraction * 0x1p16 + double(word >> 16) >= 0x1p16;
    return std::copysign(float((below + up) * step), x);
}

std::vector<float> numbers() {
    std::mt19937_64 random(1);
    std::vector<float> x = {0,
                            -0.0f,
                            1,
                            -1,
                            65503.9f,
                            65504,
                            -65504,
                            65519,
                            FLT_MIN,
                            FLT_TRUE_MIN,
                            -FLT_TRUE_MIN,
                            0x1p-14f,
                            0x1.fffffep-15f,
                            0x1p-24f,
                            0x1p-26f,
                            1.5f,
                            4.0f - 0.001f,
                            0x1.fep127f,
                            0x1.fcfffep127f};
    for (int i = 0; i < 4000; i++) {
        const auto bits = uint32_t(random());
        if (std::isfinite(std::bit_cast<float>(bits))) x.push_back(std::bit_cast<float>(bits));
        x.push_back(std::ldexp(float(int32_t(random())), -31 + int(random() % 40) - 24));
    }
    return x;
}

void every_kernel_equals_the_reference(void **) {
    const std::vector<float> x = numbers();
    for (uint32_t dtype : halves)
        for (uint32_t rank = 0; supported_kernels(rank) != nullptr; rank++)
            for (uint64_t count : {uint64_t{1}, uint64_t{7}, uint64_t{33}, uint64_t{x.size()}})
                for (uint32_t first : {0u, 5u, 0xfffffff0u}) {
                    std::vector<uint16_t> to(count + 1, 0x5555);
                    const DtypeKernels &kernels = *supported_kernels(rank)->dtypes[dtype];
                    kernels.narrow_randomly(to.data(), x.data(), count, 0xdeadbeef, first);
                    assert_int_equal(to[count], 0x5555);
                    std::vector<float> back(count);
                    kernels.widen(back.data(), to.data(), count);
                    std::vector<uint16_t> nearest(count);
                    kernels.narrow(nearest.data(), x.data(), count);
                    for (uint64_t i = 0; i < count; i++) {
                        const float due =
                            expected(dtype, x[i], random_word(0xdeadbeef, first + uint32_t(i)));
                        if (std::isnan(due)) {
                            assert_int_equal(to[i], nearest[i]);
                            continue;
                        }
                        if (std::bit_cast<uint32_t>(back[i]) != std::bit_cast<uint32_t>(due))
                            fail_msg("dtype %u, %s, %a: %a, not %a", dtype,
                                     supported_kernels(rank)->target, x[i], back[i], due);
                    }
                }
}

void what_is_no_number_stays(void **) {
    const float x[] = {INFINITY, -INFINITY, NAN, 0x1.ffp127f, -FLT_MAX};
    for (uint32_t dtype : halves) {
        uint16_t random[5], nearest[5];
        for (uint32_t seed = 0; seed < 100; seed++) {
            narrow_randomly(random, x, 5, dtype, seed, 0);
            narrow(nearest, x, 5, dtype);
            assert_memory_equal(random, nearest, sizeof random);
        }
    }
}

// As often up as it should be, whichever of seed and number changes; what fits stays.
void the_mean_is_exact(void **) {
    constexpr uint64_t count = 1 << 16;
    for (uint32_t dtype : halves)
        for (float value : {3.999f, -3.999f, 1 + 0x1p-20f, 0.3f, 1000.01f, 3e-6f, -1e-7f, 2.0f}) {
            const std::vector<float> x(count, value);
            std::vector<uint16_t> narrow(count);
            std::vector<float> back(count);
            narrow_randomly(narrow.data(), x.data(), count, dtype, 7, 3);
            widen(back.data(), narrow.data(), count, dtype);
            double by_number = 0, by_seed = 0;
            for (float y : back) by_number += y;
            for (uint32_t seed = 0; seed < count; seed++) {
                narrow_randomly(narrow.data(), &value, 1, dtype, seed * 0x61c88647u, 9);
                widen(back.data(), narrow.data(), 1, dtype);
                by_seed += back[0];
            }
            // Five deviations of the mean of 65536 draws, each of at most half a step.
            const double bound = 5 * 0.5 / 256 * step_at(dtype, std::fabs(value));
            assert_true(std::fabs(by_number / count - double(value)) < bound);
            assert_true(std::fabs(by_seed / count - double(value)) < bound);
        }
}

// An element becomes the same wherever a piece of the array begins.
void pieces_are_rounded_as_the_whole(void **) {
    const std::vector<float> x = numbers();
    for (uint32_t dtype : halves) {
        std::vector<uint16_t> whole(x.size()), pieces(x.size());
        narrow_randomly(whole.data(), x.data(), x.size(), dtype, 11, 100);
        for (uint64_t at = 0, n = 1; at < x.size();
             at += n, n = std::min(x.size() - at, n % 97 + 1))
            narrow_randomly(&pieces[at], &x[at], n, dtype, 11, 100 + at);
        assert_true(whole == pieces);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_equals_the_reference),
        cmocka_unit_test(what_is_no_number_stays),
        cmocka_unit_test(the_mean_is_exact),
        cmocka_unit_test(pieces_are_rounded_as_the_whole),
    };
    return cmocka_run_group_tests_name("random rounding", tests, nullptr, nullptr);
}
