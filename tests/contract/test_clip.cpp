// Clipping several arrays by their norm together, against f64, and then pushing them.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cfloat>
#include <cmath>
#include <random>

namespace {

struct Arrays {
    std::vector<void *> values;
    std::vector<uint64_t> counts;
    std::vector<uint32_t> dtypes;
    template <class T> void add(std::vector<T> &array, uint32_t dtype) {
        values.push_back(array.data());
        counts.push_back(array.size());
        dtypes.push_back(dtype);
    }
    dtrain_status_t clip(double max_norm, double *norm_p = nullptr) const {
        return dtrain_clip_by_global_norm(values.data(), counts.data(), dtypes.data(),
                                          uint32_t(values.size()), max_norm, norm_p);
    }
};

bool says(const char *text) { return ranks::last_error().find(text) != std::string::npos; }
bool near(double is, double due, double error) {
    return std::fabs(is - due) <= error * std::fabs(due);
}

void what_is_above_is_scaled(void **) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (double max_norm : {0.01, 1.0, 30.0, 1e9})
        for (size_t count : {0, 1, 17, 5000}) {
            std::vector<float> a(count);
            std::vector<double> b(count + 1);
            std::vector<uint16_t> bf16(count, 0x3fc0), f16(3, 0xbe00); // 1.5 and -1.5
            for (float &x : a) x = float(normal(random));
            for (double &x : b) x = normal(random);
            double sum = 2.25 * double(count + 3);
            for (float x : a) sum += double(x) * double(x);
            for (double x : b) sum += x * x;
            const double due = std::sqrt(sum), factor = due > max_norm ? max_norm / due : 1;
            const auto a_before = a;
            const auto b_before = b;
            const auto bf16_before = bf16;
            Arrays arrays;
            arrays.add(a, DTRAIN_F32);
            arrays.add(bf16, DTRAIN_BF16);
            arrays.add(b, DTRAIN_F64);
            arrays.add(f16, DTRAIN_F16);
            double norm = -1;
            OK(arrays.clip(max_norm, &norm));
            assert_true(near(norm, due, 1e-12));
            for (size_t i = 0; i < a.size(); ++i)
                assert_true(near(double(a[i]), double(a_before[i]) * factor, 2e-7));
            for (size_t i = 0; i < b.size(); ++i)
                assert_true(near(b[i], b_before[i] * factor, 1e-12));
            for (size_t i = 0; i < count; ++i) {
                const uint32_t bits = uint32_t{bf16[i]} << 16;
                float x;
                std::memcpy(&x, &bits, sizeof x);
                assert_true(near(double(x), 1.5 * factor, 1.0 / 256));
            }
            if (due > max_norm) { // again, there is nothing left to do but for rounding
                OK(arrays.clip(max_norm * 1.01, &norm));
                assert_true(near(norm, max_norm, 0.005));
            } else {
                assert_true(a == a_before && b == b_before && bf16 == bf16_before);
                assert_int_equal(f16[0], 0xbe00);
            }
        }
}

// 3 and 4 have the norm 5, in whichever arrays they are.
void a_norm_that_is_the_limit_is_left(void **) {
    std::vector<float> a = {3};
    std::vector<double> b = {0, -4};
    Arrays arrays;
    arrays.add(a, DTRAIN_F32);
    arrays.add(b, DTRAIN_F64);
    double norm = 0;
    OK(arrays.clip(5, &norm));
    assert_true(norm == 5 && a[0] == 3 && b[1] == -4);
    OK(arrays.clip(2.5)); // without the norm
    assert_true(a[0] == 1.5f && b[1] == -2);
}

void nothing_is_no_error(void **) {
    double norm = 7;
    OK(dtrain_clip_by_global_norm(nullptr, nullptr, nullptr, 0, 1, &norm));
    assert_true(norm == 0);
    void *const none[] = {nullptr, nullptr};
    const uint64_t counts[] = {0, 0};
    const uint32_t dtypes[] = {DTRAIN_F16, DTRAIN_F64};
    OK(dtrain_clip_by_global_norm(none, counts, dtypes, 2, 1, &norm));
    assert_true(norm == 0);
    std::vector<float> zeros(1000);
    Arrays arrays;
    arrays.add(zeros, DTRAIN_F32);
    OK(arrays.clip(1e-300, &norm));
    assert_true(norm == 0 && zeros[999] == 0);
}

