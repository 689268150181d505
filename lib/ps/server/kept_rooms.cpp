// Keeps room for a worker's pushes and ends it.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/kept_rooms.h"

namespace dtrain::ps {

Reason KeptRooms::keep(SparseShard &rows, uint64_t push, std::optional<uint32_t> sum,
                       const uint64_t *keys, size_t count) {
    auto found = rooms_.find(push);
    if (found == rooms_.end()) {
        if (rooms_.size() >= most_kept) return Reason::window;
        found = rooms_.try_emplace(push).first;
        found->second.sum = sum;
        rows.begin_keeping(found->second);
    }
    return rows.keep(found->second, keys, count);
}

void KeptRooms::end(SparseShard *rows, uint64_t push) {
    const auto found = rooms_.find(push);
    if (found == rooms_.end()) return;
    if (rows != nullptr) rows->end_keeping(found->second);
    rooms_.erase(found);
}

void KeptRooms::end_all(SparseShard *rows) {
    for (const auto &[push, room] : rooms_)
        if (rows != nullptr) rows->end_keeping(room);
    rooms_.clear();
}

} // namespace dtrain::ps
