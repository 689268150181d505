// The coordinator's memory of what each rank called last, to find ranks that call different things.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtrain::cluster {

class CallBook {
  public:
    struct Behind {
        int32_t member; // whom to tell: it stalls in a later call
        int32_t rank;   // whose last call ...
        uint64_t seq;   // ... was this one
    };
    struct Outcome {
        std::string mismatch; // both sides in words; "": no difference is known
        uint64_t differs = 0; // the number of that call
        // Members whose calls would help. When a whole group stalls, everybody reports: then each
        // is asked once, and again only for one that stalls on (it may have had no answer yet).
        std::vector<int32_t> wanted;
        std::vector<Behind> behind;
        bool stuck = false; // nothing of the group moves on any member
    };
    // `member` must be in report.members.
    Outcome report(int32_t member, const wire::Calls &report);
    void forget(uint64_t group) { groups_.erase(group); }

  private:
    struct Entry {
        bool stalled = false;
        bool asked = false; // and has not reported since
        std::vector<wire::CallRecord> calls;
        uint64_t last() const { return calls.empty() ? 0 : calls.back().seq; }
    };
    struct Group {
        uint64_t used = 0;                // when, by turn_
        std::map<int32_t, Entry> entries; // by rank in the group
        std::set<int32_t> stuck;          // ranks that have said so since ...
        bool all_were_stuck = false;      // ... all had
    };
    static constexpr size_t max_groups = 1024; // then the one not heard of for longest goes

    Group &group_of(uint64_t group);
    static bool nothing_moves(Group &group, int32_t rank, const wire::Calls &report);

    std::map<uint64_t, Group> groups_;
    uint64_t turn_ = 0;
};

} // namespace dtrain::cluster
