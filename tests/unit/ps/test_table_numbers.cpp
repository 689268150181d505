// Rules and rates that go by the table's count of updates, and state that does not begin with 0:
// of rows and segments, in requests of any order, and with functions.
// SPDX-License-Identifier: Apache-2.0
#include "dtrain_function.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/table_segments.h"
#include "rule_model.h"

#include "check.h"

#include <array>
#include <cmath>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 5, keys_in_use = 12;
using Row = std::array<double, dim>;

TableParams rows_of(uint32_t rule, uint32_t consistency = DTRAIN_ASYNC) {
    TableParams params;
    params.dim = dim;
    params.dtype = DTRAIN_F64;
    params.rule = rule;
    params.consistency = consistency;
    params.initial = 2;
    params.learning_rate = 0.03;
    params.beta2 = 0.99;
    return params;
}

void schedule(TableParams &params) {
    params.schedule = DTRAIN_SCHEDULE_COSINE;
    params.warmup_steps = 3;
    params.decay_steps = 10;
    params.decay = 0.1;
}

// The same rows as ranges.
TableParams flat(TableParams params) {
    params.dim = 0;
    params.length = keys_in_use * dim;
    params.row_length = dim;
    return params;
}

Row gradient(uint64_t key, uint64_t t) {
    Row g;
    for (uint32_t i = 0; i < dim; ++i) g[i] = std::sin(double(7 * key + 3 * i + t * t)) + 0.1;
    return g;
}

struct Push {
    std::vector<uint64_t> keys;
    std::vector<double> values;
    void add(uint64_t key, uint64_t t) {
        const Row g = gradient(key, t);
        keys.push_back(key);
        values.insert(values.end(), g.begin(), g.end());
    }
};

// Of update t: the higher a key, the rarer.
Push push_of(uint64_t t) {
    Push push;
    for (uint64_t key = 0; key < keys_in_use; ++key)
        if (t % (key + 1) == 0) push.add(key, t);
    return push;
}

void apply(SparseShard &shard, const TableParams &params, uint64_t t) {
    const Push push = push_of(t);
    const size_t first = push.keys.size() / 2;
    const double *g = push.values.data();
    if (collects(params)) {
        assert_int_equal(shard.collect(0, push.keys.data(), push.keys.size(), g), Reason::none);
        assert_int_equal(shard.apply({t - 1, {0}, 1}), Reason::none);
        return;
    }
    // Of two requests, the first of which may be empty.
    assert_int_equal(shard.push(push.keys.data(), first, g, true), Reason::none);
    assert_int_equal(
        shard.push(push.keys.data() + first, push.keys.size() - first, g + first * dim, false),
        Reason::none);
}

Row row(SparseShard &shard, uint64_t key) {
    Row out;
    std::memcpy(out.data(), shard.gather(&key, 1)->at(0), sizeof out);
    return out;
}

void assert_near(double is, double due) {
    if (!(std::fabs(is - due) <= 1e-12 * (1 + std::fabs(due))))
        fail_msg("%.17g, not %.17g", is, due);
}

// As torch.optim.SparseAdam: rows that are pushed are updated, by the count of all steps.
void rare_rows_are_corrected_by_the_tables_count(void **) {
    for (uint32_t rule : builtin_rules())
        for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
            for (bool changes : {false, true}) {
                TableParams params = rows_of(rule, consistency);
                if (!may_count_by_table(params)) continue;
                params.steps = DTRAIN_STEPS_TABLE;
                params.weight_decay = 0.05;
                if (changes) schedule(params);
                assert_int_equal(first_bad_field(params), field_count);
                SparseShard shard(params);
                RuleModel model(flat(params), keys_in_use * dim);
                for (uint64_t t = 1; t <= 30; ++t) {
                    apply(shard, params, t);
                    model.begin(t);
                    for (uint64_t key : push_of(t).keys) {
                        const Row g = gradient(key, t);
                        model.update({key * dim, dim}, {g.begin(), g.end()});
                    }
                    assert_int_equal(shard.updates(), t);
                }
                for (uint64_t key = 0; key < keys_in_use; ++key)
                    for (uint32_t i = 0; i < dim; ++i)
                        assert_near(row(shard, key)[i], model[key * dim + i]);
            }
}

