// The coordinator's record of each rank's last calls, to find ranks that make different calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtrain::cluster {

class CallLog {
  public:
    struct Behind {
        int32_t member; // the member to tell: it stalls in a later call
        int32_t rank;   // the rank whose last call ...
        uint64_t seq;   // ... was this one
    };
    struct Outcome {
        std::string mismatch; // both sides in words; "": no difference is known
        uint64_t differs = 0; // number of the call that differs
        // Members whose calls are needed for the comparison. When a whole group stalls, every
        // member reports; then each is asked once, and again only for a member that stalls on
        // (which may have had no answer yet).
        std::vector<int32_t> wanted;
        std::vector<Behind> behind;
        bool stuck = false; // nothing in the group moves on any member
    };
    // `member` must be in report.members.
    Outcome report(int32_t member, const wire::Calls &report);
    void forget(uint64_t group) { groups_.erase(group); }

  private:
    struct Entry {
        bool stalled = false;
        bool asked = false; // asked for its calls, and has not reported since
        std::vector<wire::CallRecord> calls;
        uint64_t last() const { return calls.empty() ? 0 : calls.back().seq; }
    };
    struct Group {
        uint64_t used = 0;                // value of turn_ at the last use
        std::map<int32_t, Entry> entries; // by rank in the group
        std::set<int32_t> stuck;          // ranks that reported being stuck since ...
        bool all_were_stuck = false;      // ... all had reported it
    };
    // Above this, the group unused for longest is forgotten.
    static constexpr size_t max_groups = 1024;

    Group &group_of(uint64_t group);
    static bool nothing_moves(Group &group, int32_t rank, const wire::Calls &report);

    std::map<uint64_t, Group> groups_;
    uint64_t turn_ = 0;
};

} // namespace dtrain::cluster
