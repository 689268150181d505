// SPDX-License-Identifier: Apache-2.0
#include "long_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr uint64_t length = 3000;
constexpr uint32_t staleness = 2;
constexpr size_t row_length = 4, most_rows = 1 + (1 << 15) / 64;

bool make(const Here &here, const char *name, int step, dtrain_table_params_t &params,
          dtrain_table_t **out) {
    params.dtype = DTRAIN_F64;
    params.rule = DTRAIN_RULE_ADD;
    here.caller.begin();
    return here.caller.check(
        dtrain_table_create(here.comm, (name + std::to_string(step)).c_str(), &params, out),
        "creating a table", 2 * here.caller.plan.op_timeout);
}

} // namespace

int LongTables::made() const {
    return (dense_ != nullptr) + (sparse_ != nullptr) + (clocked_ != nullptr);
}

void LongTables::destroy() {
    for (dtrain_table_t **table : {&dense_, &clocked_, &sparse_})
        if (*table != nullptr) dtrain_table_destroy(std::exchange(*table, nullptr));
}

bool LongTables::count(const Here &here, int step) {
    if (dense_ == nullptr) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.length = length;
        pushed_ = 0;
        if (!make(here, "table ", step, params, &dense_)) return false;
    }
    const Data<double> ones(length, 1);
    here.caller.begin();
    if (!here.check(dtrain_table_push(dense_, 0, length, ones.data(), nullptr, nullptr), "push"))
        return false;
    pushed_ += double(here.caller.members.size());
    if (!here.barrier()) return false;
    Data<double> values(length, -1);
    here.caller.begin();
    if (!here.check(dtrain_table_pull(dense_, 0, length, values.data(), nullptr, nullptr), "pull"))
        return false;
    for (const double value : values)
        if (value != pushed_)
            fail_life("process %d: of %g pushes, %g are in the table", here.caller.process, pushed_,
                      value);
    return here.barrier(); // nobody pushes again before all have looked
}

// Each call has the first rows.
bool LongTables::count_rows(const Here &here, int step, size_t count) {
    if (sparse_ == nullptr) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dim = row_length;
        pushed_rows_.assign(most_rows, 0);
        if (!make(here, "rows ", step, params, &sparse_)) return false;
    }
    Data<uint64_t> keys(count / 64 + 1);
    for (size_t i = 0; i < keys.size(); i++) keys[i] = i * 0x9E3779B97F4A7C15u;
    const Data<double> ones(keys.size() * row_length, 1);
    here.caller.begin();
    if (!here.check(dtrain_table_push_rows(sparse_, keys.data(), keys.size(), ones.data(), nullptr,
                                           nullptr),
                    "push of rows"))
        return false;
    for (size_t i = 0; i < keys.size(); i++) pushed_rows_[i] += double(here.caller.members.size());
    if (!here.barrier()) return false;
    Data<double> values(ones.size(), -1);
    here.caller.begin();
    if (!here.check(dtrain_table_pull_rows(sparse_, keys.data(), keys.size(), values.data(),
                                           nullptr, nullptr),
                    "pull of rows"))
        return false;
    for (size_t i = 0; i < values.size(); i++)
        if (values[i] != pushed_rows_[i / row_length])
            fail_life("process %d: of %g pushes, %g are in row %zu", here.caller.process,
                      pushed_rows_[i / row_length], values[i], i / row_length);
    return here.barrier();
}

bool LongTables::clocks(const Here &here, int step, int random) {
    if (clocked_ == nullptr) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        is_bsp_ = random % 2 == 0;
        params.length = length;
        params.consistency = is_bsp_ ? DTRAIN_BSP : DTRAIN_SSP;
        params.staleness = is_bsp_ ? 0 : staleness;
        clock_ = 0;
        if (!make(here, "clocks ", step, params, &clocked_)) return false;
    }
    for (int i = 0; i < 3; i++)
        if (!clock(here)) return false;
    if (random % 3 != 0) return true;
    here.caller.begin(); // others may still wait for it
    return here.caller.check(dtrain_table_destroy(std::exchange(clocked_, nullptr)),
                             "destroying a table", 2 * here.caller.plan.op_timeout);
}

bool LongTables::clock(const Here &here) {
    const Data<double> ones(length, 1);
    here.caller.begin();
    if (!here.check(dtrain_table_push(clocked_, 0, length, ones.data(), nullptr, nullptr),
                    "push in a clock"))
        return false;
    here.caller.begin();
    if (!here.check(dtrain_table_clock(clocked_, nullptr, nullptr), "clock")) return false;
    clock_++;
    Data<double> values(length, -1);
    here.caller.begin();
    if (!here.check(dtrain_table_pull(clocked_, 0, length, values.data(), nullptr, nullptr),
                    "pull after a clock"))
        return false;
    // Of the others, one may be as far ahead as its own pulls allow.
    const int least = is_bsp_ ? clock_ : std::max(0, clock_ - int(staleness));
    const int most = is_bsp_ ? clock_ : clock_ + int(staleness) + 1;
    // One that has left, perhaps since it lacked memory, does not count any more.
    const auto size = int(here.caller.members.size());
    const int present = size - std::popcount(world->leavers);
    for (const double value : values)
        if (value < present * least || value > size * most || value != std::floor(value))
            fail_life("process %d: at clock %d, an element is %g", here.caller.process, clock_,
                      value);
    return true;
}

} // namespace dtrain::simulator
