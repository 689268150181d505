// Measures how long the other members may have missed this process.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/absence.h"

namespace dtrain::cluster {

void Absence::ran(int64_t now, const Pace &pace, bool counted) {
    if (counted && now - ran_at_ > pace.interval + pace.interval / 2) {
        paused_at_ = ran_at_;
        resumed_at_ = now;
    }
    ran_at_ = now;
}

// What it has read since a pause may have been sent before. The last heartbeat that others have of
// it may be an interval older than the pause.
void Absence::lost_coordinator(int64_t now, const Pace &pace) {
    since_ = now - resumed_at_ < pace.timeout ? paused_at_ - pace.interval : now;
    ended_late_ = 0;
}

// The others may have learned of the loss a little earlier.
void Absence::found_ended(int64_t now, const Pace &pace) {
    if (ns(now) >= pace.timeout - pace.interval) ended_late_++;
}

} // namespace dtrain::cluster
