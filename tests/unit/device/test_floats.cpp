// The kernels of floating dtypes only, of every instruction set this processor has, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <random>
#include <vector>

#include "device/kernel_table.h"
#include "unit/device/reference.h"

namespace {

using namespace dtrain::device;

constexpr uint32_t floating[] = {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16};
constexpr uint64_t counts[] = {0, 1, 3, 7, 8, 9, 16, 31, 64, 127, 1000, 4099};
constexpr uint8_t guard = 0xa5;

size_t size_of(uint32_t dtype) { return dtype == DTRAIN_F64 ? 8 : dtype == DTRAIN_F32 ? 4 : 2; }

// Elements at an odd address, as bits, and what they are as numbers.
struct Elements {
    Elements(uint32_t the_dtype, uint64_t the_count)
        : dtype(the_dtype), count(the_count), memory(1 + count * size_of(dtype) + 64, guard) {}
    uint8_t *data() { return memory.data() + 1; }
    template <class T> T as(uint64_t i) {
        T bits;
        std::memcpy(&bits, data() + i * sizeof bits, sizeof bits);
        return bits;
    }
    double get(uint64_t i) {
        if (dtype == DTRAIN_F64) return as<double>(i);
        if (dtype == DTRAIN_F32) return double(as<float>(i));
        return reference::from_half(as<uint16_t>(i), dtype == DTRAIN_F16 ? 10 : 7);
    }
    // Rounded to the dtype, NaNs canonical.
    void set(uint64_t i, double x) {
        const double d = reference::canonical(x);
        const float f = reference::canonical(float(x));
        const uint16_t half = reference::to_half(x, dtype == DTRAIN_F16 ? 10 : 7);
        const void *from = dtype == DTRAIN_F64   ? static_cast<const void *>(&d)
                           : dtype == DTRAIN_F32 ? static_cast<const void *>(&f)
                                                 : static_cast<const void *>(&half);
        std::memcpy(data() + i * size_of(dtype), from, size_of(dtype));
    }
    bool is_untouched_beyond() {
        for (size_t i = 1 + count * size_of(dtype); i < memory.size(); i++)
            if (memory[i] != guard) return false;
        return memory[0] == guard;
    }
    uint32_t dtype;
    uint64_t count;
    std::vector<uint8_t> memory;
};

Elements random_elements(uint32_t dtype, uint64_t count, uint64_t seed) {
    std::mt19937_64 random(seed + count);
    std::normal_distribution<double> normal;
    Elements elements(dtype, count);
    for (uint64_t i = 0; i < count; i++) elements.set(i, normal(random));
    if (count > 5) elements.set(5, NAN);
    if (count > 6) elements.set(6, INFINITY);
    return elements;
}

// In the precision of registers: f64, or f32 for the others.
double lane(uint32_t dtype, double x) { return dtype == DTRAIN_F64 ? x : double(float(x)); }

template <class F> void for_each(F f) {
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        for (uint32_t dtype : floating)
            for (uint64_t count : counts) f(*kernels->dtypes[dtype], dtype, count);
}

void multiply_equals_reference(void **) {
    for_each([](const DtypeKernels &kernels, uint32_t dtype, uint64_t count) {
        for (double factor : {1.0, -0.3, 1e-6}) {
            Elements x = random_elements(dtype, count, 1), out(dtype, count),
                     expected(dtype, count);
            for (uint64_t i = 0; i < count; i++)
                expected.set(i, lane(dtype, x.get(i) * lane(dtype, factor)));
            kernels.multiply(out.data(), x.data(), count, factor);
            assert_true(out.memory == expected.memory);
            kernels.multiply(x.data(), x.data(), count, factor); // in place
            assert_true(x.memory == expected.memory);
        }
    });
}

void blend_equals_reference(void **) {
    for_each([](const DtypeKernels &kernels, uint32_t dtype, uint64_t count) {
        const double x = 0.7, y = -1.3;
        Elements a = random_elements(dtype, count, 2), b = random_elements(dtype, count, 3);
        Elements out(dtype, count), expected(dtype, count);
        for (uint64_t i = 0; i < count; i++) {
            volatile double first = lane(dtype, a.get(i) * lane(dtype, x)); // volatile: not fused
            volatile double second = lane(dtype, b.get(i) * lane(dtype, y));
            expected.set(i, lane(dtype, first + second));
        }
        kernels.blend(out.data(), a.data(), x, b.data(), y, count);
        assert_true(out.memory == expected.memory);
        kernels.blend(b.data(), a.data(), x, b.data(), y, count);
        assert_true(b.memory == expected.memory);
    });
}

// The same on every instruction set.
void dots_equal_reference(void **) {
    for_each([](const DtypeKernels &kernels, uint32_t dtype, uint64_t count) {
        Elements a = random_elements(dtype, count, 4), b = random_elements(dtype, count, 5);
        if (count > 6) a.set(5, 2), a.set(6, 3), b.set(5, -1), b.set(6, 0.5);
        double partial[3][8] = {}, sums[3];
        for (uint64_t i = 0; i < count; i++) {
            const double x = a.get(i), y = b.get(i);
            const double products[] = {x * x, y * y, x * y};
            for (int k = 0; k < 3; k++) {
                volatile double product = products[k];
                partial[k][i % 8] += product;
            }
        }
        kernels.dots(a.data(), b.data(), count, sums);
        for (int k = 0; k < 3; k++) {
            const double *s = partial[k];
            assert_true(sums[k] ==
                        ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
        }
    });
}

void squares_equal_reference(void **) {
    for_each([](const DtypeKernels &kernels, uint32_t dtype, uint64_t count) {
        Elements a = random_elements(dtype, count, 6);
        if (count > 6) a.set(5, 2), a.set(6, 3);
        double s[16] = {};
        for (uint64_t i = 0; i < count; i++) {
            volatile double square = a.get(i) * a.get(i);
            s[i % 16] += square;
        }
        for (int half = 8; half > 0; half /= 2)
            for (int k = 0; k < half; k++) s[k] += s[k + half];
        assert_true(kernels.squares(a.data(), count) == s[0]);
    });
}

void halves_are_converted(void **) {
    constexpr uint64_t all = 65536;
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        for (uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16}) {
            const int mantissa = dtype == DTRAIN_F16 ? 10 : 7;
            std::vector<uint16_t> halves(all), back(all);
            std::vector<float> floats(all);
            for (uint64_t i = 0; i < all; i++) halves[i] = uint16_t(i);
            kernels->dtypes[dtype]->widen(floats.data(), halves.data(), all);
            kernels->dtypes[dtype]->narrow(back.data(), floats.data(), all);
            for (uint64_t i = 0; i < all; i++) {
                const double exact = reference::from_half(halves[i], mantissa);
                if (std::isnan(exact)) {
                    assert_true(std::isnan(floats[i]));
                    continue;
                }
                assert_true(double(floats[i]) == exact);
                assert_int_equal(back[i], halves[i]);
            }
        }
    for_each([](const DtypeKernels &table, uint32_t dtype, uint64_t count) {
        if (size_of(dtype) != 2) return;
        Elements wide = random_elements(DTRAIN_F32, count, 6), out(dtype, count),
                 expected(dtype, count);
        for (uint64_t i = 0; i < count; i++) expected.set(i, wide.get(i));
        std::vector<float> aligned(count);
        for (uint64_t i = 0; i < count; i++) aligned[i] = wide.as<float>(i);
        table.narrow(out.data(), aligned.data(), count);
        assert_true(out.memory == expected.memory && out.is_untouched_beyond());
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(multiply_equals_reference), cmocka_unit_test(blend_equals_reference),
        cmocka_unit_test(dots_equal_reference),      cmocka_unit_test(squares_equal_reference),
        cmocka_unit_test(halves_are_converted),
    };
    return cmocka_run_group_tests_name("floats", tests, nullptr, nullptr);
}
