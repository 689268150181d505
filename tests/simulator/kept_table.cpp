// What must hold of checkpoints.
// SPDX-License-Identifier: Apache-2.0
#include "kept_table.h"

#include <algorithm>
#include <iterator>

namespace dtrain::simulator {
namespace {

constexpr uint64_t length = 300;

} // namespace

bool KeptTable::check(dtrain_status_t status, const char *call) {
    return caller_.check(status, call, caller_.plan.op_timeout);
}

bool KeptTable::barrier() {
    caller_.begin();
    return check(dtrain_barrier(comm_, nullptr, nullptr), "barrier");
}

bool KeptTable::make(dtrain_comm_t *comm) {
    comm_ = comm;
    pushed_ = 0;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.length = length;
    params.rule = DTRAIN_RULE_ADD;
    caller_.begin();
    return caller_.check(dtrain_table_create(comm, "kept", &params, &table_), "creating a table",
                         2 * caller_.plan.op_timeout);
}

void KeptTable::destroy() {
    if (table_ != nullptr) dtrain_table_destroy(table_);
    table_ = nullptr;
}

bool KeptTable::save(int chief) {
    const Data<double> ones(length, 1);
    caller_.begin();
    if (!check(dtrain_table_push(table_, 0, length, ones.data(), nullptr, nullptr), "push"))
        return false;
    pushed_ += dtrain_comm_size(comm_);
    saved_++;
    if (saved_ == std::size(world->kept)) fail_life("the simulator keeps too few checkpoints");
    return barrier() && (dtrain_comm_rank(comm_) != chief || save_here()) && barrier();
}

// A full disk keeps the checkpoint from being saved, and nothing else.
bool KeptTable::save_here() {
    world->kept[saved_] = pushed_;
    caller_.begin();
    const dtrain_status_t status = dtrain_checkpoint_save(&table_, 1, saved_, nullptr, nullptr);
    if (status == DTRAIN_ERR_IO && !caller_.plan.fills_disks())
        fail_life("process %d: saving failed with all disks in order: %s", caller_.process,
                  last_error().c_str());
    if (!check(status, "saving")) return status == DTRAIN_ERR_IO;
    world->acknowledged = saved_;
    return true;
}

int64_t KeptTable::restore_here() {
    uint64_t step = 0;
    caller_.begin();
    const dtrain_status_t status =
        dtrain_checkpoint_restore(&table_, 1, DTRAIN_CHECKPOINT_NEWEST, nullptr, &step);
    if (status == DTRAIN_ERR_NOT_FOUND && world->acknowledged == 0) return 0;
    if (status == DTRAIN_ERR_NOT_FOUND || (status == DTRAIN_OK && step < world->acknowledged))
        fail_life("process %d: checkpoint %llu was saved, and %llu is the newest: %s",
                  caller_.process, static_cast<unsigned long long>(world->acknowledged),
                  static_cast<unsigned long long>(step), last_error().c_str());
    if (!check(status, "restoring")) return -1;
    if (step >= std::size(world->kept))
        fail_life("checkpoint %llu was never saved", static_cast<unsigned long long>(step));
    return int64_t(step);
}

bool KeptTable::restore(int chief) {
    if (!barrier()) return false; // nobody pushes meanwhile
    int64_t step = -1;
    if (dtrain_comm_rank(comm_) == chief) step = restore_here();
    caller_.begin();
    if (!check(dtrain_broadcast(comm_, &step, 1, DTRAIN_I64, chief, nullptr, nullptr), "broadcast"))
        return false;
    if (step < 0) return false;
    if (step > 0) pushed_ = world->kept[step];
    return has_values(pushed_) && barrier();
}

bool KeptTable::has_values(double wanted) {
    Data<double> values(length, -1);
    caller_.begin();
    if (!check(dtrain_table_pull(table_, 0, length, values.data(), nullptr, nullptr), "pull"))
        return false;
    const auto wrong = std::ranges::find_if(values, [&](double v) { return v != wanted; });
    if (wrong != values.end())
        fail_life("process %d: an element of the kept table is %g, not %g", caller_.process, *wrong,
                  wanted);
    return true;
}

} // namespace dtrain::simulator
