// A communicator of some ranks, given by a list (a process set).
// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "collectives/communicator.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// What each rank tells of its list.
struct Wish {
    uint64_t hash = 0;
    int32_t count = 0;
    int32_t first[7] = {}; // for the text
};

Wish wish_of(std::span<const int32_t> ranks) {
    Wish wish;
    wish.count = int32_t(ranks.size());
    for (int32_t rank : ranks) wish.hash = mix(wish.hash, uint32_t(rank));
    std::copy_n(ranks.begin(), std::min(ranks.size(), std::size(wish.first)), wish.first);
    return wish;
}

std::string describe(const Wish &wish) {
    std::string text;
    int32_t shown = std::min(wish.count, int32_t(std::size(wish.first)));
    for (int32_t i = 0; i < shown; i++) text += (i ? " " : "") + std::to_string(wish.first[i]);
    return text + (shown < wish.count ? " ... (" + std::to_string(wish.count) + ")" : "");
}

Status check_list(std::span<const int32_t> ranks, int32_t size) {
    std::vector<bool> named(size_t(size), false);
    if (ranks.empty()) return fail(DTRAIN_ERR_INVALID, "subset: no ranks");
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
    const Wish mine = wish_of(ranks);
    std::vector<Wish> all(members_.size());
    Call call = {.kind = Kind::allgather, .send = &mine, .recv = all.data(), .count = sizeof mine};
    if (Status s = run_until(call, deadline_ns); s != DTRAIN_OK) return fail_within(s, "subset");
    if (Status s = check_list(ranks, size()); s != DTRAIN_OK) return s;
    for (size_t r = 1; r < all.size(); r++)
        if (all[r].hash != all[0].hash || all[r].count != all[0].count)
            return fail(DTRAIN_ERR_MISMATCH, "subset: rank 0 names ranks %s, rank %zu %s",
                        describe(all[0]).c_str(), r, describe(all[r]).c_str());
    auto me = std::find(ranks.begin(), ranks.end(), rank());
    return split_until(me == ranks.end() ? -1 : 0, int32_t(me - ranks.begin()), deadline_ns, out);
}

} // namespace dtrain::collectives
