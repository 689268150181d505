// Heartbeats: when to send the next one, and who has been silent for too long.
// SPDX-License-Identifier: Apache-2.0
//
// Silence counts only while this process itself was running: when a check comes more than an
// interval late, nobody is silent for as long.
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
    // From now on it is watched; grace: for so long it may be silent besides.
    void start(int32_t member, int64_t now, int64_t grace = 0);
    void heard(int32_t member, int64_t now);
    void stop(int32_t member) { heard_.erase(member); }
    void stop_all() { heard_.clear(); }

    struct Silent {
        int32_t member;
        int64_t ns; // for how long
    };
    struct Due {
        bool beat = false; // send a heartbeat to all
        std::vector<Silent> silent;
    };
    Due check(int64_t now);
    int64_t next_deadline() const { return heard_.empty() ? INT64_MAX : next_; }
    int64_t own_pause(int64_t now) const; // for how long this process has not looked

  private:
    Pace pace_;
    int64_t next_beat_ = 0, next_ = 0; // next_: when check() may have something to say
    std::map<int32_t, int64_t> heard_; // by member: when last
};

} // namespace dtrain::cluster
