// The members that have come to a new coordinator, and which side goes on when some cannot come.
// SPDX-License-Identifier: Apache-2.0
//
// It waits up to one heartbeat timeout. After a moment, those that have not come are called at
// their own address: where nobody listens any more, the process is gone. Others may live behind a
// cut link, perhaps with the old coordinator: this side goes on only if it is larger than that one
// could be.
#pragma once
#include "cluster/control/membership.h"
#include "cluster/control/pace.h"

#include <set>

namespace dtrain::cluster {

class Reunion {
  public:
    // clean: the old coordinator left; dead: its process is known to be gone.
    Reunion(const Membership &state, const Pace &pace, bool clean, bool dead, int64_t now);

    void came(int32_t member);
    void went(int32_t member);                 // it is known to be gone
    std::vector<int32_t> to_call(int64_t now); // once: members to call
    bool over(int64_t now) const { return missing_.empty() || now >= until_; }
    int64_t next_deadline() const { return called_ ? until_ : call_at_; }

    const std::set<int32_t> &missing() const { return missing_; }
    bool goes_on() const; // at the end: this side is the larger one
    bool clean() const { return clean_; }

  private:
    std::set<int32_t> missing_, came_;
    int64_t call_at_, until_;
    bool clean_, dead_, called_ = false;
};

} // namespace dtrain::cluster
