// Whether the other members may have gone on without this process.
// SPDX-License-Identifier: Apache-2.0
//
// They do so once they have heard nothing of it for a heartbeat timeout: while it did not run,
// could reach no coordinator, or was cut off from it. The coordinator of that time tells it, unless
// that one and all others have ended meanwhile. A member that is found to have ended so late may
// have gone on without it. There is one of it in a process, for its member and its coordinator.
#pragma once
#include "cluster/control/pace.h"

#include <cstddef>
#include <cstdint>

namespace dtrain::cluster {

class Absence {
  public:
    // Each time that the process runs. counted: others expect to hear of it.
    void ran(int64_t now, const Pace &pace, bool counted);
    int64_t next_run(const Pace &pace) const { return ran_at_ + pace.interval; }

    // The coordinator has answered what this process asked at `asked`, so it has counted on it
    // since then.
    void answered(int64_t asked, int64_t now, const Pace &pace);
    // Any later word of it.
    void heard(int64_t now, const Pace &pace);
    void lost_coordinator(int64_t now, const Pace &pace);
    // Nobody has said that a member has ended: this process has found it so.
    void found_ended(int64_t now, const Pace &pace);

    // The length of a pause that has ended not long ago; 0: there was none.
    int64_t recent_pause(int64_t now, const Pace &pace) const {
        return now - resumed_at_ < 2 * pace.timeout ? resumed_at_ - paused_at_ : 0;
    }
    // Whether the others may have given this process up in it.
    bool was_long(int64_t now, const Pace &pace) const {
        return recent_pause(now, pace) >= pace.timeout - pace.interval;
    }

    size_t ended_late() const { return ended_late_; }
    int64_t ns(int64_t now) const { return now - since_; } // its length

  private:
    int64_t ran_at_ = 0;
    int64_t paused_at_ = 0, resumed_at_ = INT64_MIN / 2; // the last time that it did not run
    // The last silence of the coordinator; cut_off_: what came then may have come all at once, long
    // after it was sent.
    int64_t heard_at_ = 0, silent_at_ = 0, heard_again_at_ = 0;
    bool cut_off_ = false;
    int64_t since_ = INT64_MAX; // when it was last sure to be counted on
    size_t ended_late_ = 0;
};

} // namespace dtrain::cluster
