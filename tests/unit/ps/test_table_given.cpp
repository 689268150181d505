// What callers give for a table: taken as it is, or refused by name.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/protocol.h"
#include "ps/table/rules.h"

#include "check.h"

#include <cmath>
#include <cstring>
#include <string>

using namespace dtrain::ps;

namespace {

struct Refused {
    const char *field;
    void (*spoil)(dtrain_table_params_t &);
};

void parameters_are_checked(void **) {
    const Refused cases[] = {
        {"rule", [](dtrain_table_params_t &p) { p.dtype = DTRAIN_I32; }},
        {"rule", [](dtrain_table_params_t &p) { p.rule = UINT32_MAX; }},
        {"rule",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_DC_SGD;
             p.consistency = DTRAIN_BSP;
         }},
        {"aggregate",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_MIN;
             p.aggregate = DTRAIN_AVG;
         }},
        {"learning_rate",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_FTRL;
             p.learning_rate = -1;
         }},
        {"row_length", [](dtrain_table_params_t &p) { p.row_length = 3; }},
        {"row_length",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_LAMB;
             p.length = 70000;
         }},
        {"rho",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADADELTA;
             p.rho = 1;
         }},
        {"clip_norm", [](dtrain_table_params_t &p) { p.clip_norm = -1; }},
        {"weight_decay",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADD;
             p.weight_decay = 0.1;
         }},
        {"l1", [](dtrain_table_params_t &p) { p.l1 = NAN; }},
        {"learning_rate is not valid (0 or more",
         [](dtrain_table_params_t &p) { p.learning_rate = -0.1; }},
        {"learning_rate is not valid (0 or more; more than 0 for FTRL)",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_FTRL;
             p.given = DTRAIN_GIVEN_LEARNING_RATE;
         }},
        {"momentum is not valid (0 or more and less than 1)",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_MOMENTUM;
             p.momentum = 1;
         }},
        {"momentum is not valid",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_NESTEROV;
             p.momentum = -0.5;
         }},
        {"compensation is not valid",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_DC_SGD;
             p.compensation = -1;
         }},
        {"given is 0x400; known are 0x3ff", [](dtrain_table_params_t &p) { p.given = 0x400; }},
        {"steps is not valid (DTRAIN_STEPS_*; TABLE",
         [](dtrain_table_params_t &p) { p.steps = 2; }},
        {"steps is not valid (DTRAIN_STEPS_*; TABLE is for rules that count updates, but not for "
         "MEAN)",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_MEAN;
             p.steps = DTRAIN_STEPS_TABLE;
         }},
        {"steps",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADAM;
             p.steps = 3;
         }},
        {"accumulator is not valid (0 or more",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADAGRAD;
             p.accumulator = -0.1;
         }},
        {"accumulator is not valid (0 or more, and within the state's type)",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_FTRL;
             p.accumulator = 1e39;
         }},
        {"schedule",
         [](dtrain_table_params_t &p) {
             p.schedule = DTRAIN_SCHEDULE_INVERSE_SQRT + 1;
             p.decay_steps = 1;
         }},
        {"schedule",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADD;
             p.schedule = DTRAIN_SCHEDULE_INVERSE_SQRT;
             p.decay_steps = 1;
         }},
        {"warmup_steps",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADD;
             p.warmup_steps = 1;
         }},
        {"decay_steps", [](dtrain_table_params_t &p) { p.schedule = DTRAIN_SCHEDULE_COSINE; }},
        {"decay_steps", [](dtrain_table_params_t &p) { p.decay_steps = 5; }},
        {"decay is not valid", [](dtrain_table_params_t &p) { p.decay = 0.5; }},
        {"decay is not valid",
         [](dtrain_table_params_t &p) {
             p.schedule = DTRAIN_SCHEDULE_INVERSE_SQRT;
             p.decay_steps = 5;
             p.decay = 0.5;
         }},
        {"decay is not valid",
         [](dtrain_table_params_t &p) {
             p.schedule = DTRAIN_SCHEDULE_EXPONENTIAL;
             p.decay_steps = 5;
         }},
        {"FTRL divides by the rate",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_FTRL;
             p.schedule = DTRAIN_SCHEDULE_LINEAR;
             p.decay_steps = 5;
         }},
        {"FTRL divides by the rate",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_FTRL;
             p.schedule = DTRAIN_SCHEDULE_STAIRCASE;
             p.decay_steps = 5;
             p.decay = 0.5;
         }},
        {"staleness", [](dtrain_table_params_t &p) { p.staleness = 1; }},
        {"not_finite", [](dtrain_table_params_t &p) { p.not_finite = 4; }},
        {"not_finite",
         [](dtrain_table_params_t &p) {
             p.rule = DTRAIN_RULE_ADD;
             p.dtype = DTRAIN_I32;
             p.not_finite = DTRAIN_NOT_FINITE_DROP;
         }},
        {"max_bytes",
         [](dtrain_table_params_t &p) {
             p.length = 0;
             p.dim = 64;
             p.max_bytes = 255;
         }},
    };
    for (const Refused &refused : cases) {
        dtrain_table_params_t given;
        DTRAIN_INIT(&given);
        given.length = 1000;
        given.dtype = DTRAIN_F32;
        given.rule = DTRAIN_RULE_SGD;
        TableParams params;
        assert_int_equal(resolve(given, "t", params), DTRAIN_OK);
        refused.spoil(given);
        assert_int_equal(resolve(given, "t", params), DTRAIN_ERR_INVALID);
        const char *text = dtrain::error_text();
        if (strstr(text, refused.field) == nullptr) fail_msg("%s: %s", refused.field, text);
    }
}

