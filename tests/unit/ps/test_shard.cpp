// What a shard does besides applying rules: sets, state from outside, rates, counts of steps.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard.h"
#include "ps/table/dtype.h"
#include "rule_model.h"

#include "check.h"

#include <cmath>
#include <random>

using namespace dtrain::ps;

namespace {

TableParams make_params(uint32_t rule, uint32_t dtype, uint32_t consistency) {
    TableParams params;
    params.length = 1000;
    params.dtype = dtype;
    params.rule = rule;
    params.consistency = consistency;
    params.learning_rate = 0.03;
    params.initial = 2;
    return params;
}

double value(const Shard &shard, uint64_t element) { return get(DTRAIN_F32, shard.at(element), 0); }

void a_set_overwrites_values_only(void **) {
    TableParams params = make_params(DTRAIN_RULE_ADAGRAD, DTRAIN_F32, DTRAIN_ASYNC);
    auto shard = Shard::create(params, Range{0, 4});
    float g[4] = {1, 1, 1, 1}, w[2] = {7, 8};
    shard->push({0, 4}, g, true);
    shard->set({1, 2}, w);
    shard->push({0, 4}, g, true);
    double due = 7 - params.learning_rate / (std::sqrt(2.0) + params.epsilon);
    assert_true(std::fabs(value(*shard, 1) - due) < 1e-6);
    assert_int_equal(shard->updates(), 2);
}

// A shard whose values and state are copied goes on as the one they came from.
void state_can_be_moved(uint32_t rule) {
    std::mt19937_64 random(rule);
    TableParams params = make_params(rule, DTRAIN_F32, DTRAIN_ASYNC);
    params.row_length = 50;
    Range range = {100, 300};
    auto first = Shard::create(params, range), second = Shard::create(params, range);
    std::vector<float> g(300);
    auto push = [&](Shard &shard, const Range &part) {
        assert_int_equal(shard.push(part, g.data(), true), Reason::none);
    };
    for (int round = 0; round < 5; ++round) {
        for (float &x : g) x = float(random() % 100) / 50 - 1;
        push(*first, {range.first + 50 * (random() % 5), 50});
    }
    second->set(range, first->at(range.first));
    StateArray array;
    for (uint32_t i = 0; find_state(params, i, array); ++i) {
        Shard::Pulled state = first->state(i, range);
        assert_non_null(state.numbers);
        assert_int_equal(second->set_state(i, range, state.numbers), Reason::none);
    }
    for (int round = 0; round < 3; ++round) {
        push(*first, range);
        push(*second, range);
    }
    assert_memory_equal(first->at(100), second->at(100), 300 * sizeof(float));
}

void every_state_can_be_moved(void **) {
    for (uint32_t rule : builtin_rules())
        if (!rule_info(rule).is(RuleInfo::backs_up)) state_can_be_moved(rule);
    auto shard =
        Shard::create(make_params(DTRAIN_RULE_ADAM, DTRAIN_F32, DTRAIN_ASYNC), Range{0, 8});
    uint64_t absurd = UINT64_MAX;
    assert_int_equal(shard->set_state(2, {0, 1}, &absurd), Reason::bad_steps);
    assert_int_equal(shard->set_state(3, {0, 1}, &absurd), Reason::unknown_state);
}

void a_rate_belongs_to_its_clock(void **) {
    auto shard = Shard::create(make_params(DTRAIN_RULE_SGD, DTRAIN_F32, DTRAIN_BSP), Range{0, 1});
    float g = 1;
    shard->set_rate(0.5, 1); // said early: clock 0 is not over
    for (uint64_t clock = 0; clock < 3; ++clock) {
        shard->collect(uint32_t(clock % 2), {0, 1}, &g);
        shard->apply({clock, {uint32_t(clock % 2)}});
    }
    assert_true(std::fabs(value(*shard, 0) - (2 - 0.03 - 0.5 - 0.5)) < 1e-6);
}

void a_row_that_came_in_part_is_completed_with_zeros(void **) {
    TableParams params = make_params(DTRAIN_RULE_SGD, DTRAIN_F32, DTRAIN_BSP);
    params.row_length = 4;
    params.clip_norm = 1;
    params.learning_rate = 1;
    auto shard = Shard::create(params, Range{0, 8});
    float g[4] = {3, 4, 5, 6};
    shard->collect(0, {0, 4}, g); // fills the sums with something
    shard->apply({0, {0}});
    std::vector<double> before;
    for (uint64_t i = 0; i < 8; ++i) before.push_back(value(*shard, i));
    shard->collect(0, {1, 2}, g); // in the same memory
    shard->apply({2, {0}});
    const double due[8] = {0, 0.6, 0.8, 0, 0, 0, 0, 0};
    for (uint64_t i = 0; i < 8; ++i)
        assert_true(std::fabs(before[i] - value(*shard, i) - due[i]) < 1e-6);
}

// A mean of what the workers pushed that the dtype can hold comes out, whatever their sum.
void means_have_room_for_sums(void **) {
    struct Case {
        uint32_t dtype;
        double pushed;
    };
    constexpr Case cases[] = {{DTRAIN_F16, 60000},  {DTRAIN_F16, -65504}, {DTRAIN_I8, 100},
                              {DTRAIN_I8, -128},    {DTRAIN_U8, 200},     {DTRAIN_I16, 30000},
                              {DTRAIN_U16, 65535},  {DTRAIN_I32, 2e9},    {DTRAIN_U32, 4e9},
                              {DTRAIN_BF16, 32768}, {DTRAIN_F32, 60000},  {DTRAIN_I64, 9e18},
                              {DTRAIN_I64, -9e18},  {DTRAIN_U64, 1.8e19}};
    for (const auto &[dtype, pushed] : cases)
        for (uint32_t workers : {1u, 2u, 5u, 9u})
            for (bool apart : {false, true})
                for (double weight : {1.0, 3.0}) {
                    if (weight != 1 && !is_float(dtype)) continue;
                    TableParams params = make_params(DTRAIN_RULE_ADD, dtype, DTRAIN_BSP);
                    params.aggregate = DTRAIN_AVG;
                    params.initial = 0;
                    params.reproducible = apart;
                    auto shard = Shard::create(params, Range{0, 9});
                    alignas(8) char g[9 * 8];
                    fill(computed_dtype(params), g, 9, pushed);
                    std::vector<uint32_t> sums;
                    for (uint32_t i = 0; i < workers; ++i) {
                        sums.assign(apart ? i + 1 : 1, 0);
                        for (uint32_t k = 0; k < sums.size(); ++k) sums[k] = k;
                        assert_int_equal(shard->collect(sums.back(), {0, 9}, g, weight),
                                         Reason::none);
                    }
                    ClockUpdate update = {0, sums};
                    update.divisor = workers * weight;
                    assert_int_equal(shard->apply(update), Reason::none);
                    for (uint64_t i = 0; i < 9; ++i)
                        if (get(dtype, shard->at(i), 0) != pushed)
                            fail_msg("dtype %u, %u workers, weight %g: %g, not %g", dtype, workers,
                                     weight, get(dtype, shard->at(i), 0), pushed);
                }
}

void workers_are_compensated_apart(void **) {
    TableParams params = make_params(DTRAIN_RULE_DC_SGD, DTRAIN_F32, DTRAIN_ASYNC);
    params.compensation = 1;
    params.learning_rate = 1;
    auto shard = Shard::create(params, Range{0, 1});
    float g = 1;
    shard->note_pull(0, {0, 1});
    shard->note_pull(5, {0, 1});
    shard->push({0, 1}, &g, true, 0); // 2 - 1
    assert_true(value(*shard, 0) == 1);
    shard->note_pull(0, {0, 1});
    shard->push({0, 1}, &g, true, 0); // 1 - 1
    assert_true(value(*shard, 0) == 0);
    shard->push({0, 1}, &g, true, 5); // 0 - (1 + (0 - 2))
    assert_true(value(*shard, 0) == 1);
    assert_int_equal(Shard::bytes_needed(params, 100, 6), 100 * 4 * 7);
}

void steps_are_counted_per_element(void **) {
    std::mt19937_64 random(3);
    constexpr uint64_t length = 300;
    StepCounts counts(length);
    std::vector<uint64_t> model(length);
    for (int i = 0; i < 500; ++i) {
        uint64_t first = random() % length, count = 1 + random() % (length - first);
        uint64_t next = first;
        counts.advance({first, count}, [&](const Range &part, uint64_t step) {
            assert_int_equal(part.first, next);
            next = part.end();
            for (uint64_t e = part.first; e < part.end(); ++e) assert_int_equal(++model[e], step);
        });
        assert_int_equal(next, first + count);
        uint64_t runs = 1;
        for (uint64_t e = 1; e < length; ++e) runs += model[e] != model[e - 1];
        assert_int_equal(counts.runs(), runs);
        if (i % 10 == 9) { // also when they are written from outside
            for (uint64_t e = first; e < first + count; ++e) model[e] = random() % 4;
            counts.write({first, count}, model.data() + first);
        }
        std::vector<uint64_t> read(count);
        counts.read({first, count}, read.data());
        assert_memory_equal(read.data(), model.data() + first, count * sizeof(uint64_t));
    }
}

void small_floats_convert_to_nearest_even(void **) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        Half half = {uint16_t(bits)};
        Bfloat bfloat = {uint16_t(bits)};
        float wide = to_float(half), brain = to_float(bfloat);
        if (!std::isnan(wide))
            assert_int_equal(to_half(wide).bits, bits);
        else
            assert_true(std::isnan(to_float(to_half(wide))));
        if (!std::isnan(brain)) assert_int_equal(to_bfloat(brain).bits, bits);
        if (bits >= 0x7bff) continue; // between neighbors: halfway goes to the even one
        float next = to_float(Half{uint16_t(bits + 1)});
        assert_int_equal(to_half((wide + next) / 2).bits, bits + (bits & 1));
        assert_int_equal(to_half(std::nextafterf((wide + next) / 2, next)).bits, bits + 1);
    }
    assert_int_equal(to_half(65519.996f).bits, 0x7bff);
    assert_int_equal(to_half(65520.0f).bits, 0x7c00);
    assert_int_equal(to_half(-1e30f).bits, 0xfc00);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_set_overwrites_values_only),
        cmocka_unit_test(every_state_can_be_moved),
        cmocka_unit_test(a_rate_belongs_to_its_clock),
        cmocka_unit_test(a_row_that_came_in_part_is_completed_with_zeros),
        cmocka_unit_test(means_have_room_for_sums),
        cmocka_unit_test(workers_are_compensated_apart),
        cmocka_unit_test(steps_are_counted_per_element),
        cmocka_unit_test(small_floats_convert_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