// What torch.optim.Adam does, written out.
void dense_adam_has_one_count(void **) {
    TableParams params = flat(rows_of(DTRAIN_RULE_ADAM));
    params.row_length = 0;
    params.steps = DTRAIN_STEPS_TABLE;
    const uint64_t n = params.length, half = n / 2;
    auto shard = Shard::create(params, Range{0, n}), parts = Shard::create(params, Range{0, n});
    std::vector<double> w(n, 2), m(n), v(n), g(n);
    for (uint64_t t = 1; t <= 20; ++t) {
        for (uint64_t i = 0; i < n; ++i) g[i] = std::cos(double(i * t));
        // The second half is pushed only every third time.
        const uint64_t count = t % 3 == 0 ? n : half;
        shard->push({0, count}, g.data(), true);
        parts->push({0, half}, g.data(), true);
        if (count == n) parts->push({half, half}, &g[half], false);
        for (uint64_t i = 0; i < count; ++i) {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
            const double size = 0.03 / (1 - std::pow(0.9, t));
            w[i] -= size * m[i] / (std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.99, t)) + 1e-8);
        }
    }
    for (uint64_t i = 0; i < n; ++i) {
        assert_near(get(DTRAIN_F64, shard->at(i), 0), w[i]);
        assert_near(get(DTRAIN_F64, parts->at(i), 0), w[i]);
    }
}

// The network may bring the second request of a push before the first one.
void a_request_before_the_first_is_of_update_1(void **) {
    TableParams params = rows_of(DTRAIN_RULE_ADAM);
    params.steps = DTRAIN_STEPS_TABLE;
    schedule(params);
    const Row g = gradient(1, 1);
    const uint64_t key = 1;
    SparseShard late(params), shard(params);
    late.push(&key, 1, g.data(), false);
    shard.push(&key, 1, g.data(), true);
    assert_true(row(late, key) == row(shard, key));
    params = flat(params);
    auto dense = Shard::create(params, Range{0, params.length});
    dense->push({dim, dim}, g.data(), false);
    assert_true(get(DTRAIN_F64, dense->at(dim), 0) == row(shard, key)[0]);
}

void no_counts_are_kept(void **) {
    TableParams params = rows_of(DTRAIN_RULE_ADAM);
    params.dtype = DTRAIN_F32;
    const uint64_t before = RowLayout(params).bytes;
    params.steps = DTRAIN_STEPS_TABLE;
    assert_int_equal(RowLayout(params).bytes, before - sizeof(uint32_t));
    assert_int_equal(state_arrays(params).size(), 2);
    assert_int_equal(state_arrays(flat(params)).size(), 2);
}

Segment segment(uint32_t rule, uint64_t first, uint64_t count) {
    Segment its;
    its.first = first;
    its.count = count;
    its.rule = rule;
    its.learning_rate = 0.2;
    its.beta2 = 0.99;
    its.accumulator = double(first) / 10; // of those that have one
    return its;
}

TableParams segmented(uint32_t consistency) {
    TableParams params = rows_of(DTRAIN_RULE_ADD, consistency);
    params.learning_rate = 0.5;
    params.steps = DTRAIN_STEPS_TABLE;
    schedule(params);
    params.segments = {segment(DTRAIN_RULE_ADAM, 0, 2), segment(DTRAIN_RULE_FTRL, 2, 1),
                       segment(DTRAIN_RULE_ADAGRAD_ROWS, 3, 2)};
    assert_int_equal(first_bad_field(params), field_count);
    return params;
}

