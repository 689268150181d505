// SPDX-License-Identifier: Apache-2.0
#include "cluster/watch.h"

#include <algorithm>

namespace dtrain::cluster {

void Watch::start(int32_t member, int64_t now) {
    if (heard_.empty()) next_ = next_beat_ = now + interval_;
    heard_[member] = now;
    next_ = std::min(next_, now + timeout_);
}

void Watch::heard(int32_t member, int64_t now) {
    if (auto at = heard_.find(member); at != heard_.end()) at->second = now;
}

Watch::Due Watch::check(int64_t now) {
    Due due;
    if (heard_.empty() || now < next_) return due;
    if (now - next_ > interval_)
        for (auto &[member, heard] : heard_) heard = std::max(heard, now - timeout_ + interval_);
    if (now >= next_beat_) {
        due.beat = true;
        next_beat_ = now + interval_;
    }
    next_ = next_beat_;
    for (const auto &[member, heard] : heard_) {
        if (now - heard >= timeout_)
            due.silent.push_back({member, now - heard});
        else
            next_ = std::min(next_, heard + timeout_);
    }
    return due;
}

} // namespace dtrain::cluster
