// The members of a communicator, and how the job and its messages know it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dtrain::collectives {

struct Membership {
    // self: the member that this process is.
    Membership(std::vector<uint32_t> the_members, uint32_t self, uint64_t the_uid, uint32_t the_tag)
        : members(std::move(the_members)), ids(members.begin(), members.end()),
          rank(uint32_t(std::find(members.begin(), members.end(), self) - members.begin())),
          uid(the_uid), tag_id(the_tag) {}

    int32_t size() const { return int32_t(members.size()); }
    // -1: the member is not in it.
    int32_t rank_of(uint32_t member) const {
        auto at = std::find(members.begin(), members.end(), member);
        return at == members.end() ? -1 : int32_t(at - members.begin());
    }

    const std::vector<uint32_t> members; // rank -> member
    const std::vector<int32_t> ids;      // the same as the job's identifiers
    const uint32_t rank;                 // of this process
    const uint64_t uid;                  // in the job
    const uint32_t tag_id;               // in the tags of its messages
};

} // namespace dtrain::collectives
