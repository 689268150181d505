// Every rule with every dtype on random ranges, at once and aggregated, plain, with everything that
// changes an optimizer and with what depends on the table's count of updates, against plain
// double-precision formulas.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/storage/shard.h"
#include "rule_model.h"

#include "dtrain_names.h"

#include "check.h"

#include <algorithm>
#include <random>
#include <string>

using namespace dtrain::ps;

namespace {

constexpr uint64_t rows_before = 2; // of the shard

// The model rounds as the table does; what is left are states in f32.
double tolerance(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F64: return 1e-12;
    case DTRAIN_F32: return 2e-5;
    case DTRAIN_F16:
    case DTRAIN_BF16: return 5e-4; // f32, too; what is pushed is not as round
    default: return 0;
    }
}

// What is pushed to a shard, and with make_params() kept.
uint32_t shard_dtype(uint32_t dtype) { return is_half(dtype) ? uint32_t{DTRAIN_F32} : dtype; }

struct Case {
    uint32_t rule, dtype, consistency;
    uint64_t row;
    bool changed;          // clipping, weight decay, proximal step
    bool numbered = false; // the table's steps, a schedule of the rate; and an accumulator

    std::string text() const {
        return rule_info(rule).name + std::string(" of dtype ") + std::to_string(dtype) +
               (changed ? ", changed" : "") + (numbered ? ", numbered" : "") + ", row " +
               std::to_string(row);
    }
};

void number(const Case &c, TableParams &params) {
    if (may_count_by_table(params)) params.steps = DTRAIN_STEPS_TABLE;
    if ((rule_info(c.rule).takes & DTRAIN_GIVEN_ACCUMULATOR) != 0) params.accumulator = 0.3;
    if (!has_rate(params)) return;
    params.schedule = DTRAIN_SCHEDULE_LINEAR + (c.rule + c.dtype + c.changed) % 5;
    params.warmup_steps = c.rule % 4;
    params.decay_steps = 5;
    if (params.schedule != DTRAIN_SCHEDULE_INVERSE_SQRT)
        params.decay = divides_by_rate(params) ? 1.1 : 0.6;
}

TableParams make_params(const Case &c) {
    TableParams params;
    params.length = 8 * c.row;
    params.row_length = c.row;
    params.dtype = c.dtype;
    params.rule = c.rule;
    params.consistency = c.consistency;
    params.learning_rate = 0.03;
    params.momentum = 0.8;
    params.beta2 = 0.99;
    params.rho = 0.95;
    params.epsilon = 1e-6;
    params.trust = 0.1;
    params.compensation = 0.5;
    params.initial = 2;
    if (is_half(c.dtype)) params.storage_dtype = DTRAIN_F32; // else: test_narrow.cpp
    if (c.numbered) number(c, params);
    if (!rule_info(c.rule).is(RuleInfo::optimizer)) return params;
    if (rule_info(c.rule).is(RuleInfo::own_proximal)) params.l1 = 0.3;
    if (!c.changed) return params;
    params.clip_value = 0.7;
    params.clip_norm = 0.4 * std::sqrt(double(c.row));
    params.weight_decay = 0.05;
    params.epsilon = 1e-3; // g + decay * w may be close to 0, which the roots would make large
    params.l1 = 0.2;
    params.l2 = 0.3;
    return params;
}

struct Push {
    Range range;
    std::vector<char> bytes;

    std::vector<double> numbers(uint32_t dtype) const {
        std::vector<double> out(range.count);
        for (uint64_t i = 0; i < range.count; ++i)
            out[i] = get(shard_dtype(dtype), bytes.data(), i);
        return out;
    }
};

Push random_push(std::mt19937_64 &random, const Range &shard, const TableParams &params) {
    uint64_t item = takes_norms(params) ? params.row_length : 1, items = shard.count / item;
    uint64_t offset = random() % items;
    Push push = {{shard.first + offset * item, (1 + random() % (items - offset)) * item}, {}};
    push.bytes.resize(push.range.count * dtrain::device::dtype_size(shard_dtype(params.dtype)));
    for (uint64_t i = 0; i < push.range.count; ++i) {
        bool real = params.dtype <= DTRAIN_BF16;
        double value = real ? double(random() % 2001) / 1000 - 1 : double(random() % 3);
        put(shard_dtype(params.dtype), push.bytes.data(), i, value);
    }
    return push;
}

