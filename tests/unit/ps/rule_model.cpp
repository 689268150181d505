// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include "check.h"

#include <algorithm>
#include <cmath>
#include <map>

using dtrain::ps::TableParams;

namespace {

std::map<uint32_t, RuleFormula> &formulas() {
    static std::map<uint32_t, RuleFormula> all;
    return all;
}

const RuleFormula &formula_of(uint32_t rule) {
    if (!has_formula(rule)) {
        const char *name = dtrain::ps::rule_info(rule).name;
        fail_msg("the rule %s has no model: tests/unit/ps/models/%s.cpp", name, name);
    }
    return formulas()[rule];
}

} // namespace

double scheduled(const TableParams &p, double t) {
    const auto warmup = double(p.warmup_steps), n = double(p.decay_steps), d = p.decay;
    if (t < warmup) return t / warmup;
    const double s = t - std::max(warmup, 1.0), part = std::min(s / n, 1.0);
    switch (p.schedule) {
    case DTRAIN_SCHEDULE_LINEAR: return 1 + (d - 1) * part;
    case DTRAIN_SCHEDULE_COSINE: return d + (1 - d) * (1 + std::cos(M_PI * part)) / 2;
    case DTRAIN_SCHEDULE_EXPONENTIAL: return std::pow(d, s / n);
    case DTRAIN_SCHEDULE_STAIRCASE: return std::pow(d, std::floor(s / n));
    case DTRAIN_SCHEDULE_INVERSE_SQRT: return std::sqrt(n / (n + s));
    default: return 1;
    }
}

AddFormula::AddFormula(const RuleFormula &formula) { formulas()[formula.rule] = formula; }

bool has_formula(uint32_t rule) { return formulas().count(rule) > 0; }

RuleModel::RuleModel(const TableParams &params, uint64_t count)
    : s_{.p = params}, formula_(formula_of(params.rule)), rate_(params.learning_rate) {
    s_.w.assign(count, params.initial);
    for (std::vector<double> *slot : {&s_.a, &s_.b, &s_.c}) slot->resize(count);
    s_.steps.resize(count);
    (s_.*formula_.accumulator).assign(count, params.accumulator);
}

void RuleModel::begin(uint64_t number) {
    s_.number = number;
    s_.p.learning_rate = rate_ * scheduled(s_.p, double(number));
}

void RuleModel::update(const dtrain::ps::Range &range, std::vector<double> g) {
    if (s_.pulled.empty()) pulled();
    uint64_t row = dtrain::ps::takes_norms(s_.p) ? s_.p.row_length : range.count;
    for (uint64_t at = 0; at < range.count; at += row)
        update_row(range.first + at, row, g.data() + at);
    for (uint64_t i = range.first; i < range.end(); ++i) round(s_.w[i]);
}

void RuleModel::round(double &value) const {
    char bytes[8];
    const uint32_t dtype = dtrain::ps::storage_dtype_of(s_.p);
    put(dtype, bytes, 0, value);
    value = get(dtype, bytes, 0);
}

void RuleModel::update_row(uint64_t first, uint64_t count, double *g) {
    const TableParams &p = s_.p;
    double norm = 0;
    for (uint64_t i = 0; i < count; ++i) {
        if (p.clip_value > 0) g[i] = std::clamp(g[i], -p.clip_value, p.clip_value);
        norm += g[i] * g[i];
    }
    norm = std::sqrt(norm);
    for (uint64_t i = 0; i < count; ++i) {
        if (p.clip_norm > 0 && norm > p.clip_norm) g[i] *= p.clip_norm / norm;
        if (!formula_.own_decay) g[i] += p.weight_decay * s_.w[first + i];
    }
    if (formula_.row != nullptr)
        formula_.row(s_, first, count, g);
    else
        for (uint64_t i = 0; i < count; ++i) formula_.element(s_, first + i, g[i]);
    if (formula_.own_proximal) return;
    for (uint64_t i = first; i < first + count; ++i) proximal(s_.w[i]);
}

void RuleModel::proximal(double &w) const {
    const TableParams &p = s_.p;
    double shrunk = std::max(std::fabs(w) - p.learning_rate * p.l1, 0.0);
    if (p.l1 > 0 || p.l2 > 0) w = std::copysign(shrunk, w) / (1 + p.learning_rate * p.l2);
}
