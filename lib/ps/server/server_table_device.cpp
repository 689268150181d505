// What waits for an accelerator that holds the table's values, so that nothing else does.
// SPDX-License-Identifier: Apache-2.0
//
// A request that would have to wait is dropped, and asked for again, as one that comes before its
// clock. A clock's update is put off. Pulled values come later than their answer is made.
#include "ps/server/server_table.h"

namespace dtrain::ps {

std::optional<Storage::Need> ServerTable::need_of(RequestKind kind) const {
    if (!is_on_device(identity_.params)) return std::nullopt;
    // A worker that ends a clock of QUORUM after it was over takes no part in it, also if the
    // update was put off.
    const bool quorum = identity_.params.consistency == DTRAIN_QUORUM;
    const std::optional<Storage::Need> of_clock =
        quorum ? std::optional(Storage::Need::clock) : std::nullopt;
    switch (kind) {
    case RequestKind::push:
    case RequestKind::push_pull:
        return collects(identity_.params) ? of_clock : Storage::Need::change;
    case RequestKind::clock:
    case RequestKind::cancel: return of_clock; // it counts a push
    case RequestKind::set:
    case RequestKind::set_state: return Storage::Need::change;
    case RequestKind::adopt: return Storage::Need::whole;
    case RequestKind::pull_state: // these need only that clocks which have ended are applied
    case RequestKind::set_rate:
    case RequestKind::set_updates: return Storage::Need::clock;
    default: return std::nullopt;
    }
}

bool ServerTable::is_held_up(Storage::Need need, bool only_asks) {
    return clock_waits_ || (need != Storage::Need::clock && storage_->is_busy(need, only_asks));
}

bool ServerTable::must_wait(RequestKind kind) {
    const std::optional<Storage::Need> need = need_of(kind);
    if (!need || !is_held_up(*need, false)) return false;
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
    if (!waits_ || is_held_up(*waits_, true)) return;
    waits_.reset();
    release(out);
}

} // namespace dtrain::ps