void compare(const Case &c, const Shard &shard, const RuleModel &model) {
    for (uint64_t i = 0; i < shard.part().count(); ++i) {
        const uint32_t dtype = shard_dtype(c.dtype);
        double is = get(dtype, shard.at(shard.part().range(0).first + i), 0), due = model[i];
        if (!(std::fabs(is - due) <= tolerance(c.dtype) * (1 + std::fabs(due))))
            fail_msg("%s: element %u: %.9g, not %.9g", c.text().c_str(), unsigned(i), is, due);
    }
}

void run_at_once(const Case &c) {
    std::mt19937_64 random(c.rule * 100 + c.dtype);
    TableParams params = make_params(c);
    assert_int_equal(first_bad_field(params), field_count);
    auto shard = Shard::create(params, Range{rows_before * c.row, 4 * c.row});
    Range all = shard->part().range(0);
    RuleModel model(params, all.count);
    for (int round = 0; round < 25; ++round) {
        if (round % 4 == 3) { // matters to DC_SGD only
            assert_int_equal(shard->note_pull(0, all), Reason::none);
            model.pulled();
        }
        Push push = random_push(random, all, params);
        assert_int_equal(shard->push(push.range, push.bytes.data(), true), Reason::none);
        model.begin(uint64_t(round) + 1);
        model.update({push.range.first - all.first, push.range.count}, push.numbers(c.dtype));
    }
    compare(c, *shard, model);
    assert_int_equal(shard->updates(), 25);
}

// Combines as the clock does: by the rule's own operation, or sums.
void combine(const Case &c, bool first, double g, double &sum) {
    if (first)
        sum = g;
    else if (rule_info(c.rule).combine == DTRAIN_MIN)
        sum = std::min(sum, g);
    else if (rule_info(c.rule).combine == DTRAIN_MAX)
        sum = std::max(sum, g);
    else
        sum += g;
}

void run_aggregated(const Case &c, uint32_t aggregate) {
    std::mt19937_64 random(c.rule * 1000 + c.dtype);
    TableParams params = make_params(c);
    params.aggregate = aggregate;
    auto shard = Shard::create(params, Range{0, 4 * c.row});
    uint64_t count = shard->part().count(), item = takes_norms(params) ? c.row : 1;
    RuleModel model(params, count);
    constexpr uint32_t workers = 3;
    for (uint64_t clock = 0; clock < 10; ++clock) {
        std::vector<double> sums(count);
        std::vector<bool> pushed(count);
        for (uint32_t i = 0; i < workers; ++i) { // sums apart, or in the same one
            Push push = random_push(random, shard->part().range(0), params);
            assert_int_equal(shard->collect(clock % 2 == 0 ? i : 0, push.range, push.bytes.data()),
                             Reason::none);
            std::vector<double> g = push.numbers(c.dtype);
            for (uint64_t e = 0; e < push.range.count; ++e) {
                uint64_t at = push.range.first + e;
                combine(c, !pushed[at], g[e], sums[at]);
                pushed[at] = true;
            }
        }
        shard->apply({clock, {0, 1, 2}, workers});
        model.begin(clock + 1);
        for (uint64_t e = 0; e < count; e += item) {
            if (!pushed[e]) continue; // others are not touched, nor their state
            std::vector<double> g(sums.begin() + long(e), sums.begin() + long(e + item));
            for (double &x : g) x = aggregate == DTRAIN_AVG ? x / workers : x;
            if (c.dtype > DTRAIN_BF16)
                for (double &x : g) x = std::trunc(x);
            model.update({e, item}, g);
        }
    }
    compare(c, *shard, model);
    assert_int_equal(shard->updates(), 10);
}

void run_all(Case c) {
    bool optimizer = rule_info(c.rule).is(RuleInfo::optimizer);
    for (uint64_t row : {24, 1536}) // within a block, and of several blocks
        for (int kind : {0, 1, 2, 3}) {
            c.row = row;
            c.changed = kind % 2 != 0;
            c.numbered = kind / 2 != 0;
            if (kind != 0 && !optimizer) continue;
            run_at_once(c);
            if (rule_info(c.rule).is(RuleInfo::backs_up)) continue;
            Case bsp = c;
            bsp.consistency = DTRAIN_BSP;
            run_aggregated(bsp, DTRAIN_SUM);
            if (rule_info(c.rule).combine == DTRAIN_SUM) run_aggregated(bsp, DTRAIN_AVG);
        }
}

