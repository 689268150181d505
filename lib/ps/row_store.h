// The rows of a sparse table: a fixed number of bytes for each of any 64-bit keys.
// SPDX-License-Identifier: Apache-2.0
//
// Rows lie one after the other in slabs, in the order in which they were made, and never move. The
// index is in segments, so that growing moves a small part of the keys at a time. Look-ups go by
// batches: first the buckets of a group of keys are fetched, then their rows, so that the misses
// of a group overlap.
#pragma once
#include "base/hash.h"
#include "ps/row_index.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

class RowStore {
  public:
    // row_bytes: at least 1. limit: of memory(), in bytes.
    explicit RowStore(uint64_t row_bytes, uint64_t limit = UINT64_MAX);

    uint64_t size() const { return rows_ - free_.size(); }
    uint64_t row_bytes() const { return row_bytes_; }
    // Bytes that rows and index take; memory that was never touched is not counted.
    uint64_t memory() const;
    void set_limit(uint64_t limit) { limit_ = limit; }
    // No rows any more; the memory is kept for new ones.
    void clear();

    // f(i, row) for each key in turn; row: a char *, or nullptr when there is none.
    template <class F> void find(const uint64_t *keys, size_t count, F &&f) const {
        uint32_t rows[group];
        by_groups(keys, count, [&](size_t first, size_t n, const uint64_t *hashes) {
            for (size_t i = 0; i < n; i++) {
                rows[i] = segment(hashes[i]).find(keys[first + i], hashes[i]);
                if (rows[i] != RowIndex::none) prefetch(rows[i]);
            }
            for (size_t i = 0; i < n; i++)
                f(first + i, rows[i] == RowIndex::none ? nullptr : at(rows[i]));
            return true;
        });
    }

    // The same; make(key, row) fills what is made for a key without a row, all of it. Returns for
    // how many keys f was called: fewer than `count` when memory or the limit ended it.
    template <class Make, class F>
    size_t obtain(const uint64_t *keys, size_t count, Make &&make, F &&f) {
        uint32_t rows[group];
        size_t done = 0;
        by_groups(keys, count, [&](size_t first, size_t n, const uint64_t *hashes) {
            size_t there = 0;
            for (; there < n; there++) {
                const uint64_t key = keys[first + there];
                rows[there] = segment(hashes[there]).find(key, hashes[there]);
                if (rows[there] == RowIndex::none) {
                    rows[there] = add(key, hashes[there]);
                    if (rows[there] == RowIndex::none) break;
                    make(key, at(rows[there]));
                } else {
                    prefetch(rows[there]);
                }
            }
            for (size_t i = 0; i < there; i++) f(first + i, at(rows[i]));
            done += there;
            return there == n;
        });
        return done;
    }

    bool erase(uint64_t key); // false: there was none
    // f(key, row); it must not change the store.
    template <class F> void for_each(F &&f) const {
        for (const RowIndex &index : index_)
            index.for_each([&](uint64_t key, uint32_t row) { f(key, at(row)); });
    }

  private:
    static constexpr size_t group = 32;
    static constexpr uint32_t segments = 64;
    static constexpr uint64_t line = 64, most_lines = 8; // fetched ahead; the rest the CPU foresees

    static uint64_t hash_of(uint64_t key) { return mix(key); }
    // The index itself takes the high bits.
    RowIndex &segment(uint64_t hash) { return index_[hash % segments]; }
    const RowIndex &segment(uint64_t hash) const { return index_[hash % segments]; }

    char *at(uint32_t row) const {
        return slabs_[row >> slab_shift_].at(uint64_t(row & ((1u << slab_shift_) - 1)) *
                                             row_bytes_);
    }
    void prefetch(uint32_t row) const {
        const char *bytes = at(row);
        for (uint64_t l = 0; l < lines_; l++) __builtin_prefetch(bytes + l * line, 1);
    }
    // f(first, n, hashes) for each group, whose buckets are on their way; until it returns false.
    template <class F> void by_groups(const uint64_t *keys, size_t count, F &&f) const {
        uint64_t hashes[group];
        for (size_t first = 0; first < count; first += group) {
            const size_t n = count - first < group ? count - first : group;
            for (size_t i = 0; i < n; i++) {
                hashes[i] = hash_of(keys[first + i]);
                segment(hashes[i]).prefetch(hashes[i]);
            }
            if (!f(first, n, hashes)) return;
        }
    }
    uint32_t add(uint64_t key, uint64_t hash); // none: no memory, or the limit

    uint64_t row_bytes_;
    uint64_t limit_;
    uint64_t lines_;
    uint32_t slab_shift_ = 0; // a slab has 1 << slab_shift_ rows
    uint32_t rows_ = 0;       // made since the last clear()
    uint32_t touched_ = 0;    // the most there ever were
    uint64_t index_bytes_ = 0;
    std::vector<uint32_t> free_; // erased rows
    std::vector<Buffer> slabs_;
    RowIndex index_[segments];
};

} // namespace dtrain::ps
