// The norm of several arrays, and clipping by it, against long double.
// SPDX-License-Identifier: Apache-2.0
#include "device/global_norm.h"

#include "check.h"
#include "dtrain.h"
#include "unit/device/reference.h"

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

using namespace dtrain::device;

namespace {

constexpr uint32_t floating[] = {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16};

// At an odd address.
struct Array {
    Array(uint32_t the_dtype, const std::vector<double> &numbers)
        : dtype(the_dtype), count(numbers.size()), memory(1 + count * size()) {
        for (uint64_t i = 0; i < count; i++) set(i, numbers[i]);
    }
    uint64_t size() const { return dtype == DTRAIN_F64 ? 8 : dtype == DTRAIN_F32 ? 4 : 2; }
    void *data() { return memory.data() + 1; }
    int mantissa() const { return dtype == DTRAIN_F16 ? 10 : 7; }
    template <class T> T as(uint64_t i) const {
        T value;
        std::memcpy(&value, memory.data() + 1 + i * sizeof value, sizeof value);
        return value;
    }
    double get(uint64_t i) const {
        if (dtype == DTRAIN_F64) return as<double>(i);
        if (dtype == DTRAIN_F32) return double(as<float>(i));
        return reference::from_half(as<uint16_t>(i), mantissa());
    }
    void set(uint64_t i, double x) {
        const auto f = float(x);
        const uint16_t half = reference::to_half(x, mantissa());
        const void *from = dtype == DTRAIN_F64   ? static_cast<const void *>(&x)
                           : dtype == DTRAIN_F32 ? static_cast<const void *>(&f)
                                                 : static_cast<const void *>(&half);
        std::memcpy(memory.data() + 1 + i * size(), from, size());
    }
    operator FloatArray() { return {data(), count, dtype}; }

