// The parts: selection, orthonormalization, parameters.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "compression/matrix.h"
#include "compression/params.h"
#include "compression/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace dtrain::compression;

void select(std::vector<float> x, uint64_t k, size_t piece) {
    Selection selection;
    selection.begin(k);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t at = 0; at < x.size(); at += piece)
            selection.count(x.data() + at, std::min(piece, x.size() - at));
        selection.rank();
    }
    std::vector<size_t> chosen, order(x.size());
    for (size_t at = 0; at < x.size(); at += piece)
        selection.take(x.data() + at, std::min(piece, x.size() - at),
                       [&](uint64_t i) { chosen.push_back(at + i); });
    for (size_t i = 0; i < x.size(); i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
    order.resize(k);
    std::sort(order.begin(), order.end());
    assert_true(chosen == order);
}

void selection_is_that_of_sorting(void **) {
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (size_t n : {1u, 2u, 100u, 5000u})
        for (size_t k : {size_t{1}, n / 3 + 1, n}) {
            std::vector<float> x(n), few(n);
            for (float &v : x) v = normal(random) * std::exp(normal(random) * 20);
            for (float &v : few) v = float(random() % 3) - 1; // many equal ones
            x[n / 2] = std::numeric_limits<float>::infinity();
            select(x, k, 64);
            select(few, k, 37);
            select(std::vector<float>(n, 0.0f), k, n);
        }
}

void columns_become_orthonormal(void **) {
    std::mt19937_64 random(8);
    constexpr uint64_t n = 321, r = 5;
    std::vector<float> columns(n * r);
    fill_random(columns.data(), columns.size(), 3);
    for (uint64_t i = 0; i < n; i++) columns[3 * n + i] = 2 * columns[i]; // depends on the first
    for (float &x : columns) x *= 1e12f;
    orthonormalize(columns, n);
    for (uint64_t a = 0; a < r; a++)
        for (uint64_t b = 0; b <= a; b++) {
            double product = 0;
            for (uint64_t i = 0; i < n; i++)
                product += double(columns[a * n + i]) * double(columns[b * n + i]);
            assert_true(std::fabs(product - (a == b && a != 3 ? 1 : 0)) < 1e-5);
        }
}

void parameters_are_checked(void **) {
    dtrain_compressor_params_t good, p;
    DTRAIN_INIT(&good);
    good.kind = DTRAIN_COMPRESS_TOPK;
    good.count = 1000;
    Params out;
    auto refused = [&](dtrain::Status status) { assert_int_equal(read_params(p, out), status); };
    auto with = [&](auto change) {
        p = good;
        change();
    };
    assert_int_equal(read_params(good, out), DTRAIN_OK);
    assert_int_equal(out.kept, 10);
    with([&] { p.ratio = 1e-9; });
    assert_int_equal(read_params(p, out), DTRAIN_OK);
    assert_int_equal(out.kept, 1);
    with([&] { p.count = 0; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.count = UINT64_MAX; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.count = uint64_t{1} << 32; }), refused(DTRAIN_ERR_LIMIT);
    with([&] { p.dtype = DTRAIN_F16; }), refused(DTRAIN_ERR_UNSUPPORTED);
    with([&] { p.kind = 0; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.kind = UINT32_MAX; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.flags = 4; }), refused(DTRAIN_ERR_UNSUPPORTED);
    with([&] { p.flags = DTRAIN_COMPRESS_STOCHASTIC; }), refused(DTRAIN_ERR_INVALID);
    for (double ratio : {-0.1, 1.1, double(NAN)})
        with([&] { p.ratio = ratio; }), refused(DTRAIN_ERR_INVALID);
    good.kind = DTRAIN_COMPRESS_INT8;
    for (uint32_t block : {1u, 12u, 65544u})
        with([&] { p.block = block; }), refused(DTRAIN_ERR_INVALID);
    good.kind = DTRAIN_COMPRESS_POWERSGD;
    with([&] { p.rank = 65; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.rows = 3; }), refused(DTRAIN_ERR_INVALID);
    with([&] { p.rows = 1001; }), refused(DTRAIN_ERR_INVALID);
    const uint64_t fit[] = {20, 30, 1, 400}, zero[] = {20, 50, 0, 5}, small[] = {20, 30},
                   large[] = {20, 30, 401, 1}, huge[] = {UINT64_MAX, UINT64_MAX};
    auto matrices = [&](const uint64_t *pairs, uint64_t pair_count) {
        with([&] {
            p.matrices = pairs;
            p.matrix_count = pair_count;
        });
    };
    matrices(fit, 2), assert_int_equal(read_params(p, out), DTRAIN_OK);
    assert_int_equal(out.matrices.size(), 2);
    p.rows = 10, refused(DTRAIN_ERR_INVALID);
    p.rows = 0, p.kind = DTRAIN_COMPRESS_INT8, refused(DTRAIN_ERR_INVALID);
    for (const uint64_t *bad : {zero, large}) matrices(bad, 2), refused(DTRAIN_ERR_INVALID);
    for (const uint64_t *bad : {small, huge}) matrices(bad, 1), refused(DTRAIN_ERR_INVALID);
    matrices(fit, 0), refused(DTRAIN_ERR_INVALID);
    matrices(fit, UINT64_MAX), refused(DTRAIN_ERR_INVALID);
    matrices(nullptr, 2), refused(DTRAIN_ERR_INVALID);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(selection_is_that_of_sorting),
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(parameters_are_checked),
    };
    return cmocka_run_group_tests_name("compression_parts", tests, nullptr, nullptr);
}
