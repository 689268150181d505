// Checks whether new rows fit in the limit, and keeps room for pushes of several requests.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/sparse_shard.h"

#include <algorithm>

namespace dtrain::ps {

void SparseShard::make_sum(uint32_t sum) {
    while (sum >= sums_.size()) sums_.emplace_back(sum_bytes_ + pushers_.bytes());
    if (kept_sums_.size() < sums_.size()) kept_sums_.resize(sums_.size());
}

const RowStore::Growth &SparseShard::growth_with(const RowStore &store, const KeptRows &kept,
                                                 const uint64_t *keys, size_t count) {
    missing_.clear();
    store.find(keys, count, [&](size_t i, const char *row) {
        if (row == nullptr && !kept.keeps(keys[i])) missing_.push_back(keys[i]);
    });
    std::sort(missing_.begin(), missing_.end());
    missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
    growth_ = kept.growth();
    for (const uint64_t key : missing_) growth_.add(key);
    return growth_;
}

bool SparseShard::has_room(const uint64_t *keys, size_t count, const uint32_t *sum) {
    uint64_t most = memory();
    auto add_most = [&](const RowStore &store) {
        most += store.most_memory_with(count) - store.memory();
    };
    add_most(rows_);
    if (sum != nullptr) add_most(sums_[*sum]);
    if (!kept_rows_.any() && most <= limit_) return true; // far from the limit
    uint64_t needed = rows_.memory_with(growth_with(rows_, kept_rows_, keys, count));
    for (uint32_t s = 0; s < sums_.size(); s++)
        needed += sums_[s].memory_with(sum != nullptr && s == *sum
                                           ? growth_with(sums_[s], kept_sums_[s], keys, count)
                                           : kept_sums_[s].growth());
    // Above a lowered limit, existing and kept rows stay, and memory of erased rows can be reused.
    return needed <= std::max(limit_, memory() + kept_bytes());
}

std::array<uint64_t, 2> SparseShard::limits() const {
    const uint64_t used = memory();
    return {used, limit_ - std::min(used, limit_)};
}

void SparseShard::begin_keeping(KeptRoom &room) {
    kept_rows_.begin();
    if (!room.sum) return;
    make_sum(*room.sum);
    kept_sums_[*room.sum].begin();
}

Reason SparseShard::keep(KeptRoom &room, const uint64_t *keys, size_t count) {
    const uint32_t *sum = room.sum ? &*room.sum : nullptr;
    if (limit_ != UINT64_MAX && !has_room(keys, count, sum)) return no_room();
    const bool kept =
        kept_rows_.keep(rows_, keys, count, room.rows) &&
        (sum == nullptr || kept_sums_[*sum].keep(sums_[*sum], keys, count, room.sums));
    return kept ? Reason::none : Reason::no_memory;
}

void SparseShard::end_keeping(const KeptRoom &room) {
    kept_rows_.end(rows_, room.rows);
    if (room.sum) kept_sums_[*room.sum].end(sums_[*room.sum], room.sums);
}

uint64_t SparseShard::kept_bytes() const {
    if (!kept_rows_.any()) return 0;
    uint64_t bytes = rows_.memory_with(kept_rows_.growth());
    for (size_t s = 0; s < sums_.size(); s++) bytes += sums_[s].memory_with(kept_sums_[s].growth());
    return bytes - memory();
}

void SparseShard::recount_sums() {
    if (!kept_rows_.any()) return;
    for (size_t s = 0; s < sums_.size(); s++)
        if (kept_sums_[s].any()) kept_sums_[s].recount(sums_[s]);
}

} // namespace dtrain::ps
