// Every rule on random ranges, at once and aggregated, against plain double-precision formulas.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/dtype.h"
#include "ps/shard.h"

#include "check.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

// One element, updated by the formulas of docs/PARAMETER_SERVER.md.
struct Element {
    double w = 0, a = 0, b = 0;
    uint64_t steps = 0;

    void update(const TableParams &p, double g) {
        ++steps;
        switch (p.rule) {
        case DTRAIN_RULE_ADD: w += g; break;
        case DTRAIN_RULE_ASSIGN: w = g; break;
        case DTRAIN_RULE_SGD: w -= p.learning_rate * g; break;
        case DTRAIN_RULE_MOMENTUM:
            a = p.momentum * a + g;
            w -= p.learning_rate * a;
            break;
        case DTRAIN_RULE_ADAGRAD:
            a += g * g;
            w -= p.learning_rate * g / (std::sqrt(a) + p.epsilon);
            break;
        default: {
            a = p.beta1 * a + (1 - p.beta1) * g;
            b = p.beta2 * b + (1 - p.beta2) * g * g;
            double m = a / (1 - std::pow(p.beta1, double(steps)));
            double v = b / (1 - std::pow(p.beta2, double(steps)));
            w -= p.learning_rate * m / (std::sqrt(v) + p.epsilon);
        }
        }
    }
};

// Element i of a buffer of any dtype, as a double; and back.
double get(uint32_t dtype, const void *buffer, uint64_t i) {
    return visit_dtype(dtype, [&]<class T>() -> double {
        T value;
        std::memcpy(&value, static_cast<const char *>(buffer) + i * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>)
            return to_float(value);
        else
            return static_cast<double>(value);
    });
}

void put(uint32_t dtype, void *buffer, uint64_t i, double value) {
    visit_dtype(dtype, [&]<class T>() {
        T converted;
        if constexpr (std::is_same_v<T, Half>)
            converted = to_half(float(value));
        else if constexpr (std::is_same_v<T, Bfloat>)
            converted = to_bfloat(float(value));
        else
            converted = static_cast<T>(value);
        std::memcpy(static_cast<char *>(buffer) + i * sizeof(T), &converted, sizeof(T));
    });
}

double tolerance(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F64: return 1e-12;
    case DTRAIN_F32: return 2e-5;
    case DTRAIN_F16: return 4e-2;
    case DTRAIN_BF16: return 3e-1;
    default: return 0;
    }
}

TableParams make_params(uint32_t rule, uint32_t dtype, uint32_t consistency) {
    TableParams params;
    params.length = 1000;
    params.dtype = dtype;
    params.rule = rule;
    params.consistency = consistency;
    params.learning_rate = 0.03;
    params.momentum = 0.8;
    params.beta2 = 0.99;
    params.initial = 2;
    return params;
}

struct Push {
    Range range;
    std::vector<char> bytes;
};

Push random_push(std::mt19937_64 &random, const Range &shard, uint32_t dtype) {
    uint64_t offset = random() % shard.count;
    Push push = {{shard.first + offset, 1 + random() % (shard.count - offset)}, {}};
    push.bytes.resize(push.range.count * dtrain::device::dtype_size(dtype));
    for (uint64_t i = 0; i < push.range.count; ++i) {
        bool real = dtype <= DTRAIN_BF16;
        double value = real ? double(random() % 2001) / 1000 - 1 : double(random() % 3);
        put(dtype, push.bytes.data(), i, value);
    }
    return push;
}

void compare(const Shard &shard, const std::vector<Element> &model, uint32_t dtype) {
    for (uint64_t i = 0; i < model.size(); ++i) {
        double is = get(dtype, shard.at(shard.range().first + i), 0), due = model[i].w;
        if (std::fabs(is - due) > tolerance(dtype) * (1 + std::fabs(due)))
            fail_msg("element %u: %.9g, not %.9g", unsigned(i), is, due);
    }
}

