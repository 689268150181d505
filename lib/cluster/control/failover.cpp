// Tracks the members that come to a new coordinator.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/failover.h"

#include <algorithm>

namespace dtrain::cluster {

Failover::Failover(const Membership &state, const Pace &pace, bool clean, bool dead,
                   Absence &absence, int64_t now)
    : pace_(pace), absence_(absence), call_at_(now + std::min(2 * pace.interval, pace.timeout / 2)),
      until_(now + pace.timeout), clean_(clean), silent_(!clean && !dead) {
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

void Failover::ended(int32_t member, int64_t now, bool moved) {
    if (missing_.contains(member)) {
        ended_++;
        if (!moved) absence_.found_ended(now, pace_);
    }
    went(member);
}

size_t Failover::others() const {
    return missing_.size() + (silent_ ? ended_ + 1 : absence_.ended_late());
}

// Of two members, each goes on when they lose each other.
bool Failover::goes_on() const {
    return came_.size() > others() ||
           (missing_.empty() && ended_ == 0 && absence_.ended_late() == 0);
}

std::string Failover::absence(int64_t now) const {
    if (absence_.ended_late() == 0) return "";
    return text("; this process did not run, or had no coordinator, for %lld ms; option "
                "heartbeat.timeout: %lld ms",
                static_cast<long long>(absence_.ns(now) / ms),
                static_cast<long long>(pace_.timeout / ms));
}

} // namespace dtrain::cluster
