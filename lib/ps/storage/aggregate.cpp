// Maintains and searches the marks of pushed elements.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/aggregate.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dtrain::ps {
namespace {

uint64_t mark_bytes(uint64_t length) { return (length / 64 + 1) * sizeof(uint64_t); }

// A mask of the bits in [at, end) within the word that covers `at`.
uint64_t mask(uint64_t at, uint64_t end) {
    uint64_t bits = std::min(end - at, 64 - at % 64);
    return (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << at % 64;
}

} // namespace

uint64_t Aggregate::bytes_needed(uint64_t size, uint64_t length) {
    return length * size + mark_bytes(length);
}

bool Aggregate::allocate(uint64_t size, uint64_t length) {
    size_ = size;
    if (!marks_.allocate(mark_bytes(length))) return false;
    return values_.allocate(length * size_);
}

void Aggregate::mark(const Range &range) {
    for (uint64_t at = range.first; at < range.end(); at += 64 - at % 64)
        word(at / 64) |= mask(at, range.end());
    uint64_t first = pushed_.count == 0 ? range.first : std::min(pushed_.first, range.first);
    pushed_ = {first, std::max(pushed_.end(), range.end()) - first};
}

uint64_t Aggregate::find(uint64_t at, uint64_t end, bool wanted) const {
    while (at < end) {
        uint64_t bits = (wanted ? word(at / 64) : ~word(at / 64)) & mask(at, end);
        if (bits != 0) return at / 64 * 64 + static_cast<uint64_t>(std::countr_zero(bits));
        at += 64 - at % 64;
    }
    return end;
}

bool Aggregate::next_block(Range &block, uint64_t most) {
    uint64_t from = block.count == 0 ? pushed_.first : block.end();
    uint64_t first = find(from, pushed_.end(), true);
    uint64_t end = find(first, std::min(pushed_.end(), first + most), false);
    block = {first, end - first};
    return block.count > 0;
}

void Aggregate::complete(const Range &range) {
    for (uint64_t at = range.first; at < range.end();) {
        uint64_t first = find(at, range.end(), false);
        at = find(first, range.end(), true);
        std::memset(values_.at(first * size_), 0, (at - first) * size_);
    }
}

void Aggregate::clear(const Range &block) {
    for (uint64_t at = block.first; at < block.end(); at += 64 - at % 64)
        word(at / 64) &= ~mask(at, block.end());
}

} // namespace dtrain::ps
