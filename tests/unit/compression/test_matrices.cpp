// PowerSGD of several matrices in one vector: each as if it had a compressor of its own, and two
// messages for all of them.
// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/group.h"

#include <cmath>
#include <random>

namespace {

using dtrain::compression::Matrix;
using dtrain::compression::Params;
using Vector = MethodGroup::Vector;

constexpr uint64_t seed = 5;
constexpr int ranks = 3, runs = 5;
// With those for which a low rank does not pay: biases, and one that is nearly so.
const std::vector<Matrix> shapes = {{40, 30}, {1, 40}, {1, 10'000}, {300, 700}, {4, 4}, {7, 90}};

Params params_of(const std::vector<Matrix> &matrices, uint64_t with_seed, uint32_t flags) {
    Params params;
    params.kind = DTRAIN_COMPRESS_POWERSGD;
    params.rank = 2;
    params.seed = with_seed;
    params.flags = flags;
    params.matrices = matrices;
    for (const Matrix &matrix : matrices) params.count += matrix.rows * matrix.columns;
    return params;
}

void equal_to_one_for_each(uint32_t flags, bool average) {
    const Params together = params_of(shapes, seed, flags);
    MethodGroup all(together, ranks);
    std::vector<MethodGroup> each;
    for (size_t i = 0; i < shapes.size(); i++)
        each.emplace_back(params_of({shapes[i]}, seed + (uint64_t(i) << 32), flags), ranks);
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (int run = 0; run < runs; run++) {
        std::vector<Vector> inputs(ranks, Vector(together.count)), results;
        for (Vector &input : inputs)
            for (float &x : input) x = normal(random);
        assert_int_equal(all.run(inputs, average, results), MethodGroup::Action::Kind::done);
        size_t first = 0;
        for (size_t i = 0; i < shapes.size(); i++) {
            const size_t count = shapes[i].rows * shapes[i].columns;
            std::vector<Vector> own, expected;
            for (const Vector &input : inputs)
                own.emplace_back(input.begin() + long(first), input.begin() + long(first + count));
            each[i].run(own, average, expected);
            for (int rank = 0; rank < ranks; rank++)
                assert_memory_equal(&results[size_t(rank)][first], expected[size_t(rank)].data(),
                                    count * sizeof(float));
            first += count;
        }
        double kept = 0;
        for (MethodGroup &one : each) kept += one.method(0).kept_square();
        assert_true(std::fabs(all.method(0).kept_square() - kept) <= 1e-9 * kept);
    }
}

void as_if_each_had_its_own(void **) {
    equal_to_one_for_each(0, true);
    equal_to_one_for_each(DTRAIN_COMPRESS_NO_FEEDBACK, false);
}

void two_messages(void **) {
    auto method = make_method(params_of(shapes, seed, 0), {.rank = 0, .size = 2});
    Vector x(params_of(shapes, seed, 0).count, 1.0f), out(x.size());
    uint64_t calls = 0, elements = 0;
    method->begin(x.data(), out.data(), false);
    for (MethodGroup::Action action; action.kind != MethodGroup::Action::Kind::done;) {
        action = method->next();
        if (action.kind != MethodGroup::Action::Kind::call) continue;
        calls++;
        elements += action.call.count;
    }
    assert_int_equal(calls, 2);
    assert_int_equal(elements, 2 * (40 + 30) + 40 + 10'000 + 2 * (300 + 700) + 16 + 2 * (7 + 90));
    assert_int_equal(method->sent_bytes(), elements * sizeof(float));
}

// What is not finite stays in its matrix.
void a_nan_stays_in_its_matrix(void **) {
    MethodGroup group(params_of({{40, 30}, {20, 20}}, seed, 0), 2);
    std::vector<Vector> inputs(2, Vector(1600, 1.0f)), results;
    inputs[1][1300] = NAN;
    for (int run = 0; run < 2; run++) {
        group.run(inputs, false, results);
        for (size_t i = 0; i < 1200; i++) assert_true(std::isfinite(results[0][i]));
        assert_true(std::isfinite(results[0][1300]) == (run == 1));
        inputs[1][1300] = 1;
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(as_if_each_had_its_own),
        cmocka_unit_test(two_messages),
        cmocka_unit_test(a_nan_stays_in_its_matrix),
    };
    return cmocka_run_group_tests_name("compression_matrices", tests, nullptr, nullptr);
}
