// The members that have come to a new coordinator, and which side goes on if some cannot come.
// SPDX-License-Identifier: Apache-2.0
//
// The coordinator waits up to one heartbeat timeout. After a moment, it calls the missing members
// at their addresses: if no process listens there any more, the member is gone. Others may live
// behind a broken link, perhaps with the old coordinator: this side goes on only if it is larger
// than that one can be. Where the old coordinator fell silent, a process that has ended since may
// have gone on with it until then, and counts as one of that side. So does one that is found to
// have ended after this process was absent for so long that others may have gone on without it.
#pragma once
#include "cluster/control/absence.h"
#include "cluster/control/membership.h"
#include "cluster/control/pace.h"

#include <set>

namespace dtrain::cluster {

class Failover {
  public:
    // clean: the old coordinator left. dead: its process is known to have ended.
    Failover(const Membership &state, const Pace &pace, bool clean, bool dead, Absence &absence,
             int64_t now);

    void came(int32_t member);
    void went(int32_t member); // the member is known to be gone
    // The same, and no process listens there any more. moved: the next generation has been agreed.
    void ended(int32_t member, int64_t now, bool moved);
    std::vector<int32_t> to_call(int64_t now); // returns the members to call, once
    bool over(int64_t now) const { return missing_.empty() || now >= until_; }
    int64_t next_deadline() const { return called_ ? until_ : call_at_; }

    const std::set<int32_t> &missing() const { return missing_; }
    bool goes_on() const; // at the end: whether this side is the larger one
    bool clean() const { return clean_; }
    size_t others() const;                  // members of the other side, if there is one
    std::string absence(int64_t now) const; // "" or how long this process was absent

  private:
    const Pace pace_;
    Absence &absence_;
    std::set<int32_t> missing_, came_;
    size_t ended_ = 0;
    int64_t call_at_, until_;
    bool clean_, silent_, called_ = false; // the old coordinator left; may live
};

} // namespace dtrain::cluster
