// The sum (or minimum, or maximum) of the pushes in one clock, with a mark for each pushed element.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/buffer.h"

#include <cstdint>
#include <cstring>

namespace dtrain::ps {

// Elements are counted from the start of the shard.
class Aggregate {
  public:
    // size: bytes of an element.
    static uint64_t bytes_needed(uint64_t size, uint64_t length);

    bool allocate(uint64_t size, uint64_t length); // false: no memory
    bool allocated() const { return !values_.empty(); }
    // Copies g, or calls combine(part, sums, pushed) for parts that were pushed before. The range
    // counts as pushed after mark().
    template <class F> void merge(const Range &range, const void *g, F &&combine) {
        const char *from = static_cast<const char *>(g);
        for (uint64_t at = range.first; at < range.end();) {
            const bool marked = find(at, at + 1, true) == at;
            const Range part = {at, find(at, range.end(), !marked) - at};
            if (!marked) // the memory has values of an earlier clock
                std::memcpy(this->at(at), from, part.count * size_);
            else
                combine(part, this->at(at), from);
            from += part.count * size_;
            at = part.end();
        }
    }
    void mark(const Range &range);
    char *at(uint64_t element) const { return values_.at(element * size_); }
    // Calls f(range, sums) for each block of at most `most` pushed elements, in ascending order; f
    // may change the sums. Nothing counts as pushed afterwards, but the memory keeps the sums until
    // the next push.
    template <class F> void take(F &&f, uint64_t most = block_elements) {
        for (Range block; next_block(block, most); clear(block))
            f(block, values_.at(block.first * size_));
        pushed_ = {0, 0};
    }
    // The same for each row of `row` elements that has pushed elements; its other elements are 0.
    template <class F> void take_rows(uint64_t row, F &&f) {
        for (Range block; next_block(block, block_elements);) {
            Range whole = {block.first / row * row, row};
            complete(whole);
            f(whole, values_.at(whole.first * size_));
            clear(whole);
            block = whole;
        }
        pushed_ = {0, 0};
    }

  private:
    static constexpr uint64_t block_elements = 4096; // fits in the L1 cache while it is applied

    void complete(const Range &range);
    bool next_block(Range &block, uint64_t most); // block: the one before; count 0: the first
    void clear(const Range &block);               // clears its marks
    // The first element from `at` on whose mark is `wanted`, or `end`.
    uint64_t find(uint64_t at, uint64_t end, bool wanted) const;
    uint64_t &word(uint64_t index) const {
        return *reinterpret_cast<uint64_t *>(marks_.at(index * sizeof(uint64_t)));
    }

    Buffer values_, marks_; // marks: one bit per element
    Range pushed_;          // contains all marked elements
    uint64_t size_ = 0;     // bytes of one element
};

} // namespace dtrain::ps
