// The coordinator's eye on its members' health.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/coordinator.h"

#include <algorithm>

namespace dtrain::cluster {

void Coordinator::watch(int64_t now, Actions &actions) {
    Watch::Due due = watch_.check(now);
    if (due.beat)
        for (const auto &[member, link] : seats_)
            if (link != local_link) actions.emplace_back(Send{link, wire::Heartbeat{state_.epoch}});
    for (Watch::Silent silent : due.silent)
        doubt(silent.member, text("silent for %lld ms", static_cast<long long>(silent.ns / ms)),
              false, now, actions);
}

// The member is lost, but it may live: then it is this side that may be cut off. If more members
// are lost in this way at about the same time than are left, they go on, and this side does not.
// (Some say so themselves; others are noticed one timeout later.)
void Coordinator::doubt(int32_t member, const std::string &why, bool deposed, int64_t now,
                        Actions &actions) {
    if (!state_.alive(member)) return;
    int64_t window = 3 * settings_.heartbeat_timeout;
    std::erase_if(doubts_, [&](const Doubt &d) { return now - d.when > window; });
    doubts_.push_back({now, deposed});
    lose(member, why, actions);
    auto left = size_t(state_.alive_count());
    bool alone = left == 1 && std::any_of(doubts_.begin(), doubts_.end(),
                                          [](const Doubt &d) { return d.deposed; });
    if (doubts_.size() > left || alone)
        end(DTRAIN_ERR_FENCED,
            text("the job went on without this process: %zu members were lost to it at once, %s",
                 doubts_.size(), why.c_str()),
            actions);
}

} // namespace dtrain::cluster