// A table for each segment, with the same count and schedule.
void segments_have_the_tables_count_and_rate(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP}) {
        const TableParams params = segmented(consistency), ranges = flat(params);
        SparseShard rows(params);
        auto dense = Shard::create(ranges, Range{0, ranges.length});
        std::vector<RuleModel> models;
        for (const Segment &its : params.segments) {
            TableParams one = flat(segment_params(params, its));
            one.length = keys_in_use * its.count;
            one.row_length = its.count;
            one.steps = params.steps;
            schedule(one);
            models.emplace_back(one, one.length);
            models.back().set_rate(its.learning_rate * params.learning_rate);
        }
        for (uint64_t t = 1; t <= 20; ++t) {
            if (t == 15) {
                rows.set_rate(0.25);
                dense->set_rate(0.25);
                for (RuleModel &model : models) model.set_rate(0.2 * 0.25);
            }
            apply(rows, params, t);
            bool begins = true;
            for (uint64_t key : push_of(t).keys) {
                const Row g = gradient(key, t);
                if (collects(params))
                    dense->collect(0, {key * dim, dim}, g.data());
                else
                    dense->push({key * dim, dim}, g.data(), begins);
                begins = false;
                for (size_t s = 0; s < models.size(); ++s) {
                    const Segment &its = params.segments[s];
                    const double *from = g.data() + its.first;
                    models[s].begin(t);
                    models[s].update({key * its.count, its.count}, {from, from + its.count});
                }
            }
            if (collects(params)) dense->apply({t - 1, {0}, 1});
        }
        for (uint64_t key = 0; key < keys_in_use; ++key)
            for (size_t s = 0; s < models.size(); ++s)
                for (uint64_t i = 0; i < params.segments[s].count; ++i) {
                    const uint64_t at = params.segments[s].first + i;
                    const double due = models[s][key * params.segments[s].count + i];
                    assert_near(row(rows, key)[at], due);
                    assert_near(get(DTRAIN_F64, dense->at(key * dim + at), 0), due);
                }
    }
}

void a_segment_that_counts_for_itself_is_named(void **) {
    dtrain_table_params_t given;
    DTRAIN_INIT(&given);
    dtrain_segment_t segments[2];
    for (dtrain_segment_t &its : segments) DTRAIN_INIT(&its);
    segments[0].count = segments[1].first = 2;
    segments[1].count = 3;
    segments[0].rule = DTRAIN_RULE_ADAM;
    segments[1].rule = DTRAIN_RULE_MEAN;
    given.dim = dim;
    given.dtype = DTRAIN_F32;
    given.segments = segments;
    given.segment_count = 2;
    given.steps = DTRAIN_STEPS_TABLE;
    TableParams params;
    assert_int_equal(resolve(given, "t", params), DTRAIN_ERR_INVALID);
    assert_non_null(std::strstr(dtrain::error_text(),
                                "segment 1: the rule mean counts its own updates, and steps is"));
    segments[1].rule = DTRAIN_RULE_SGD;
    assert_int_equal(resolve(given, "t", params), DTRAIN_OK);
    params.segments[1].rule = DTRAIN_RULE_MEAN; // from the wire
    assert_string_equal(field_name(first_bad_field(params)), "steps");
}

void state_begins_with_the_accumulator(void **) {
    for (uint32_t rule : builtin_rules()) {
        if ((rule_info(rule).takes & DTRAIN_GIVEN_ACCUMULATOR) == 0) {
            assert_int_equal(rule_info(rule).accumulator, max_slots);
            continue;
        }
        TableParams params = rows_of(rule);
        params.accumulator = 0.25;
        SparseShard shard(params);
        auto dense = Shard::create(flat(params), Range{0, keys_in_use * dim});
        auto state = [&](uint64_t array, uint64_t its_key) {
            return get(DTRAIN_F64, shard.gather_state(array, &its_key, 1)->at(0), 0);
        };
        const uint64_t key = 3, other = 4;
        const Row one = {1, 1, 1, 1, 1};
        for (uint64_t i = 0; i < state_arrays(params).size(); ++i) {
            const double due = i == rule_info(rule).accumulator ? 0.25 : 0;
            assert_true(state(i, key) == due); // there is no row
            const Range last = {(keys_in_use - 1) * dim, dim};
            assert_true(get(DTRAIN_F64, dense->state(i, last).numbers, 0) == due);
            assert_int_equal(shard.set(&other, 1, one.data()), Reason::none);
            assert_true(state(i, other) == due); // there is one now
            shard.erase(&other, 1);
        }
    }
}

