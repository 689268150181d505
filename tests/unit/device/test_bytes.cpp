// Between f32 and int8: the kernels of every instruction set this processor has, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "device/kernel_table.h"
#include "unit/device/reference.h"

namespace {

using namespace dtrain::device;

constexpr uint64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 128, 1000, 4099};
constexpr int8_t guard = 0x55;

template <class F> void for_each(F &&f) {
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        for (uint64_t count : counts) f(*kernels, count);
}

std::vector<float> random_floats(uint64_t count, uint64_t seed, double size) {
    std::mt19937_64 random(seed + count);
    std::normal_distribution<double> normal(0, size);
    std::vector<float> x(count);
    for (float &value : x) value = float(normal(random));
    return x;
}

// f(where) has written count bytes there, at an odd address: nothing else has changed.
template <class F> std::vector<int8_t> bytes_of(uint64_t count, F &&f) {
    std::vector<int8_t> memory(count + 66, guard);
    f(memory.data() + 1);
    assert_true(memory[0] == guard);
    assert_true(std::all_of(memory.begin() + int64_t(count) + 1, memory.end(),
                            [](int8_t byte) { return byte == guard; }));
    return {memory.begin() + 1, memory.begin() + 1 + int64_t(count)};
}

void the_largest_magnitude_is_found(void **) {
    const float specials[] = {-0.0f,     FLT_MIN / 8,     -FLT_TRUE_MIN, FLT_MAX,
                              -INFINITY, float(-FLT_MAX), NAN,           -1.5f};
    for_each([&](const Kernels &kernels, uint64_t count) {
        std::vector<float> x = random_floats(count, 1, 1e-3);
        for (float special : specials) {
            float expected = 0;
            for (uint64_t i = 0; i < count; i++) expected = std::max(expected, std::fabs(x[i]));
            assert_true(kernels.largest(x.data(), count) == std::bit_cast<uint32_t>(expected));
            if (count == 0) continue;
            std::vector<float> y = x;
            y[count * 5 / 7] = special;
            for (uint64_t i = 0; i < count; i++)
                if (!(std::fabs(y[i]) <= expected)) expected = std::fabs(y[i]);
            if (!(std::fabs(special) >= expected)) continue; // another one is
            assert_true(kernels.largest(y.data(), count) ==
                        (std::bit_cast<uint32_t>(special) & 0x7fffffff));
        }
    });
}

void quantize_equals_reference(void **) {
    for_each([](const Kernels &kernels, uint64_t count) {
        for (float factor : {1.0f, 0.5f, 31.7f, 1e30f, 0.0f}) {
            const std::vector<float> x = random_floats(count, 2, 10);
            const auto bytes =
                bytes_of(count, [&](int8_t *to) { kernels.quantize(to, x.data(), count, factor); });
            for (uint64_t i = 0; i < count; i++) {
                volatile float product = x[i] * factor;
                const float whole = std::nearbyint(std::clamp(float(product), -127.0f, 127.0f));
                assert_int_equal(bytes[i], int8_t(whole));
            }
        }
    });
}

uint32_t mixed(uint32_t h) {
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

void quantize_randomly_equals_reference(void **) {
    for_each([](const Kernels &kernels, uint64_t count) {
        for (uint32_t seed : {0u, 1u, 0xdeadbeefu}) {
            const float factor = 3.3f;
            const std::vector<float> x = random_floats(count, 3, 10);
            const auto bytes = bytes_of(count, [&](int8_t *to) {
                kernels.quantize_randomly(to, x.data(), count, factor, seed);
            });
            for (uint64_t i = 0; i < count; i++) {
                volatile float product = x[i] * factor;
                const float below = std::floor(product);
                const float uniform =
                    float(mixed(seed ^ uint32_t(i) * 0x9e3779b9u) >> 8) * 0x1p-24f;
                const float whole = product - below > uniform ? below + 1 : below;
                assert_int_equal(bytes[i], int8_t(std::clamp(whole, -127.0f, 127.0f)));
            }
        }
    });
}

// What is between two integers becomes the upper one as often as it should; integers stay.
void the_mean_of_random_rounding_is_exact(void **) {
    constexpr uint64_t count = 1 << 16;
    for (float value : {0.01f, 0.25f, -0.75f, 3.5f, -126.9f}) {
        const std::vector<float> x(count, value);
        std::vector<int8_t> bytes(count);
        supported_kernels(0)->quantize_randomly(bytes.data(), x.data(), count, 1, 7);
        double sum = 0;
        for (int8_t byte : bytes) sum += byte;
        // Five deviations of the mean of 65536 draws, each of which deviates by at most 0.5.
        assert_true(std::fabs(sum / count - double(value)) < 5 * 0.5 / 256);
    }
    for (float value : {0.0f, -0.0f, 1.0f, -1.0f, 127.0f, -127.0f}) {
        const std::vector<float> x(count, value);
        std::vector<int8_t> bytes(count);
        supported_kernels(0)->quantize_randomly(bytes.data(), x.data(), count, 1, 7);
        for (int8_t byte : bytes) assert_int_equal(byte, int(value));
    }
}

void dequantize_equals_reference(void **) {
    for_each([](const Kernels &kernels, uint64_t count) {
        std::vector<int8_t> bytes(count + 1);
        for (uint64_t i = 0; i < count; i++) bytes[i + 1] = int8_t(i * 37);
        for (float scale : {1.0f, 0.37f, FLT_MIN, FLT_MAX / 127, 0.0f, NAN}) {
            std::vector<float> out(count + 1, 7);
            kernels.dequantize(out.data(), bytes.data() + 1, count, scale);
            for (uint64_t i = 0; i < count; i++) {
                const float expected = reference::canonical(float(bytes[i + 1]) * scale);
                assert_true(std::bit_cast<uint32_t>(out[i]) == std::bit_cast<uint32_t>(expected));
            }
            assert_true(out[count] == 7);
        }
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_magnitude_is_found),
        cmocka_unit_test(quantize_equals_reference),
        cmocka_unit_test(quantize_randomly_equals_reference),
        cmocka_unit_test(the_mean_of_random_rounding_is_exact),
        cmocka_unit_test(dequantize_equals_reference),
    };
    return cmocka_run_group_tests_name("bytes", tests, nullptr, nullptr);
}
