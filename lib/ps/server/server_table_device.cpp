// What waits for an accelerator that holds the table's values, so that nothing else does.
// SPDX-License-Identifier: Apache-2.0
//
// A request that would have to wait is dropped, and asked for again, as one that comes before its
// clock. A clock's update is put off. Pulled values come later than their answer is made.
#include "ps/server/server_table.h"

namespace dtrain::ps {

std::optional<Storage::Need> ServerTable::need_of(RequestKind kind) const {
    if (!is_on_device(identity_.params)) return std::nullopt;
    if (kind == RequestKind::adopt) return Storage::Need::whole;
    const bool changes = has_trait(kind, Trait::pushes)
                             ? !collects(identity_.params)
                             : kind == RequestKind::set || kind == RequestKind::set_state;
    return changes ? std::optional(Storage::Need::change) : std::nullopt;
}

bool ServerTable::must_wait(RequestKind kind) {
    const std::optional<Storage::Need> need = need_of(kind);
    if (!need || !storage_->is_busy(*need)) return false;
    waits_ = need;
    return true;
}

bool ServerTable::may_apply() {
    clock_waits_ = storage_->is_busy(Storage::Need::clock);
    return !clock_waits_;
}

void ServerTable::look_at_device(Responses &out) {
    if (!made()) return;
    if (clock_waits_) settle(out);
    if (!waits_ || storage_->is_busy(*waits_, true)) return;
    waits_.reset();
    release(out);
}

} // namespace dtrain::ps
