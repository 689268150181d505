// Every method against a naive one for all ranks, over several runs with error feedback.
// SPDX-License-Identifier: Apache-2.0
#include "compression/elements.h"
#include "compression/method_info.h"
#include "dtrain_names.h"
#include "unit/compression/group.h"
#include "unit/compression/naive.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

namespace {

using dtrain::compression::Params;
using Vector = std::vector<float>;

#define DTRAIN_NUMBER(NAME, name) DTRAIN_COMPRESS_##NAME,
constexpr uint32_t all_kinds[] = {DTRAIN_EACH_COMPRESS(DTRAIN_NUMBER)};
constexpr uint64_t seed = 20240817;

Params params_of(uint32_t kind, uint64_t count, uint32_t flags = 0) {
    dtrain_compressor_params_t given;
    DTRAIN_INIT(&given);
    given.kind = kind;
    given.count = count;
    given.flags = flags;
    given.ratio = kind == DTRAIN_COMPRESS_TOPK ? 0.07 : 0;
    given.block = 64;
    given.seed = 5;
    Params params;
    assert_int_equal(read_params(given, params), DTRAIN_OK);
    return params;
}

std::vector<Vector> random_inputs(std::mt19937_64 &random, size_t ranks, size_t count) {
    std::normal_distribution<float> normal;
    std::vector<Vector> inputs(ranks, Vector(count));
    for (Vector &input : inputs)
        for (float &x : input) x = normal(random);
    return inputs;
}

void compare(const Vector &got, const Vector &expected, double tolerance, const Params &params) {
    for (size_t i = 0; i < got.size(); i++)
        if (!(std::fabs(double(got[i]) - double(expected[i])) <= tolerance))
            fail_msg("kind %u, %zu elements: element %zu is %g, not %g; seed %llu", params.kind,
                     got.size(), i, double(got[i]), double(expected[i]),
                     static_cast<unsigned long long>(seed));
}

// The results are those of the naive job, equal on all ranks, and what they lack of the true sums
// is what is kept.
void follow(const Params &params, size_t ranks, bool average) {
    std::mt19937_64 random(seed + params.kind * 100 + params.count);
    MethodGroup group(params, int(ranks));
    naive::Job job(params, ranks);
    const double tolerance = naive::models()[params.kind].tolerance;
    std::vector<double> missing(params.count);
    for (int run = 0; run < 5; run++) {
        std::vector<Vector> inputs = random_inputs(random, ranks, params.count), results;
        assert_int_equal(group.run(inputs, average, results), MethodGroup::Action::Kind::done);
        Vector expected = job.run(inputs, average);
        for (const Vector &result : results) {
            compare(result, expected, tolerance, params);
            assert_memory_equal(result.data(), results[0].data(), params.count * sizeof(float));
        }
        for (size_t i = 0; i < params.count; i++) {
            double sum = 0;
            for (const Vector &input : inputs) sum += double(input[i]);
            missing[i] += (average ? sum / double(ranks) : sum) - double(results[0][i]);
        }
    }
    if (!params.has_feedback()) return;
    double norm = 0, kept = 0;
    for (size_t i = 0; i < params.count; i++) {
        double left = job.missing(i, average);
        if (!(std::fabs(missing[i] - left) <= 3e-3))
            fail_msg("kind %u: element %zu lacks %g, %g is kept", params.kind, i, missing[i], left);
        norm += missing[i] * missing[i];
    }
    for (size_t r = 0; r < ranks; r++) kept += std::sqrt(group.method(r).kept_square());
    assert_true(std::sqrt(norm) <= kept * 1.001 + 1e-3);
    for (size_t r = 0; r < ranks; r++) group.method(r).reset();
    assert_true(group.method(0).kept_square() == 0);
}

void methods_have_names_and_models(void **) {
#define CHECK(NAME, its_name)                                                                      \
    assert_non_null(dtrain::compression::find_method(DTRAIN_COMPRESS_##NAME));                     \
    assert_string_equal(dtrain::compression::find_method(DTRAIN_COMPRESS_##NAME)->name,            \
                        #its_name);                                                                \
    if (naive::models().count(DTRAIN_COMPRESS_##NAME) == 0)                                        \
        fail_msg("the method " #its_name                                                           \
                 " has no model: write tests/unit/compression/models/" #its_name ".cpp");
    DTRAIN_EACH_COMPRESS(CHECK)
    assert_null(dtrain::compression::find_method(0));
    assert_null(dtrain::compression::find_method(UINT32_MAX));
}

void equal_to_the_naive_ones(void **) {
    for (uint32_t kind : all_kinds)
        for (size_t ranks : {1u, 2u, 3u, 5u})
            for (uint64_t count : {64u, 1000u, 4097u})
                follow(params_of(kind, count), ranks, ranks == 3);
    for (uint32_t kind : all_kinds)
        follow(params_of(kind, 500, DTRAIN_COMPRESS_NO_FEEDBACK), 3, false);
}

// More than one slice of each stage.
void large_vectors(void **) {
    for (uint32_t kind : all_kinds) follow(params_of(kind, 300'000), 2, true);
}

void small_vectors(void **) {
    for (uint32_t kind : all_kinds)
        for (uint64_t count : {1u, 2u, 9u})
            if (kind != DTRAIN_COMPRESS_POWERSGD) follow(params_of(kind, count), 4, false);
    // No matrix is smaller than this vector: it is sent as it is.
    MethodGroup group(params_of(DTRAIN_COMPRESS_POWERSGD, 9), 2);
    std::vector<Vector> inputs = {Vector(9, 1.25f), Vector(9, 2.5f)}, results;
    group.run(inputs, false, results);
    for (float x : results[1]) assert_true(x == 3.75f);
    assert_int_equal(group.method(0).sent_bytes(), 2 * 36 / 2);
}

void stochastic_rounding_is_right_on_average(void **) {
    Params params = params_of(DTRAIN_COMPRESS_INT8, 64,
                              DTRAIN_COMPRESS_STOCHASTIC | DTRAIN_COMPRESS_NO_FEEDBACK);
    MethodGroup group(params, 1), again(params, 1);
    Vector input(64), sum(64);
    for (size_t i = 0; i < 64; i++) input[i] = float(i) * 0.0137f - 0.3f;
    std::vector<Vector> results, same;
    constexpr int runs = 4000;
    for (int run = 0; run < runs; run++) {
        group.run({input}, false, results);
        for (size_t i = 0; i < 64; i++) sum[i] += results[0][i];
        if (run > 20) continue;
        again.run({input}, false, same);
        assert_memory_equal(same[0].data(), results[0].data(), 64 * sizeof(float)); // seeded
    }
    // A level is 0.0044 wide; the mean's deviation is below 0.0044 / sqrt(runs), twice rounded.
    for (size_t i = 0; i < 64; i++) assert_true(std::fabs(sum[i] / runs - input[i]) < 5e-4f);
}

// A number that is none is seen, and gone with the next run.
void no_numbers(void **) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (uint32_t kind : all_kinds) {
        MethodGroup group(params_of(kind, 256), 2);
        std::vector<Vector> inputs(2, Vector(256, 0.5f)), results;
        inputs[1][100] = nan;
        group.run(inputs, false, results);
        assert_true(std::isnan(results[0][100]));
        if (kind != DTRAIN_COMPRESS_POWERSGD) assert_false(std::isnan(results[0][10]));
        assert_memory_equal(results[0].data(), results[1].data(), 256 * sizeof(float));
        inputs[1][100] = 0.5f;
        for (int run = 0; run < 2; run++) {
            group.run(inputs, false, results);
            for (float x : results[0]) assert_false(std::isnan(x));
        }
    }
}

// After a run of zeros the factor starts anew.
void zeros(void **) {
    for (uint32_t kind : all_kinds) {
        MethodGroup group(params_of(kind, 4096), 2);
        std::vector<Vector> inputs(2, Vector(4096)), results;
        group.run(inputs, false, results);
        for (float x : results[0]) assert_true(x == 0);
        for (Vector &input : inputs) std::fill(input.begin(), input.end(), 1.0f);
        double sum = 0;
        for (int run = 0; run < 30; run++) {
            group.run(inputs, false, results);
            for (float x : results[0]) sum += double(x);
        }
        assert_true(std::fabs(sum / 4096 - 60) < 30); // one element in 14 at a time in topk
    }
}

void indices_are_checked(void **) {
    MethodGroup group(params_of(DTRAIN_COMPRESS_TOPK, 100), 2);
    std::vector<Vector> inputs(2, Vector(100, 1.0f)), results;
    static uint32_t index; // what the second entry's becomes
    group.damage = [](void *buffer, uint64_t) { static_cast<uint32_t *>(buffer)[2] = index; };
    for (uint32_t bad : {100u, UINT32_MAX, 0u}) { // beyond, far beyond, twice
        index = bad;
        assert_int_equal(group.run(inputs, false, results), MethodGroup::Action::Kind::corrupt);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(methods_have_names_and_models),
        cmocka_unit_test(equal_to_the_naive_ones),
        cmocka_unit_test(large_vectors),
        cmocka_unit_test(small_vectors),
        cmocka_unit_test(stochastic_rounding_is_right_on_average),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(zeros),
        cmocka_unit_test(indices_are_checked),
    };
    return cmocka_run_group_tests_name("methods", tests, nullptr, nullptr);
}