// The numbers that have a default, in the order of their bits, and which of the first rules have
// them. What later rules have is what their descriptors say.
struct Number {
    const char *name;
    double dtrain_table_params_t::*given;
    double TableParams::*taken;
    double usual;
    const char *rules;
};
const Number numbers[] = {
    {"learning_rate", &dtrain_table_params_t::learning_rate, &TableParams::learning_rate, 0.01,
     " sgd momentum adagrad adam nesterov adagrad_rows rmsprop adadelta adamw amsgrad ftrl lars "
     "lamb dc_sgd function "},
    {"momentum", &dtrain_table_params_t::momentum, &TableParams::momentum, 0.9,
     " momentum nesterov lars function "},
    {"beta1", &dtrain_table_params_t::beta1, &TableParams::beta1, 0.9,
     " adam adamw amsgrad lamb function "},
    {"beta2", &dtrain_table_params_t::beta2, &TableParams::beta2, 0.999,
     " adam adamw amsgrad lamb function "},
    {"epsilon", &dtrain_table_params_t::epsilon, &TableParams::epsilon, 1e-8,
     " adagrad adam adagrad_rows rmsprop adadelta adamw amsgrad lamb function "},
    {"rho", &dtrain_table_params_t::rho, &TableParams::rho, 0.9, " rmsprop adadelta function "},
    {"trust", &dtrain_table_params_t::trust, &TableParams::trust, 0.001, " lars function "},
    {"ftrl_beta", &dtrain_table_params_t::ftrl_beta, &TableParams::ftrl_beta, 1, " ftrl function "},
    {"compensation", &dtrain_table_params_t::compensation, &TableParams::compensation, 0.04,
     " dc_sgd function "},
    {"accumulator", &dtrain_table_params_t::accumulator, &TableParams::accumulator, 0,
     " adagrad adagrad_rows rmsprop adadelta ftrl function "},
};

double usual(const Number &number, uint32_t rule) {
    const std::string name = number.name;
    const RuleInfo &info = rule_info(rule);
    if (rule > DTRAIN_RULE_FUNCTION) {
        if (name == "learning_rate") return info.rate;
        if (name == "epsilon") return info.epsilon;
        if (name == "beta1") return info.beta1;
        if (name == "beta2") return info.beta2;
    }
    if (name == "learning_rate" && rule == DTRAIN_RULE_ADADELTA) return 1;
    if (name == "epsilon" && (rule == DTRAIN_RULE_ADADELTA || rule == DTRAIN_RULE_LAMB))
        return 1e-6;
    return number.usual;
}

// Nothing that was given becomes the default, and nothing is ignored.
void what_is_given_is_taken_or_refused(void **) {
    std::vector<uint32_t> rules(builtin_rules().begin(), builtin_rules().end());
    rules.push_back(DTRAIN_RULE_FUNCTION);
    for (uint32_t rule : rules)
        for (uint32_t i = 0; i < std::size(numbers); ++i) {
            const Number &number = numbers[i];
            const std::string title = rule_info(rule).name;
            const bool has = rule > DTRAIN_RULE_FUNCTION
                                 ? (rule_info(rule).takes >> i & 1) != 0
                                 : strstr(number.rules, (" " + title + " ").c_str()) != nullptr;
            auto given = [&](double value, bool bit) {
                dtrain_table_params_t params;
                DTRAIN_INIT(&params);
                params.length = 8;
                params.dtype = DTRAIN_F32;
                params.rule = rule;
                if (rule == DTRAIN_RULE_FUNCTION) params.function = "f";
                params.*number.given = value;
                if (bit) params.given = uint32_t{1} << i;
                return params;
            };
            TableParams params;
            assert_int_equal(resolve(given(0, false), "t", params), DTRAIN_OK);
            assert_true(params.*number.taken == usual(number, rule));
            for (double value : {0.0, 0.25})
                for (bool bit : {false, true}) {
                    if (value == 0 && !bit) continue;
                    const dtrain::Status status = resolve(given(value, bit), "t", params);
                    const bool divides =
                        rule_info(rule).is(RuleInfo::own_proximal) && i == 0 && value == 0;
                    if (status != (has && !divides ? DTRAIN_OK : DTRAIN_ERR_INVALID))
                        fail_msg("%s, %s %g: %d", title.c_str(), number.name, value, status);
                    const std::string due = number.name +
                                            std::string(" is given, which the rule ") + title +
                                            " does not have";
                    if (status == DTRAIN_OK)
                        assert_true(params.*number.taken == value);
                    else if (!divides && strstr(dtrain::error_text(), due.c_str()) == nullptr)
                        fail_msg("%s, not: %s", due.c_str(), dtrain::error_text());
                }
        }
}

// A name that could not be saved later is none.
void names_fit_into_file_names(void **) {
    dtrain_table_params_t given;
    DTRAIN_INIT(&given);
    given.length = 8;
    given.dtype = DTRAIN_F32;
    TableParams params;
    assert_int_equal(resolve(given, std::string(224, 'x'), params), DTRAIN_OK);
    assert_int_equal(resolve(given, std::string(74, '/') + "xx", params), DTRAIN_OK);
    for (const std::string &name : {std::string(), std::string(225, 'x'), std::string(75, '/')})
        assert_int_equal(resolve(given, name, params), DTRAIN_ERR_INVALID);
    assert_non_null(strstr(dtrain::error_text(), "has 75 bytes"));
    assert_non_null(strstr(dtrain::error_text(), "225 in the names of checkpoint files"));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(what_is_given_is_taken_or_refused),
        cmocka_unit_test(names_fit_into_file_names),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