    uint32_t dtype;
    uint64_t count;
    std::vector<uint8_t> memory;
};

// Has exponents for squares of all numbers.
long double norm_of(const std::vector<Array> &arrays) {
    static_assert(LDBL_MAX_EXP > 4 * DBL_MAX_EXP, "");
    long double sum = 0;
    for (const Array &array : arrays)
        for (uint64_t i = 0; i < array.count; i++) {
            const long double x = array.get(i);
            sum += x * x;
        }
    return sqrtl(sum);
}

GlobalNorm norm_by_library(std::vector<Array> &arrays) {
    std::vector<FloatArray> all;
    for (Array &array : arrays) all.push_back(array);
    return global_norm(all);
}

void assert_near(long double is, long double due, double error) {
    if (fabsl(is - due) > (long double)error * fabsl(due)) fail_msg("%.17Lg, not %.17Lg", is, due);
}

// Below the normal numbers of the type rounding is to its least.
double least_of(uint32_t dtype) {
    return dtype == DTRAIN_F64 ? 0x1p-1074 : dtype == DTRAIN_F16 ? 0x1p-24 : 0x1p-126;
}
double error_of(uint32_t dtype) {
    return dtype == DTRAIN_F64   ? 1e-14
           : dtype == DTRAIN_F32 ? 2e-7
                                 : ldexp(1, dtype == DTRAIN_F16 ? -11 : -8);
}

void check(std::vector<Array> arrays, double most) {
    const long double due = norm_of(arrays);
    const GlobalNorm norm = norm_by_library(arrays);
    assert_near(ldexpl(norm.fraction, norm.exponent), due, 1e-14);
    if (due <= most) return;
    const std::vector<Array> before = arrays;
    for (Array &array : arrays) clip(array, most, norm);
    for (size_t a = 0; a < arrays.size(); a++)
        for (uint64_t i = 0; i < arrays[a].count; i++) {
            const uint32_t dtype = arrays[a].dtype;
            const long double wanted = before[a].get(i) * ((long double)most / due);
            const long double is = arrays[a].get(i);
            if (fabsl(is - wanted) > error_of(dtype) * fabsl(wanted) + least_of(dtype))
                fail_msg("dtype %u: %.9Lg, not %.9Lg", dtype, is, wanted);
        }
}

std::vector<double> random_numbers(std::mt19937_64 &random, uint64_t count, double size) {
    std::normal_distribution<double> normal;
    std::vector<double> numbers(count);
    for (double &x : numbers) x = normal(random) * size;
    return numbers;
}

void norms_are_those_of_long_double(void **) {
    std::mt19937_64 random(1);
    for (uint64_t count : {0, 1, 7, 8, 9, 63, 1000, 4099})
        for (uint32_t dtype : floating)
            for (double most : {1e-3, 1.0, 50.0, 1e6})
                check({Array(dtype, random_numbers(random, count, 1))}, most);
    for (int round = 0; round < 50; round++) {
        std::vector<Array> arrays;
        for (uint64_t i = random() % 6; i > 0; i--)
            arrays.emplace_back(
                floating[random() % 4],
                random_numbers(random, random() % 300, std::ldexp(1, int(random() % 8))));
        check(arrays, std::ldexp(1, int(random() % 20) - 8));
    }
}

// Squares of f64 that are beyond it, or below.
void squares_neither_overflow_nor_vanish(void **) {
    std::mt19937_64 random(2);
    for (double size : {0x1p1000, 0x1p600, 0x1p512, 0x1p-480, 0x1p-540, 0x1p-700, 0x1p-1060})
        for (uint64_t count : {1, 9, 513, 2000}) {
            check({Array(DTRAIN_F64, random_numbers(random, count, size))}, 1);
            check({Array(DTRAIN_F64, random_numbers(random, count, size))}, size / 4);
            check({Array(DTRAIN_F64, random_numbers(random, count, size)),
                   Array(DTRAIN_F32, random_numbers(random, count, 1)),
                   Array(DTRAIN_F64, random_numbers(random, 3, 1))},
                  0.5);
        }
    check({Array(DTRAIN_F64, {0x1p-1074})}, 1);
    check({Array(DTRAIN_F64, {0x1p-1074, 0x1p-1074, 0x1p-1074, 0x1p-1074})}, 0x1p-1074);
    check({Array(DTRAIN_F64, {0x1p1000, 1})}, 0x1p-1000);
    check({Array(DTRAIN_F32, std::vector<double>(100, double(FLT_MAX)))}, 1);
    check({Array(DTRAIN_F32, std::vector<double>(100, 0x1p-149))}, 1);
    check({Array(DTRAIN_F16, std::vector<double>(5000, 65504))}, 1);
    // A factor that f32 has as a subnormal only.
    check({Array(DTRAIN_F32, {1e35, 3, -1e34})}, 1e-10);
    check({Array(DTRAIN_BF16, {1e35, 3, -1e34})}, 1e-10);
    check({Array(DTRAIN_F32, {1e38})}, 1e-300);
}

void a_norm_beyond_f64_is_infinite(void **) {
    std::vector<Array> arrays = {Array(DTRAIN_F64, {DBL_MAX, DBL_MAX, 0, -DBL_MAX})};
    const GlobalNorm norm = norm_by_library(arrays);
    assert_true(std::isfinite(norm.fraction) && std::isinf(norm.value()));
    check(arrays, 1e300);
    check(arrays, DBL_MAX);
}

void nothing_has_the_norm_0(void **) {
    assert_true(global_norm({}).value() == 0);
    std::vector<Array> arrays;
    for (uint32_t dtype : floating) {
        arrays.emplace_back(dtype, std::vector<double>());
        arrays.emplace_back(dtype, std::vector<double>(700, -0.0));
    }
    assert_true(norm_by_library(arrays).value() == 0);
}

void what_is_not_finite_shows(void **) {
    for (uint32_t dtype : floating)
        for (double bad : {double(INFINITY), double(-INFINITY), double(NAN)})
            for (double others : {1.0, 1e300, 1e-300})
                for (uint64_t at : {0, 600, 1499}) {
                    std::vector<Array> arrays = {Array(DTRAIN_F64, {others, others}),
                                                 Array(dtype, std::vector<double>(1500, 2))};
                    arrays[1].set(at, bad);
                    assert_false(std::isfinite(norm_by_library(arrays).fraction));
                }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_those_of_long_double),
        cmocka_unit_test(squares_neither_overflow_nor_vanish),
        cmocka_unit_test(a_norm_beyond_f64_is_infinite),
        cmocka_unit_test(nothing_has_the_norm_0),
        cmocka_unit_test(what_is_not_finite_shows),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
