// Rows of a sparse shard against a dense one that has a range for each key: every rule and type, at
// once and aggregated; initial values, limits.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/dtype.h"
#include "ps/table/rules.h"

#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 5, keys_in_use = 60; // odd rows: their state begins at odd places

TableParams make_params(uint32_t rule, uint32_t dtype, uint32_t consistency) {
    TableParams params;
    params.dim = dim;
    params.dtype = dtype;
    params.rule = rule;
    params.consistency = consistency;
    params.momentum = 0.8;
    params.beta2 = 0.99;
    params.initial = 2;
    params.learning_rate = 0.03;
    // What is rounded at random is not the same in both: test_narrow.cpp.
    if (is_half(dtype)) params.storage_dtype = DTRAIN_F32;
    return params;
}

uint64_t key_of(uint32_t number) { return number * 0x9e3779b97f4a7c15; } // 0 among them

struct Push {
    std::vector<uint32_t> numbers;
    std::vector<uint64_t> keys;
    std::vector<char> values;
};

// Small numbers: sums of them are exact in any order.
Push random_push(std::mt19937_64 &random, const TableParams &params) {
    const uint32_t dtype = computed_dtype(params);
    std::set<uint32_t> chosen;
    for (uint64_t i = 1 + random() % 40; i > 0; i--) chosen.insert(random() % keys_in_use);
    Push push;
    push.numbers.assign(chosen.begin(), chosen.end());
    std::shuffle(push.numbers.begin(), push.numbers.end(), random);
    for (uint32_t number : push.numbers) push.keys.push_back(key_of(number));
    const uint64_t size = dtrain::device::dtype_size(dtype), count = push.keys.size() * dim;
    push.values.resize(count * size);
    for (uint64_t i = 0; i < count; i++)
        fill(dtype, &push.values[i * size], 1, double(random() % 4));
    return push;
}

double number(uint32_t dtype, const void *values, uint32_t i) {
    return visit_dtype(dtype, [&]<class T>() -> double {
        const T value = static_cast<const T *>(values)[i];
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>)
            return to_float(value);
        else
            return double(value);
    });
}

// Optimizers round a little differently where the vector unit does not reach.
double tolerance(const TableParams &params) {
    if (params.rule <= DTRAIN_RULE_ASSIGN && !is_half(params.dtype)) return 0;
    switch (params.dtype) {
    case DTRAIN_F64: return 1e-14;
    case DTRAIN_F32: return 1e-6;
    case DTRAIN_F16: return 2e-3;
    default: return 2e-2;
    }
}

// The dense shard has row `number` at number * dim.
struct Pair {
    explicit Pair(const TableParams &params) : params_(params), sparse(params) {
        TableParams flat = params;
        flat.dim = 0;
        flat.length = keys_in_use * dim;
        flat.row_length = dim;
        dense = Shard::create(flat, Range{0, flat.length});
        row_bytes = dim * dense->size();
    }
    template <class F> void for_each_row(const Push &push, F &&f) {
        for (size_t i = 0; i < push.numbers.size(); i++)
            f(Range{push.numbers[i] * dim, dim}, &push.values[i * row_bytes]);
    }
    void compare() {
        std::vector<uint64_t> keys;
        for (uint32_t i = 0; i < keys_in_use; i++) keys.push_back(key_of(i));
        auto rows = sparse.gather(keys.data(), keys.size());
        assert_non_null(rows.get());
        for (uint32_t i = 0; i < keys_in_use; i++)
            for (uint32_t c = 0; c < dim; c++) {
                const uint64_t sent = dim * dtrain::device::dtype_size(params_.dtype);
                const double is = number(params_.dtype, rows->at(i * sent), c);
                const double due = number(storage_dtype_of(params_), dense->at(i * dim), c);
                if (std::fabs(is - due) > tolerance(params_) * (1 + std::fabs(due)))
                    fail_msg("rule %u, dtype %u: row %u is %.9g, not %.9g", params_.rule,
                             params_.dtype, i, is, due);
            }
    }

    const TableParams params_;
    SparseShard sparse;
    std::unique_ptr<Shard> dense;
    uint64_t row_bytes = 0;
};

