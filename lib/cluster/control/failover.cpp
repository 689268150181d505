// Tracks the members that come to a new coordinator.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/failover.h"

#include <algorithm>

namespace dtrain::cluster {

Failover::Failover(const Membership &state, const Pace &pace, bool clean, bool dead, int64_t now)
    : call_at_(now + std::min(2 * pace.interval, pace.timeout / 2)), until_(now + pace.timeout),
      clean_(clean), silent_(!clean && !dead) {
    for (int32_t m = 0; m < state.size(); m++)
        if (state.alive(m)) missing_.insert(m);
    // What this member has found since nobody told it any more.
    for (const auto &[m, gone] : state.gone)
        if (gone.epoch > state.epoch && !gone.left && !gone.silent) ended_++;
}

void Failover::came(int32_t member) {
    if (missing_.erase(member) > 0) came_.insert(member);
}

void Failover::went(int32_t member) {
    missing_.erase(member);
    came_.erase(member);
}

std::vector<int32_t> Failover::to_call(int64_t now) {
    if (called_ || now < call_at_) return {};
    called_ = true;
    return {missing_.begin(), missing_.end()};
}

void Failover::ended(int32_t member) {
    if (missing_.contains(member)) ended_++;
    went(member);
}

size_t Failover::others() const { return missing_.size() + (silent_ ? ended_ + 1 : 0); }

// Of two members, each goes on when they lose each other.
bool Failover::goes_on() const {
    return came_.size() > others() || (missing_.empty() && ended_ == 0);
}

} // namespace dtrain::cluster
