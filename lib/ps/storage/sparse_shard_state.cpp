// Pulls of rows, and requests that read or write their state.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/sparse_shard.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {

Reason SparseShard::pull(const Items &items, uint32_t /*worker*/, const Into &out) {
    Reason reason = Reason::none;
    if (transforms())
        reason = transform(items.keys(), items.count(), out.hold);
    else
        out.hold = gather(items.keys(), items.count());
    if (reason != Reason::none) return reason;
    if (out.hold == nullptr) return Reason::no_memory;
    out.numbers = out.hold->at(0);
    return Reason::none;
}

Reason SparseShard::pull_state(uint64_t index, const Items &items, const Into &out) {
    out.hold = gather_state(index, items.keys(), items.count());
    if (out.hold == nullptr) return Reason::no_memory;
    out.numbers = out.hold->at(0);
    return Reason::none;
}

std::shared_ptr<const Buffer> SparseShard::gather_state(uint64_t index, const uint64_t *keys,
                                                        size_t count) {
    const bool steps = index == layout_.slots.size();
    const uint64_t size = steps ? sizeof(uint64_t) : layout_.slots[index].bytes;
    std::shared_ptr<Buffer> numbers = answers_.take(count * size);
    if (numbers == nullptr) return nullptr;
    rows_.find(keys, count, [&](size_t i, const char *row) {
        char *to = numbers->at(i * size);
        std::memset(to, 0, size);
        if (row == nullptr) row = initial_row_.data();
        if (steps) // the low half of a little-endian number
            std::memcpy(to, row + layout_.steps_at, sizeof(uint32_t));
        else
            std::memcpy(to, row + layout_.slots[index].at, size);
    });
    return numbers;
}

Reason SparseShard::set_state(uint64_t index, const uint64_t *keys, size_t count,
                              const void *numbers) {
    Reason reason = claim(keys, count);
    if (reason != Reason::none) return reason;
    const auto *from = static_cast<const char *>(numbers);
    for (size_t i = 0; i < count; i++) {
        if (index < layout_.slots.size()) {
            const RowLayout::Slot &slot = layout_.slots[index];
            std::memcpy(claimed_[i] + slot.at, from + i * slot.bytes, slot.bytes);
            continue;
        }
        uint64_t given;
        std::memcpy(&given, from + i * sizeof given, sizeof given);
        const auto steps = uint32_t(std::min<uint64_t>(given, UINT32_MAX));
        std::memcpy(claimed_[i] + layout_.steps_at, &steps, sizeof steps);
    }
    return Reason::none;
}

} // namespace dtrain::ps