void run_at_once(const TableParams &params) {
    std::mt19937_64 random(params.rule * 100 + params.dtype);
    Pair pair(params);
    for (int round = 0; round < 30; round++) {
        Push push = random_push(random, params);
        assert_int_equal(
            pair.sparse.push(push.keys.data(), push.keys.size(), push.values.data(), true),
            Reason::none);
        pair.for_each_row(push, [&](Range range, const char *g) {
            assert_int_equal(pair.dense->push(range, g, false), Reason::none);
        });
        pair.compare();
    }
    assert_int_equal(pair.sparse.updates(), 30);
}

void run_aggregated(TableParams params, uint32_t aggregate) {
    std::mt19937_64 random(params.rule * 1000 + params.dtype);
    params.aggregate = aggregate;
    Pair pair(params);
    for (uint64_t clock = 0; clock < 8; clock++) {
        for (uint64_t pushes = random() % 5; pushes > 0; pushes--) {
            Push push = random_push(random, params);
            const uint64_t to = clock + random() % open_clocks; // for the next one, too
            assert_int_equal(pair.sparse.collect(uint32_t(to % 2), push.keys.data(),
                                                 push.keys.size(), push.values.data()),
                             Reason::none);
            pair.for_each_row(push, [&](Range range, const char *g) {
                assert_int_equal(pair.dense->collect(uint32_t(to % 2), range, g), Reason::none);
            });
        }
        pair.compare(); // nothing shows before its clock
        pair.sparse.apply({clock, {uint32_t(clock % 2)}, 3});
        pair.dense->apply({clock, {uint32_t(clock % 2)}, 3});
        pair.compare();
    }
    assert_int_equal(pair.sparse.updates(), 8);
}

void every_rule_and_type(void **) {
    for (uint32_t rule : builtin_rules())
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
            if (rule_info(rule).is(RuleInfo::backs_up)) continue; // no BSP
            if (first_bad_field(make_params(rule, dtype, DTRAIN_BSP)) != field_count) {
                assert_false(is_float(dtype));
                continue;
            }
            run_at_once(make_params(rule, dtype, DTRAIN_ASYNC));
            run_aggregated(make_params(rule, dtype, DTRAIN_BSP), DTRAIN_SUM);
            if (rule_info(rule).combine == DTRAIN_SUM)
                run_aggregated(make_params(rule, dtype, DTRAIN_BSP), DTRAIN_AVG);
        }
}

void rows_begin_as_the_seed_says(void **) {
    TableParams params = make_params(DTRAIN_RULE_ADD, DTRAIN_F64, DTRAIN_ASYNC);
    params.distribution = DTRAIN_INITIAL_UNIFORM;
    params.initial = 5;
    params.spread = 2;
    params.seed = 7;
    const RowInitializer same = {Distribution::uniform, DTRAIN_F64, dim, 3, 7, 7};
    SparseShard shard(params);
    const uint64_t keys[] = {0, UINT64_MAX};
    const double ones[2 * dim] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int pushed = 0; pushed < 2; pushed++) {
        auto rows = shard.gather(keys, 2);
        assert_int_equal(shard.memory() > 0, pushed); // a pull makes no row
        for (uint32_t k = 0; k < 2; k++) {
            double due[dim], is[dim];
            same.fill(keys[k], due);
            std::memcpy(is, rows->at(k * sizeof is), sizeof is);
            for (uint32_t c = 0; c < dim; c++) assert_true(is[c] == due[c] + pushed);
        }
        assert_int_equal(shard.push(keys, 2, ones, true), Reason::none);
    }
}

void answers_last_while_they_are_held(void **) {
    SparseShard shard(make_params(DTRAIN_RULE_ASSIGN, DTRAIN_F32, DTRAIN_ASYNC));
    std::vector<std::shared_ptr<const Buffer>> held;
    for (uint64_t key = 0; key < 20; key++) {
        const std::vector<float> row(dim, float(key));
        assert_int_equal(shard.push(&key, 1, row.data(), true), Reason::none);
        held.push_back(shard.gather(&key, 1));
    }
    for (size_t key = 0; key < 20; key++)
        assert_true(*reinterpret_cast<const float *>(held[key]->at(0)) == float(key));
}

