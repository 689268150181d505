// Rows are a function of seed and key, and distributed as they say.
// SPDX-License-Identifier: Apache-2.0
#include "dtrain.h"
#include "ps/storage/row_initializer.h"
#include "ps/table/dtype.h"

#include "check.h"

#include <cmath>
#include <cstring>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 100;

std::vector<double> draw(RowInitializer initializer, uint64_t rows) {
    std::vector<double> all;
    std::vector<float> row(dim);
    for (uint64_t key = 0; key < rows; key++) {
        initializer.fill(key << 32, row.data());
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

struct Moments {
    double mean, deviation, least, most, neighbors; // neighbors: correlation of the next column
};

Moments moments_of(const std::vector<double> &all) {
    const double n = double(all.size());
    Moments m = {0, 0, all[0], all[0], 0};
    for (double x : all) {
        m.mean += x / n;
        m.least = std::fmin(m.least, x);
        m.most = std::fmax(m.most, x);
    }
    for (size_t i = 0; i < all.size(); i++) {
        m.deviation += (all[i] - m.mean) * (all[i] - m.mean) / n;
        if (i > 0) m.neighbors += (all[i] - m.mean) * (all[i - 1] - m.mean) / n;
    }
    m.neighbors /= m.deviation;
    m.deviation = std::sqrt(m.deviation);
    return m;
}

void distributions(void **) {
    RowInitializer initializer = {Distribution::uniform, DTRAIN_F32, dim, -1, 3, 7};
    Moments m = moments_of(draw(initializer, 4000));
    assert_true(m.least >= -1 && m.least < -0.99 && m.most <= 3 && m.most > 2.99);
    assert_true(std::abs(m.mean - 1) < 0.01 && std::abs(m.deviation - 4 / std::sqrt(12)) < 0.01);
    assert_true(std::abs(m.neighbors) < 0.01);

    initializer = {Distribution::normal, DTRAIN_F32, dim, 2, 0.5, 7};
    m = moments_of(draw(initializer, 4000));
    assert_true(std::abs(m.mean - 2) < 0.01 && std::abs(m.deviation - 0.5) < 0.01);
    assert_true(std::abs(m.neighbors) < 0.01);
    assert_true(m.most > 2 + 3.5 * 0.5 && m.most < 2 + 7 * 0.5 && m.least < 2 - 3.5 * 0.5);

    initializer = {Distribution::constant, DTRAIN_F32, dim, 2.5, 0, 7};
    m = moments_of(draw(initializer, 3));
    assert_true(m.least == 2.5 && m.most == 2.5);
}

void seed_and_key_decide(void **) {
    const RowInitializer initializer = {Distribution::normal, DTRAIN_F64, dim, 0, 1, 7};
    double row[dim], other[dim];
    initializer.fill(12345, row);
    initializer.fill(12345, other);
    assert_memory_equal(row, other, sizeof row);
    initializer.fill(12346, other);
    assert_true(row[0] != other[0] && row[dim - 1] != other[dim - 1]);
    RowInitializer reseeded = initializer;
    reseeded.seed = 8;
    reseeded.fill(12345, other);
    assert_true(row[0] != other[0] && row[dim - 1] != other[dim - 1]);
}

void other_types(void **) {
    double exact[dim];
    uint16_t half[dim], brain[dim];
    RowInitializer initializer = {Distribution::uniform, DTRAIN_F64, dim, 0, 1, 7};
    initializer.fill(5, exact);
    initializer.dtype = DTRAIN_F16;
    initializer.fill(5, half);
    initializer.dtype = DTRAIN_BF16;
    initializer.fill(5, brain);
    for (uint32_t c = 0; c < dim; c++) {
        assert_true(std::abs(to_float(Half{half[c]}) - exact[c]) <= 0x1p-12);
        assert_true(std::abs(to_float(Bfloat{brain[c]}) - exact[c]) <= 0x1p-9);
    }
    int64_t whole[dim];
    initializer = {Distribution::constant, DTRAIN_I64, dim, -7, 0, 0};
    initializer.fill(5, whole);
    for (int64_t value : whole) assert_int_equal(value, -7);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(distributions),
        cmocka_unit_test(seed_and_key_decide),
        cmocka_unit_test(other_types),
    };
    return cmocka_run_group_tests_name("row_initializer", tests, nullptr, nullptr);
}
