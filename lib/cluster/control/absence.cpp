// Measures how long the other members may have missed this process.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/absence.h"

#include <algorithm>
#include <utility>

namespace dtrain::cluster {

namespace {

bool is_pause(int64_t ns, const Pace &pace) { return ns > pace.interval + pace.interval / 2; }

} // namespace

void Absence::ran(int64_t now, const Pace &pace, bool counted) {
    if (counted && is_pause(now - ran_at_, pace)) {
        paused_at_ = ran_at_;
        resumed_at_ = now;
    }
    ran_at_ = now;
}

// A link may have held the answer back as well.
void Absence::answered(int64_t asked, int64_t now, const Pace &pace) {
    heard_at_ = asked;
    cut_off_ = false;
    heard(now, pace);
}

// What a link has held back comes at once when the link is there again. What comes a heartbeat
// later was sent since then, and the coordinator would have said that it counts on this process no
// longer.
void Absence::heard(int64_t now, const Pace &pace) {
    if (is_pause(now - heard_at_, pace)) {
        if (!std::exchange(cut_off_, true)) silent_at_ = heard_at_;
        heard_again_at_ = now;
    } else if (now - heard_again_at_ > pace.interval) {
        cut_off_ = false;
    }
    heard_at_ = now;
}

// What it has read since a pause, or since a silence, may have been sent before. The last heartbeat
// that others have of it may be an interval older.
void Absence::lost_coordinator(int64_t now, const Pace &pace) {
    heard(now, pace);
    since_ = now;
    if (now - resumed_at_ < pace.timeout) since_ = paused_at_ - pace.interval;
    if (cut_off_) since_ = std::min(since_, silent_at_ - pace.interval);
    ended_late_ = 0;
}

// The others may have learned of the loss a little earlier.
void Absence::found_ended(int64_t now, const Pace &pace) {
    if (ns(now) >= pace.timeout - pace.interval) ended_late_++;
}

} // namespace dtrain::cluster
