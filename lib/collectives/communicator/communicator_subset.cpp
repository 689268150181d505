// Makes a communicator from a list of ranks (a process set).
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/agreement.h"
#include "collectives/communicator/rank_list.h"

#include <algorithm>

namespace dtrain::collectives {
Status Communicator::subset(std::span<const int32_t> ranks, std::unique_ptr<Communicator> &out) {
    const int64_t deadline_ns = deadline(0);
    Agreement agreement(cluster::CallKind::subset);
    agreement.check(check_ranks("subset", ranks, size())).add("size", uint64_t(ranks.size()));
    for (size_t i = 0; i < ranks.size(); i++)
        agreement.add("at " + std::to_string(i), "rank " + std::to_string(ranks[i]));
    if (Status s = agreement.reach(*this, deadline_ns); s != DTRAIN_OK) return s;
    auto me = std::find(ranks.begin(), ranks.end(), rank());
    return split_until(me == ranks.end() ? -1 : 0, int32_t(me - ranks.begin()), deadline_ns, out);
}

} // namespace dtrain::collectives