// What does not fit is refused as a whole, at once and in a clock.
void a_limit_refuses_all_of_a_request(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP}) {
        TableParams params = make_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, consistency);
        SparseShard shard(params);
        std::vector<uint64_t> keys(5000);
        for (uint64_t i = 0; i < keys.size(); i++) keys[i] = i;
        const std::vector<float> g(keys.size() * dim, 1);
        auto push = [&](size_t count) {
            return consistency == DTRAIN_BSP ? shard.collect(0, keys.data(), count, g.data())
                                             : shard.push(keys.data(), count, g.data(), true);
        };
        assert_int_equal(push(10), Reason::none);
        shard.set_limit(shard.memory() + 60'000);
        assert_int_equal(push(keys.size()), Reason::rows_limit);
        assert_true(shard.memory() <= shard.limit());
        if (consistency == DTRAIN_BSP) shard.apply({0, {0}});
        assert_int_equal(push(10), Reason::none); // there is room for what is there
        if (consistency == DTRAIN_BSP) shard.apply({0, {0}});
        auto rows = shard.gather(keys.data(), 11);
        const auto *w = reinterpret_cast<const float *>(rows->at(0));
        const float twice = 2 - 0.03f - 0.03f * 1.8f;
        assert_true(w[0] > twice - 1e-6f && w[0] < twice + 1e-6f);
        assert_true(w[10 * dim] == 2);
    }
}

// Rows that were refused must not be updated by a sum of nothing.
void a_refused_sum_leaves_no_trace(void **) {
    TableParams params = make_params(DTRAIN_RULE_ASSIGN, DTRAIN_F32, DTRAIN_BSP);
    SparseShard shard(params);
    std::vector<uint64_t> keys(3000);
    for (uint64_t i = 0; i < keys.size(); i++) keys[i] = i;
    const std::vector<float> g(keys.size() * dim, 7);
    // Room for the rows and some of their sums.
    shard.set_limit(150'000);
    assert_int_equal(shard.collect(0, keys.data(), keys.size(), g.data()), Reason::rows_limit);
    shard.apply({0, {0}});
    auto rows = shard.gather(keys.data(), keys.size());
    const auto *w = reinterpret_cast<const float *>(rows->at(0));
    for (size_t i = 0; i < keys.size() * dim; i++) assert_true(w[i] == 2);
}

// As of a dense shard (test_shard.cpp).
void means_have_room_for_sums(void **) {
    constexpr uint64_t keys[] = {7, 8, 9};
    for (auto [dtype, pushed] :
         {std::pair(DTRAIN_F16, 60000.0), std::pair(DTRAIN_I8, 100.0), std::pair(DTRAIN_I32, 2e9),
          std::pair(DTRAIN_U8, 200.0), std::pair(DTRAIN_I64, -9e18), std::pair(DTRAIN_U64, 1.8e19)})
        for (bool apart : {false, true}) {
            TableParams params = make_params(DTRAIN_RULE_ADD, dtype, DTRAIN_BSP);
            params.aggregate = DTRAIN_AVG;
            params.initial = 0;
            SparseShard shard(params);
            alignas(8) char g[3 * dim * 8], due[3 * dim * 8];
            const uint64_t bytes = 3 * dim * dtrain::device::dtype_size(dtype);
            fill(computed_dtype(params), g, 3 * dim, pushed);
            fill(uint32_t(dtype), due, 3 * dim, pushed);
            ClockUpdate update = {0, {0}};
            update.divisor = 4;
            for (uint32_t worker = 0; worker < 4; worker++) {
                if (apart && worker > 0) update.sums.push_back(worker);
                assert_int_equal(shard.collect(update.sums.back(), keys, 3, g), Reason::none);
            }
            assert_int_equal(shard.apply(update), Reason::none);
            const auto rows = shard.gather(keys, 3);
            assert_memory_equal(rows->at(0), due, bytes);
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_and_type),
        cmocka_unit_test(rows_begin_as_the_seed_says),
        cmocka_unit_test(answers_last_while_they_are_held),
        cmocka_unit_test(a_limit_refuses_all_of_a_request),
        cmocka_unit_test(a_refused_sum_leaves_no_trace),
        cmocka_unit_test(means_have_room_for_sums),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
