// Makes communicators through the coordinator, by the ranks that will be in them alone.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"
#include "collectives/communicator/rank_list.h"
#include "collectives/communicator/unmade.h"
#include "engine/attendance.h"

#include <algorithm>

namespace dtrain::collectives {

Status Communicator::shrink(std::unique_ptr<Communicator> &out) {
    const int64_t deadline_ns = deadline(0);
    faults_.shrink(); // so that no rank keeps waiting in the old communicator
    const Status s = form({cluster::GroupKind::shrink, ranks_.uid, ranks_.ids}, deadline_ns, out);
    if (s == DTRAIN_OK) session_->has_come(ranks_.uid);
    return s;
}

Status Communicator::create_group(std::span<const int32_t> ranks, int32_t tag, int64_t timeout_ns,
                                  std::unique_ptr<Communicator> &out) {
    const int64_t deadline_ns = deadline(timeout_ns);
    if (Status s = check_ranks("create_group", ranks, size()); s != DTRAIN_OK) return s;
    if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end())
        return fail(DTRAIN_ERR_INVALID,
                    "create_group: this rank (%d) is not in the list; only ranks of the list may "
                    "call it",
                    rank());
    std::vector<int32_t> members;
    for (int32_t rank : ranks) members.push_back(ranks_.ids[size_t(rank)]);
    return form({cluster::GroupKind::create, ranks_.uid, members, tag}, deadline_ns, out);
}

Status Communicator::form(const cluster::GroupWish &wish, int64_t deadline_ns,
                          std::unique_ptr<Communicator> &out) {
    const uint64_t breaks_before = session_->breaks();
    cluster::NewGroup group;
    {
        const engine::Attendance attendance(session_->agent());
        const int64_t timeout_ns = timeout_until(deadline_ns);
        Status s = session_->job().form_group(wish, session_->tags(), timeout_ns, group);
        if (s != DTRAIN_OK) return s;
    }
    Unmade unmade(*session_, group.uid, group.members);
    session_->hear_of_ended_connections();
    std::vector<uint32_t> members(group.members.begin(), group.members.end());
    const Status s = make(session_, std::move(members), group.uid, group.tag_id, breaks_before,
                          deadline_ns, out);
    if (s == DTRAIN_OK) unmade.made();
    return s;
}

} // namespace dtrain::collectives
