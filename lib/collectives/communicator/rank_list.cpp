// Checks lists of ranks.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/rank_list.h"

#include <vector>

namespace dtrain::collectives {

Status check_ranks(const char *call, std::span<const int32_t> ranks, int32_t size) {
    std::vector<bool> named(size_t(size), false);
    if (ranks.empty()) return fail(DTRAIN_ERR_INVALID, "%s: no ranks are given", call);
    for (int32_t rank : ranks) {
        if (rank < 0 || rank >= size)
            return fail(DTRAIN_ERR_INVALID, "%s: rank %d is not in this communicator (0 to %d)",
                        call, rank, size - 1);
        if (named[size_t(rank)])
            return fail(DTRAIN_ERR_INVALID, "%s: rank %d is named twice", call, rank);
        named[size_t(rank)] = true;
    }
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