void run_at_once(uint32_t rule, uint32_t dtype) {
    std::mt19937_64 random(rule * 100 + dtype);
    TableParams params = make_params(rule, dtype, DTRAIN_ASYNC);
    auto shard = Shard::create(params, {48, 777});
    std::vector<Element> model(777);
    for (Element &element : model) element.w = params.initial;
    for (int round = 0; round < 25; ++round) {
        Push push = random_push(random, shard->range(), dtype);
        assert_int_equal(shard->push(push.range, push.bytes.data(), true), Reason::none);
        for (uint64_t i = 0; i < push.range.count; ++i)
            model[push.range.first - 48 + i].update(params, get(dtype, push.bytes.data(), i));
    }
    compare(*shard, model, dtype);
    assert_int_equal(shard->updates(), 25);
}

void run_aggregated(uint32_t rule, uint32_t dtype, uint32_t aggregate) {
    std::mt19937_64 random(rule * 1000 + dtype);
    TableParams params = make_params(rule, dtype, DTRAIN_BSP);
    params.aggregate = aggregate;
    auto shard = Shard::create(params, {0, 500});
    std::vector<Element> model(500);
    for (Element &element : model) element.w = params.initial;
    constexpr uint32_t workers = 3;
    for (uint64_t clock = 0; clock < 10; ++clock) {
        std::vector<double> sums(500);
        std::vector<bool> pushed(500);
        for (uint32_t i = 0; i < workers; ++i) {
            Push push = random_push(random, shard->range(), dtype);
            assert_int_equal(shard->collect(clock, push.range, push.bytes.data()), Reason::none);
            for (uint64_t e = 0; e < push.range.count; ++e) {
                sums[push.range.first + e] += get(dtype, push.bytes.data(), e);
                pushed[push.range.first + e] = true;
            }
        }
        shard->apply(clock, workers);
        for (uint64_t e = 0; e < 500; ++e) {
            double g = aggregate == DTRAIN_AVG ? sums[e] / workers : sums[e];
            if (dtype > DTRAIN_BF16) g = std::trunc(g);
            if (pushed[e]) model[e].update(params, g); // others are not touched, nor their state
        }
    }
    compare(*shard, model, dtype);
    assert_int_equal(shard->updates(), 10);
}

void every_rule_follows_its_formula(void **) {
    for (uint32_t rule = DTRAIN_RULE_ADD; rule <= DTRAIN_RULE_ADAM; ++rule)
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; ++dtype) {
            TableParams params = make_params(rule, dtype, DTRAIN_BSP);
            bool optimizer = rule > DTRAIN_RULE_ASSIGN;
            assert_int_equal(first_bad_field(params) == field_count, !optimizer || is_float(dtype));
            if (optimizer && !is_float(dtype)) continue;
            run_at_once(rule, dtype);
            run_aggregated(rule, dtype, DTRAIN_SUM);
            run_aggregated(rule, dtype, DTRAIN_AVG);
        }
}

void a_set_overwrites_values_only(void **) {
    TableParams params = make_params(DTRAIN_RULE_ADAGRAD, DTRAIN_F32, DTRAIN_ASYNC);
    auto shard = Shard::create(params, {0, 4});
    float g[4] = {1, 1, 1, 1}, w[2] = {7, 8};
    shard->push({0, 4}, g, true);
    shard->set({1, 2}, w);
    Element element = {.w = 7, .a = 1};
    shard->push({0, 4}, g, true);
    element.update(params, 1);
    assert_true(std::fabs(get(DTRAIN_F32, shard->at(1), 0) - element.w) < 1e-6);
    assert_int_equal(shard->updates(), 2);
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
        if (bits >= 0x7bff) continue; // between neighbours: halfway goes to the even one
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
        cmocka_unit_test(every_rule_follows_its_formula),
        cmocka_unit_test(a_set_overwrites_values_only),
        cmocka_unit_test(steps_are_counted_per_element),
        cmocka_unit_test(small_floats_convert_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
