// Measures each member's silence.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/watch.h"

#include <algorithm>

namespace dtrain::cluster {

void Watch::start(int32_t member, int64_t now, int64_t grace) {
    if (heard_.empty()) next_ = next_beat_ = now + pace_.interval;
    heard_[member] = now + grace;
    next_ = std::min(next_, now + grace + pace_.timeout);
}

void Watch::heard(int32_t member, int64_t now) {
    if (auto at = heard_.find(member); at != heard_.end()) at->second = std::max(at->second, now);
}

int64_t Watch::own_pause(int64_t now) const {
    return heard_.empty() || now - next_ <= pace_.interval ? 0 : now - next_;
}

Watch::Due Watch::check(int64_t now) {
    Due due;
    if (heard_.empty() || now < next_) return due;
    if (const int64_t pause = own_pause(now); pause > 0)
        for (auto &[member, heard] : heard_) heard = std::max(heard, std::min(now, heard + pause));
    if (now >= next_beat_) {
        due.beat = true;
        next_beat_ = now + pace_.interval;
    }
    next_ = next_beat_;
    for (const auto &[member, heard] : heard_) {
        if (now - heard >= pace_.timeout)
            due.silent.push_back({member, now - heard});
        else
            next_ = std::min(next_, heard + pace_.timeout);
    }
    return due;
}

} // namespace dtrain::cluster
