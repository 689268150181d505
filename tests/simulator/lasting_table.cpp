// SPDX-License-Identifier: Apache-2.0
#include "lasting_table.h"

namespace dtrain::simulator {
namespace {

constexpr uint64_t length = 400;
// What all processes see: how many pushes have begun, and how many were answered.
enum On : int { begun, answered };

} // namespace

bool LastingTable::check(dtrain_status_t status, const char *call) {
    return caller_.check(status, call, caller_.plan.op_timeout);
}

bool LastingTable::barrier(dtrain_comm_t *comm) {
    caller_.begin();
    return check(dtrain_barrier(comm, nullptr, nullptr), "barrier");
}

bool LastingTable::make(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.length = length;
    params.rule = DTRAIN_RULE_ADD;
    caller_.begin();
    return caller_.check(dtrain_table_create(comm, "lasting", &params, &table_), "creating a table",
                         2 * caller_.plan.op_timeout);
}

void LastingTable::destroy() {
    if (table_ != nullptr) dtrain_table_destroy(table_);
    table_ = nullptr;
}

// Every push that was answered is in it, once; of those that were not, each once at most.
bool LastingTable::use(dtrain_comm_t *comm, uint32_t mode, bool change) {
    if (change) {
        dtrain_table_params_t to;
        DTRAIN_INIT(&to);
        to.consistency = mode;
        to.staleness = mode == DTRAIN_SSP ? 1 : 0;
        caller_.begin();
        if (!caller_.check(dtrain_table_set_consistency(comm, table_, &to, nullptr),
                           "changing the mode", 2 * caller_.plan.op_timeout))
            return false;
    }
    const Data<double> ones(length, 1);
    Data<double> values(length, -1);
    world->board[begun]++;
    caller_.begin();
    if (!check(dtrain_table_push(table_, 0, length, ones.data(), nullptr, nullptr), "lasting push"))
        return false;
    world->board[answered]++;
    caller_.begin();
    if (!check(dtrain_table_clock(table_, nullptr, nullptr), "clock") || !barrier(comm))
        return false;
    const auto least = double(world->board[answered]);
    caller_.begin();
    if (!check(dtrain_table_pull(table_, 0, length, values.data(), nullptr, nullptr),
               "lasting pull"))
        return false;
    const auto most = double(world->board[begun]);
    for (const double value : values)
        if (!(value >= least && value <= most))
            fail_life("process %d: of %g to %g pushes, %g are in the table", caller_.process, least,
                      most, value);
    return barrier(comm);
}

} // namespace dtrain::simulator
