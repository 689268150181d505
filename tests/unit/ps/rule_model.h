// A table in plain doubles, by the formulas of docs/PARAMETER_SERVER.md, each in a file of its own:
// models/<rule>.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/dtype.h"
#include "ps/table/rules.h"

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

struct ModelState {
    dtrain::ps::TableParams p; // learning_rate: of this update
    uint64_t number = 0;       // of the table's update
    std::vector<double> w = {}, a = {}, b = {}, c = {}, pulled = {};
    std::vector<uint64_t> steps = {}; // of each element

    // Counts an update of an element, and returns the count that the rule uses.
    double counted(uint64_t e) {
        ++steps[e];
        return double(p.steps == DTRAIN_STEPS_TABLE ? number : steps[e]);
    }
};

// How a rule updates an element, or all elements of a row, by g after clipping and weight decay.
struct RuleFormula {
    uint32_t rule = 0;
    void (*element)(ModelState &s, uint64_t e, double g) = nullptr;
    void (*row)(ModelState &s, uint64_t first, uint64_t count, const double *g) = nullptr;
    bool own_decay = false, own_proximal = false;
    std::vector<double> ModelState::*accumulator = &ModelState::a; // begins at `accumulator`
};

// One for each models/<rule>.cpp.
struct AddFormula {
    explicit AddFormula(const RuleFormula &formula);
};

bool has_formula(uint32_t rule);

// What the schedule makes of the rate at update t.
double scheduled(const dtrain::ps::TableParams &params, double t);

class RuleModel {
  public:
    RuleModel(const dtrain::ps::TableParams &params, uint64_t count);

    void set_rate(double rate) { rate_ = rate; }
    void begin(uint64_t number); // of the table's updates
    double operator[](uint64_t i) const { return s_.w[i]; }
    void pulled() { s_.pulled = s_.w; } // by the one worker
    void update(const dtrain::ps::Range &range, std::vector<double> g);

  private:
    void update_row(uint64_t first, uint64_t count, double *g);
    void proximal(double &w) const;
    void round(double &value) const;

    ModelState s_;
    const RuleFormula &formula_;
    double rate_;
};
