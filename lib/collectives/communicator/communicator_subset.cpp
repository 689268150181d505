// Makes a communicator from a list of ranks (a process set).
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/agreement.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

Status check_list(std::span<const int32_t> ranks, int32_t size) {
    std::vector<bool> named(size_t(size), false);
    if (ranks.empty()) return fail(DTRAIN_ERR_INVALID, "subset: no ranks are given");
    for (int32_t rank : ranks) {
        if (rank < 0 || rank >= size)
            return fail(DTRAIN_ERR_INVALID, "subset: rank %d is not in this communicator (0 to %d)",
                        rank, size - 1);
        if (named[size_t(rank)])
            return fail(DTRAIN_ERR_INVALID, "subset: rank %d is named twice", rank);
        named[size_t(rank)] = true;
    }
    return DTRAIN_OK;
}

} // namespace

Status Communicator::subset(std::span<const int32_t> ranks, std::unique_ptr<Communicator> &out) {
    const int64_t deadline_ns = deadline(0);
    Agreement agreement(cluster::CallKind::subset);
    agreement.check(check_list(ranks, size())).add("size", uint64_t(ranks.size()));
    for (size_t i = 0; i < ranks.size(); i++)
        agreement.add("at " + std::to_string(i), "rank " + std::to_string(ranks[i]));
    if (Status s = agreement.reach(*this, deadline_ns); s != DTRAIN_OK) return s;
    auto me = std::find(ranks.begin(), ranks.end(), rank());
    return split_until(me == ranks.end() ? -1 : 0, int32_t(me - ranks.begin()), deadline_ns, out);
}

} // namespace dtrain::collectives