// TensorFlow's Ftrl: initial_accumulator_value, with z, its "linear", from 0.
void ftrl_begins_as_tensorflows(void **) {
    TableParams params = rows_of(DTRAIN_RULE_FTRL);
    params.learning_rate = 0.1;
    params.accumulator = 0.1;
    params.ftrl_beta = 0;
    params.l1 = 0.5;
    params.l2 = 0.02; // twice TensorFlow's
    SparseShard shard(params);
    const Row g = {3, -3, 0.01, 1, 1};
    const uint64_t key = 1;
    shard.push(&key, 1, g.data(), true);
    for (uint32_t i = 0; i < dim; ++i) {
        const double sum = 0.1 + g[i] * g[i];
        const double linear = g[i] - (std::sqrt(sum) - std::sqrt(0.1)) / 0.1 * 2;
        const double quadratic = std::sqrt(sum) / 0.1 + 2 * 0.01;
        assert_near(row(shard, key)[i], std::fabs(linear) > 0.5
                                            ? (std::copysign(0.5, linear) - linear) / quadratic
                                            : 0);
    }
}

void a_rate_that_is_set_is_scheduled(void **) {
    TableParams params = rows_of(DTRAIN_RULE_SGD, DTRAIN_BSP);
    schedule(params);
    SparseShard shard(params);
    auto dense = Shard::create(flat(params), Range{0, keys_in_use * dim});
    double w = 2, rate = params.learning_rate;
    const Row g = {1, 1, 1, 1, 1};
    const uint64_t key = 0;
    for (uint64_t clock = 0; clock < 12; ++clock) {
        if (clock % 4 == 2) { // of the clock after this one
            shard.set_rate(double(clock), clock + 1);
            dense->set_rate(double(clock), clock + 1);
        }
        shard.collect(0, &key, 1, g.data());
        dense->collect(0, {0, dim}, g.data());
        shard.apply({clock, {0}, 1});
        dense->apply({clock, {0}, 1});
        if (clock % 4 == 3) rate = double(clock - 1);
        w -= rate * scheduled(params, double(clock + 1));
        assert_near(row(shard, key)[0], w);
        assert_near(get(DTRAIN_F64, dense->at(0), 0), w);
    }
}

void functions_are_given_the_rate_of_the_update(void **) {
    static double seen;
    dtrain_function_t function = {};
    function.struct_size = sizeof function;
    function.name = "f";
    function.update = [](void *, const dtrain_function_batch_t *batch) -> dtrain_status_t {
        seen = batch->params->learning_rate;
        return DTRAIN_OK;
    };
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP}) {
        TableParams params = rows_of(DTRAIN_RULE_FUNCTION, consistency);
        params.function = std::string(1, 'f');
        schedule(params);
        assert_int_equal(first_bad_field(params), field_count);
        SparseShard shard(params, &function);
        auto dense = Shard::create(flat(params), Range{0, keys_in_use * dim}, &function);
        const Row g = {};
        for (uint64_t t = 1; t < 20; ++t) {
            apply(shard, params, t);
            assert_near(seen, params.learning_rate * scheduled(params, double(t)));
            seen = 0;
            if (collects(params)) {
                dense->collect(0, {0, dim}, g.data());
                dense->apply({t - 1, {0}, 1});
            } else {
                dense->push({0, dim}, g.data(), true);
            }
            assert_near(seen, params.learning_rate * scheduled(params, double(t)));
        }
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rare_rows_are_corrected_by_the_tables_count),
        cmocka_unit_test(dense_adam_has_one_count),
        cmocka_unit_test(a_request_before_the_first_is_of_update_1),
        cmocka_unit_test(no_counts_are_kept),
        cmocka_unit_test(segments_have_the_tables_count_and_rate),
        cmocka_unit_test(a_segment_that_counts_for_itself_is_named),
        cmocka_unit_test(state_begins_with_the_accumulator),
        cmocka_unit_test(ftrl_begins_as_tensorflows),
        cmocka_unit_test(a_rate_that_is_set_is_scheduled),
        cmocka_unit_test(functions_are_given_the_rate_of_the_update),
    };
    return cmocka_run_group_tests_name("table_numbers", tests, nullptr, nullptr);
}