void every_rule_follows_its_formula(void **) {
    for (uint32_t rule : builtin_rules())
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; ++dtype) {
            bool floats = rule_info(rule).is(RuleInfo::floats);
            if (!floats || is_float(dtype)) run_all({rule, dtype, DTRAIN_ASYNC, 0, false});
        }
}

void rules_have_names_and_models(void **) {
    std::vector<uint32_t> seen;
#define CHECK(NAME, rule_name)                                                                     \
    assert_true(rule_known(DTRAIN_RULE_##NAME));                                                   \
    assert_string_equal(rule_info(DTRAIN_RULE_##NAME).name, #rule_name);                           \
    if (DTRAIN_RULE_##NAME != DTRAIN_RULE_FUNCTION) seen.push_back(DTRAIN_RULE_##NAME);
    DTRAIN_EACH_RULE(CHECK)
    std::sort(seen.begin(), seen.end());
    assert_true(
        std::equal(seen.begin(), seen.end(), builtin_rules().begin(), builtin_rules().end()));
    for (uint32_t rule : {uint32_t{0}, seen.back() + 2, UINT32_MAX}) assert_false(rule_known(rule));
    for (uint32_t rule : seen)
        if (!has_formula(rule))
            fail_msg("the rule %s has no model: write tests/unit/ps/models/%s.cpp",
                     rule_info(rule).name, rule_info(rule).name);
}

void not_a_number_is_not_hidden(void **) {
    for (uint32_t rule : builtin_rules())
        for (bool changed : {false, true}) {
            Case c = {rule, DTRAIN_F32, DTRAIN_ASYNC, 8, changed};
            auto shard = Shard::create(make_params(c), Range{0, 8});
            float g[8] = {0, 0, NAN, 0, 0, 0, 0, 0};
            assert_int_equal(shard->push({0, 8}, g, true), Reason::none);
            assert_true(std::isnan(get(DTRAIN_F32, shard->at(2), 0)));
        }
}

void fields_travel(void **) {
    TableParams params = make_params({DTRAIN_RULE_LAMB, DTRAIN_F32, DTRAIN_BSP, 24, true}), back;
    params.staleness = 7;
    assert_int_equal(from_fields(to_fields(params), back), field_count);
    assert_true(to_fields(back) == to_fields(params));
    for (uint32_t i = 0; i < field_count; ++i) assert_string_not_equal(field_name(i), "?");
    TableFields bad = to_fields(params);
    bad[2] = uint64_t{1} << 32;
    assert_int_equal(from_fields(bad, back), 2);
}

// The finite elements of a row are clipped as if the others were not there.
void clipping_holds_beside_what_is_not_finite(void **) {
    for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64})
        for (double spoilt : {double(NAN), double(INFINITY), -double(INFINITY)}) {
            TableParams params;
            params.dtype = dtype;
            params.length = params.row_length = 700; // of several blocks
            params.rule = DTRAIN_RULE_SGD;
            params.learning_rate = 1;
            params.clip_norm = 5;
            auto shard = Shard::create(params, Range{0, 700});
            std::vector<char> g(700 * 8);
            put(dtype, g.data(), 1, 30);
            put(dtype, g.data(), 650, -40);
            put(dtype, g.data(), 300, spoilt);
            assert_int_equal(shard->push({0, 700}, g.data(), true), Reason::none);
            assert_true(std::fabs(get(dtype, shard->at(1), 0) + 3) < 1e-6);
            assert_true(std::fabs(get(dtype, shard->at(650), 0) - 4) < 1e-6);
            assert_true(get(dtype, shard->at(0), 0) == 0);
            assert_false(std::isfinite(get(dtype, shard->at(300), 0)));
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_names_and_models),
        cmocka_unit_test(every_rule_follows_its_formula),
        cmocka_unit_test(not_a_number_is_not_hidden),
        cmocka_unit_test(clipping_holds_beside_what_is_not_finite),
        cmocka_unit_test(fields_travel),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
