// Heartbeats: when to send the next one, and which members have been silent for too long.
// SPDX-License-Identifier: Apache-2.0
//
// Silence counts only while this process itself was running: when a check comes more than one
// interval late, no member counts as silent for that time.
#pragma once
#include "cluster/control/pace.h"

#include <cstdint>
#include <map>
#include <vector>

namespace dtrain::cluster {

class Watch {
  public:
    explicit Watch(const Pace &pace) : pace_(pace) {}

    void set(const Pace &pace) { pace_ = pace; }
    // Starts watching the member. grace: extra time for which it may be silent at first.
    void start(int32_t member, int64_t now, int64_t grace = 0);
    void heard(int32_t member, int64_t now);
    void stop(int32_t member) { heard_.erase(member); }
    void stop_all() { heard_.clear(); }

    struct Silent {
        int32_t member;
        int64_t ns; // length of the silence
    };
    struct Due {
        bool beat = false; // send a heartbeat to all
        std::vector<Silent> silent;
    };
    Due check(int64_t now);
    int64_t next_deadline() const { return heard_.empty() ? INT64_MAX : next_; }
    int64_t own_pause(int64_t now) const; // for how long this process has not checked

  private:
    Pace pace_;
    int64_t next_beat_ = 0, next_ = 0; // next_: when check() may next report something
    std::map<int32_t, int64_t> heard_; // by member: when it was last heard
};

} // namespace dtrain::cluster
