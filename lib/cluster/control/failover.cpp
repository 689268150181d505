// Tracks the members that come to a new coordinator.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/failover.h"

#include <algorithm>

namespace dtrain::cluster {

Failover::Failover(const Membership &state, const Pace &pace, bool clean, bool dead, int64_t now)
    : call_at_(now + std::min(2 * pace.interval, pace.timeout / 2)), until_(now + pace.timeout),
      clean_(clean), dead_(dead) {
    for (int32_t m = 0; m < state.size(); m++)
        if (state.alive(m)) missing_.insert(m);
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

bool Failover::goes_on() const {
    size_t others = missing_.size() + (dead_ ? 0 : 1); // plus the old coordinator
    return missing_.empty() || came_.size() > others;
}

} // namespace dtrain::cluster