void large_and_small_numbers(void **) {
    std::vector<double> b(4, 1e300);
    std::vector<float> a(10, 1);
    Arrays arrays;
    arrays.add(b, DTRAIN_F64);
    arrays.add(a, DTRAIN_F32);
    double norm;
    OK(arrays.clip(1, &norm));
    assert_true(near(norm, 2e300, 1e-14) && near(b[0], 0.5, 1e-14) && a[0] == 0);
    b.assign(4, DBL_MAX);
    OK(arrays.clip(2, &norm));
    assert_true(std::isinf(norm) && near(b[3], 1, 1e-14)); // beyond f64, and clipped all the same
    b.assign(4, 5e-324);
    OK(arrays.clip(1, &norm));
    assert_true(norm == 1e-323 && b[0] == 5e-324);
}

void wrong_arguments_change_nothing(void **) {
    std::vector<float> a(100, 10);
    std::vector<double> b(100, 10);
    std::vector<int32_t> whole(100, 10);
    double norm = -1;
    {
        Arrays arrays;
        arrays.add(a, DTRAIN_F32);
        for (double bad : {0.0, -1.0, double(INFINITY), double(NAN)}) {
            FAILS(DTRAIN_ERR_INVALID, arrays.clip(bad, &norm));
            assert_true(says("max_norm"));
        }
        arrays.add(whole, DTRAIN_I32);
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("array 1") && says("i32"));
        arrays.dtypes[1] = 99;
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("array 1") && says("99"));
        arrays.dtypes[1] = DTRAIN_F32;
        arrays.values[1] = nullptr;
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("array 1 is NULL"));
        arrays.values[1] = whole.data();
        arrays.counts[1] = UINT64_MAX / 2;
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("array 1"));
        FAILS(DTRAIN_ERR_INVALID, dtrain_clip_by_global_norm(nullptr, arrays.counts.data(),
                                                             arrays.dtypes.data(), 1, 1, &norm));
        FAILS(DTRAIN_ERR_INVALID, dtrain_clip_by_global_norm(arrays.values.data(), nullptr,
                                                             arrays.dtypes.data(), 1, 1, &norm));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_clip_by_global_norm(arrays.values.data(), arrays.counts.data(), nullptr, 1, 1,
                                         &norm));
    }
    Arrays arrays;
    arrays.add(a, DTRAIN_F32);
    arrays.add(b, DTRAIN_F64);
    for (double bad : {double(NAN), double(INFINITY), double(-INFINITY)}) {
        b[42] = bad;
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("element 42 of array 1"));
        b[42] = 10;
        a[99] = float(bad);
        FAILS(DTRAIN_ERR_INVALID, arrays.clip(1, &norm));
        assert_true(says("element 99 of array 0"));
        a[99] = 10;
    }
    assert_true(norm == -1 && a == std::vector<float>(100, 10) &&
                b == std::vector<double>(100, 10));
}

// Each worker's gradient of two tables is clipped, and the mean of these is applied.
void the_gradients_of_two_tables(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.consistency = DTRAIN_BSP;
        params.aggregate = DTRAIN_AVG;
        params.length = 1;
        dtrain_table_t *dense, *rows;
        OK(dtrain_table_create(comm, "dense", &params, &dense));
        params.length = 0;
        params.dim = 1;
        OK(dtrain_table_create(comm, "rows", &params, &rows));
        std::vector<float> g = {rank == 0 ? 30.0f : 0.3f}, h = {rank == 0 ? 40.0f : 0.4f};
        Arrays arrays;
        arrays.add(g, DTRAIN_F32);
        arrays.add(h, DTRAIN_F32);
        OK(arrays.clip(5));
        const uint64_t key = 11;
        OK(dtrain_table_push(dense, 0, 1, g.data(), nullptr, nullptr));
        OK(dtrain_table_push_rows(rows, &key, 1, h.data(), nullptr, nullptr));
        OK(dtrain_table_clock(dense, nullptr, nullptr));
        OK(dtrain_table_clock(rows, nullptr, nullptr));
        float w, row;
        OK(dtrain_table_pull(dense, 0, 1, &w, nullptr, nullptr));
        OK(dtrain_table_pull_rows(rows, &key, 1, &row, nullptr, nullptr));
        REQUIRE(std::fabs(w - (3 + 0.3f) / 2) < 1e-6f && std::fabs(row - (4 + 0.4f) / 2) < 1e-6f);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(dense));
        OK(dtrain_table_destroy(rows));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_is_above_is_scaled),
        cmocka_unit_test(a_norm_that_is_the_limit_is_left),
        cmocka_unit_test(nothing_is_no_error),
        cmocka_unit_test(large_and_small_numbers),
        cmocka_unit_test(wrong_arguments_change_nothing),
        cmocka_unit_test(the_gradients_of_two_tables),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
