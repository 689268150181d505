// A table in plain doubles: the formulas of docs/PARAMETER_SERVER.md, one element at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/dtype.h"
#include "ps/table/rules.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

// Element i of a buffer of any dtype, as a double; and back.
inline double get(uint32_t dtype, const void *buffer, uint64_t i) {
    return dtrain::ps::visit_dtype(dtype, [&]<class T>() -> double {
        T value;
        std::memcpy(&value, static_cast<const char *>(buffer) + i * sizeof(T), sizeof(T));
        if constexpr (std::is_class_v<T>)
            return dtrain::ps::to_float(value);
        else
            return static_cast<double>(value);
    });
}

inline void put(uint32_t dtype, void *buffer, uint64_t i, double value) {
    dtrain::ps::visit_dtype(dtype, [&]<class T>() {
        T converted;
        if constexpr (std::is_same_v<T, dtrain::ps::Half>)
            converted = dtrain::ps::to_half(float(value));
        else if constexpr (std::is_same_v<T, dtrain::ps::Bfloat>)
            converted = dtrain::ps::to_bfloat(float(value));
        else
            converted = static_cast<T>(value);
        std::memcpy(static_cast<char *>(buffer) + i * sizeof(T), &converted, sizeof(T));
    });
}

// What the schedule makes of the rate at update t.
inline double scheduled(const dtrain::ps::TableParams &p, double t) {
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

class RuleModel {
  public:
    RuleModel(const dtrain::ps::TableParams &params, uint64_t count)
        : p_(params), rate_(params.learning_rate), w_(count, params.initial), a_(count), b_(count),
          c_(count), steps_(count) {
        (p_.rule == DTRAIN_RULE_FTRL ? b_ : a_).assign(count, params.accumulator);
    }

    void set_rate(double rate) { rate_ = rate; }
    void begin(uint64_t number) { // of the table's updates
        number_ = number;
        p_.learning_rate = rate_ * scheduled(p_, double(number));
    }

    double operator[](uint64_t i) const { return w_[i]; }
    void pulled() { pulled_ = w_; } // by the one worker

    void update(const dtrain::ps::Range &range, std::vector<double> g) {
        if (pulled_.empty()) pulled();
        uint64_t row = dtrain::ps::takes_norms(p_) ? p_.row_length : range.count;
        for (uint64_t at = 0; at < range.count; at += row)
            update_row(range.first + at, row, g.data() + at);
        for (uint64_t i = range.first; i < range.end(); ++i) round(w_[i]);
    }

  private:
    void round(double &value) const {
        char bytes[8];
        const uint32_t dtype = dtrain::ps::storage_dtype_of(p_);
        put(dtype, bytes, 0, value);
        value = get(dtype, bytes, 0);
    }

    bool own_decay() const {
        return p_.rule == DTRAIN_RULE_ADAMW || p_.rule == DTRAIN_RULE_LAMB ||
               p_.rule == DTRAIN_RULE_LARS;
    }

    void update_row(uint64_t first, uint64_t count, double *g) {
        double norm = 0;
        for (uint64_t i = 0; i < count; ++i) {
            if (p_.clip_value > 0) g[i] = std::clamp(g[i], -p_.clip_value, p_.clip_value);
            norm += g[i] * g[i];
        }
        norm = std::sqrt(norm);
        for (uint64_t i = 0; i < count; ++i) {
            if (p_.clip_norm > 0 && norm > p_.clip_norm) g[i] *= p_.clip_norm / norm;
            if (!own_decay()) g[i] += p_.weight_decay * w_[first + i];
        }
        if (p_.rule == DTRAIN_RULE_LARS)
            lars(first, count, g);
        else if (p_.rule == DTRAIN_RULE_LAMB)
            lamb(first, count, g);
        else if (p_.rule == DTRAIN_RULE_ADAGRAD_ROWS)
            adagrad_rows(first, count, g);
        else
            for (uint64_t i = 0; i < count; ++i) element(first + i, g[i]);
        if (p_.rule == DTRAIN_RULE_FTRL) return;
        for (uint64_t i = first; i < first + count; ++i) proximal(w_[i]);
    }

    void proximal(double &w) const {
        double shrunk = std::max(std::fabs(w) - p_.learning_rate * p_.l1, 0.0);
        if (p_.l1 > 0 || p_.l2 > 0) w = std::copysign(shrunk, w) / (1 + p_.learning_rate * p_.l2);
    }

    void lars(uint64_t first, uint64_t count, const double *g) {
        double ww = 0, gg = 0;
        for (uint64_t i = 0; i < count; ++i) {
            ww += w_[first + i] * w_[first + i];
            gg += g[i] * g[i];
        }
        double local = p_.trust * std::sqrt(ww) / (std::sqrt(gg) + p_.weight_decay * std::sqrt(ww));
        if (ww == 0 || gg == 0) local = 1;
        for (uint64_t i = 0; i < count; ++i) {
            double &w = w_[first + i], &v = a_[first + i];
            v = p_.momentum * v + p_.learning_rate * local * (g[i] + p_.weight_decay * w);
            w -= v;
        }
    }

    void lamb(uint64_t first, uint64_t count, const double *g) {
        std::vector<double> u(count);
        double ww = 0, uu = 0;
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t e = first + i;
            u[i] = adam_direction(e, g[i], b_) + p_.weight_decay * w_[e];
            ww += w_[e] * w_[e];
            uu += u[i] * u[i];
        }
        double ratio = ww > 0 && uu > 0 ? std::sqrt(ww) / std::sqrt(uu) : 1;
        for (uint64_t i = 0; i < count; ++i) w_[first + i] -= p_.learning_rate * ratio * u[i];
    }

    void adagrad_rows(uint64_t first, uint64_t count, const double *g) {
        double sum = 0;
        for (uint64_t i = 0; i < count; ++i) sum += g[i] * g[i];
        double &state = a_[first];
        state += sum / double(count);
        for (uint64_t i = 0; i < count; ++i)
            w_[first + i] -= p_.learning_rate * g[i] / (std::sqrt(state) + p_.epsilon);
    }

    // m^ / (sqrt(v^) + eps), of which v^ is what `second` holds after the update of the moments.
    double adam_direction(uint64_t e, double g, const std::vector<double> &second) {
        ++steps_[e];
        const auto t = double(p_.steps == DTRAIN_STEPS_TABLE ? number_ : steps_[e]);
        a_[e] = p_.beta1 * a_[e] + (1 - p_.beta1) * g;
        b_[e] = p_.beta2 * b_[e] + (1 - p_.beta2) * g * g;
        c_[e] = std::max(c_[e], b_[e]);
        double m = a_[e] / (1 - std::pow(p_.beta1, t));
        double v = second[e] / (1 - std::pow(p_.beta2, t));
        return m / (std::sqrt(v) + p_.epsilon);
    }

    void ftrl(double &w, double &z, double &n, double g) const {
        double sigma = (std::sqrt(n + g * g) - std::sqrt(n)) / p_.learning_rate;
        z += g - sigma * w;
        n += g * g;
        if (std::fabs(z) <= p_.l1)
            w = 0;
        else
            w = -(z - std::copysign(p_.l1, z)) /
                ((p_.ftrl_beta + std::sqrt(n)) / p_.learning_rate + p_.l2);
    }

    void element(uint64_t e, double g) {
        double &w = w_[e], &a = a_[e], &b = b_[e], rate = p_.learning_rate;
        switch (p_.rule) {
        case DTRAIN_RULE_ADD: w += g; break;
        case DTRAIN_RULE_ASSIGN: w = g; break;
        case DTRAIN_RULE_MIN: w = std::min(w, g); break;
        case DTRAIN_RULE_MAX: w = std::max(w, g); break;
        case DTRAIN_RULE_MEAN: w += (g - w) / double(++steps_[e]); break;
        case DTRAIN_RULE_SGD: w -= rate * g; break;
        case DTRAIN_RULE_MOMENTUM:
            a = p_.momentum * a + g;
            w -= rate * a;
            break;
        case DTRAIN_RULE_NESTEROV:
            a = p_.momentum * a + g;
            w -= rate * (g + p_.momentum * a);
            break;
        case DTRAIN_RULE_ADAGRAD:
            a += g * g;
            w -= rate * g / (std::sqrt(a) + p_.epsilon);
            break;
        case DTRAIN_RULE_RMSPROP:
            a = p_.rho * a + (1 - p_.rho) * g * g;
            w -= rate * g / (std::sqrt(a) + p_.epsilon);
            break;
        case DTRAIN_RULE_ADADELTA: {
            a = p_.rho * a + (1 - p_.rho) * g * g;
            double delta = std::sqrt(b + p_.epsilon) / std::sqrt(a + p_.epsilon) * g;
            b = p_.rho * b + (1 - p_.rho) * delta * delta;
            w -= rate * delta;
            break;
        }
        case DTRAIN_RULE_ADAM: w -= rate * adam_direction(e, g, b_); break;
        case DTRAIN_RULE_ADAMW: {
            double decay = rate * p_.weight_decay * w;
            w -= decay + rate * adam_direction(e, g, b_);
            break;
        }
        case DTRAIN_RULE_AMSGRAD: w -= rate * adam_direction(e, g, c_); break;
        case DTRAIN_RULE_FTRL: ftrl(w, a, b, g); break;
        default: // DC_SGD
            w -= rate * (g + p_.compensation * g * g * (w - pulled_[e]));
        }
    }

    dtrain::ps::TableParams p_;
    double rate_;
    uint64_t number_ = 0;
    std::vector<double> w_, a_, b_, c_, pulled_;
    std::vector<uint64_t> steps_;
};
