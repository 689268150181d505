// Schedules of the learning rate, next to what they are elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/learning_rate.h"
#include "rule_model.h"

#include "check.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace dtrain::ps;

namespace {

TableParams params_of(uint32_t schedule, uint64_t warmup, uint64_t n, double d) {
    TableParams params;
    params.length = 1;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_SGD;
    params.learning_rate = 1;
    params.schedule = schedule;
    params.warmup_steps = warmup;
    params.decay_steps = n;
    params.decay = d;
    assert_int_equal(first_bad_field(params), field_count);
    return params;
}

void assert_rates(const TableParams &params, const std::vector<double> &due) {
    const LearningRate rate(params);
    for (uint64_t t = 1; t <= due.size(); ++t)
        if (std::fabs(rate.of(t) - due[t - 1]) > 1e-15)
            fail_msg("schedule %u: rate %llu is %.17g, not %.17g", params.schedule,
                     static_cast<unsigned long long>(t), rate.of(t), due[t - 1]);
}

// The first update has the whole rate, as the step 0 of torch's LinearLR, CosineAnnealingLR, StepLR
// and ExponentialLR, and of Keras' schedules.
void the_first_rate_is_whole(void **) {
    assert_rates(params_of(DTRAIN_SCHEDULE_CONSTANT, 0, 0, 0), {1, 1, 1});
    assert_rates(params_of(DTRAIN_SCHEDULE_LINEAR, 0, 4, 0.2), {1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2});
    assert_rates(params_of(DTRAIN_SCHEDULE_LINEAR, 0, 2, 3), {1, 2, 3, 3});
    assert_rates(params_of(DTRAIN_SCHEDULE_COSINE, 0, 4, 0),
                 {1, (2 + std::sqrt(2)) / 4, 0.5, (2 - std::sqrt(2)) / 4, 0, 0});
    assert_rates(params_of(DTRAIN_SCHEDULE_EXPONENTIAL, 0, 2, 0.25), {1, 0.5, 0.25, 0.125});
    assert_rates(params_of(DTRAIN_SCHEDULE_STAIRCASE, 0, 3, 0.5),
                 {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25});
    assert_rates(params_of(DTRAIN_SCHEDULE_INVERSE_SQRT, 0, 1, 0), {1, std::sqrt(0.5)});
}

void it_begins_after_the_warmup(void **) {
    assert_rates(params_of(DTRAIN_SCHEDULE_CONSTANT, 4, 0, 0), {0.25, 0.5, 0.75, 1, 1});
    assert_rates(params_of(DTRAIN_SCHEDULE_CONSTANT, 1, 0, 0), {1, 1});
    assert_rates(params_of(DTRAIN_SCHEDULE_LINEAR, 2, 2, 0), {0.5, 1, 0.5, 0, 0});
    const LearningRate rate(params_of(DTRAIN_SCHEDULE_INVERSE_SQRT, 40, 40, 0)); // Vaswani et al.
    for (double t = 1; t < 500; ++t) {
        const double due = std::min(1 / std::sqrt(t), t * std::pow(40, -1.5)) * std::sqrt(40);
        assert_true(std::fabs(rate.of(uint64_t(t)) - due) < 1e-15);
    }
}

void any_number_of_updates(void **) {
    for (uint32_t kind = DTRAIN_SCHEDULE_CONSTANT; kind <= DTRAIN_SCHEDULE_INVERSE_SQRT; ++kind)
        for (uint64_t warmup : {uint64_t{0}, uint64_t{7}, UINT64_MAX / 2})
            for (uint64_t n : {uint64_t{1}, uint64_t{1000}, UINT64_MAX})
                for (uint64_t t : {uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{123456},
                                   UINT64_MAX / 2 + 5, UINT64_MAX}) {
                    const bool decays = kind != DTRAIN_SCHEDULE_CONSTANT;
                    const bool has = decays && kind != DTRAIN_SCHEDULE_INVERSE_SQRT;
                    const TableParams params =
                        params_of(kind, warmup, decays ? n : 0, has ? 0.9 : 0);
                    LearningRate rate(params);
                    rate.set(3);
                    assert_true(rate.set_to() == 3);
                    const double due = 3 * scheduled(params, double(t)), is = rate.of(t);
                    if (t < UINT64_MAX / 2 && std::fabs(is - due) > 1e-11 * due)
                        fail_msg("schedule %u: %.17g, not %.17g", kind, is, due);
                    assert_true(is >= 0 && is <= 3);
                }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rate_is_whole),
        cmocka_unit_test(it_begins_after_the_warmup),
        cmocka_unit_test(any_number_of_updates),
    };
    return cmocka_run_group_tests_name("learning_rate", tests, nullptr, nullptr);
}
