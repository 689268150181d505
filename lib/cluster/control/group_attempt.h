// One member's attempt to make a group: its request, and the tag id that it holds meanwhile.
// SPDX-License-Identifier: Apache-2.0
//
// A tag id must be free on all members of a group. Each takes a candidate before it asks, so that
// no other thread can take it: first by a hash that is equal on all members, later from what the
// reply says to be free. Attempts that share members have different hashes, so that they do not
// keep getting in each other's way.
#pragma once
#include "cluster/control/tag_ids.h"

namespace dtrain::cluster {

const char *group_call(wire::GroupKind kind); // the call that makes such groups, for texts

// The number of this member's request that the reply answers; 0: none.
uint32_t answered_serial(const wire::GroupReply &reply, int32_t member);

class GroupAttempt {
  public:
    GroupAttempt(TagIds &tags, wire::GroupRequest request); // holds the first candidate
    ~GroupAttempt() { let_go(); }
    GroupAttempt(const GroupAttempt &) = delete;
    GroupAttempt &operator=(const GroupAttempt &) = delete;

    const wire::GroupRequest &request() const { return request_; }
    void again(const wire::GroupReply &reply); // the next candidate; then ask once more
    // Whether the new group is one that may be made for this request.
    bool fits(const wire::GroupReply &reply) const;
    void keep() { request_.held = no_tag; } // the tag is the caller's from now on

  private:
    void let_go();
    void hold(const TagSet &except);

    TagIds &tags_;
    wire::GroupRequest request_;
};

} // namespace dtrain::cluster
