// The rows of a sparse table: a fixed number of bytes for each of any 64-bit keys.
// SPDX-License-Identifier: Apache-2.0
//
// Rows lie one after the other in slabs, in the order in which they were made, and never move. The
// index is in segments, so that growing moves a small part of the keys at a time. Look-ups come in
// batches: buckets are asked for some keys ahead, and rows likewise, so that the misses overlap.
#pragma once
#include "base/hash.h"
#include "ps/storage/row_index.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

class RowStore {
  public:
    static constexpr uint32_t segments = 64; // of the index
    static uint32_t segment_of(uint64_t key) { return hash_of(key) % segments; }
    // Rows to come, by segment.
    struct Growth {
        uint32_t rows[segments] = {};
        void add(uint64_t key) { rows[segment_of(key)]++; }
        void remove(uint64_t key) { rows[segment_of(key)]--; }
    };
    // row_bytes: at least 1. limit: of memory(), in bytes.
    explicit RowStore(uint64_t row_bytes, uint64_t limit = UINT64_MAX);

    uint64_t size() const { return rows_ - free_.size(); }
    uint64_t row_bytes() const { return row_bytes_; }
    // Bytes that rows and index take; memory that was never touched is not counted.
    uint64_t memory() const;
    uint64_t memory_with(const Growth &growth) const; // once those rows are made
    // No less than what so many rows more make of memory(), wherever they fall.
    uint64_t most_memory_with(uint64_t rows) const;
    void set_limit(uint64_t limit) { limit_ = limit; }
    // No rows any more; the memory is kept for new ones.
    void clear();

    // f(i, row) for each key in turn; row: a char *, or nullptr when there is none.
    template <class F> void find(const uint64_t *keys, size_t count, F &&f) const {
        stream(
            keys, count, [&](uint64_t key, uint64_t hash) { return segment(hash).find(key, hash); },
            [&](size_t i, uint32_t row) {
                f(i, row == RowIndex::none ? nullptr : at(row));
                return true;
            });
    }

    // The same; make(key, row) fills what is made for a key without a row, all of it. Returns for
    // how many keys f was called: fewer than `count` when memory or the limit ended it.
    template <class Make, class F>
    size_t obtain(const uint64_t *keys, size_t count, Make &&make, F &&f) {
        size_t done = 0;
        bool full = false;
        stream(
            keys, count,
            [&](uint64_t key, uint64_t hash) {
                uint32_t row = segment(hash).find(key, hash);
                if (row != RowIndex::none || full) return row;
                row = add(key, hash);
                full = row == RowIndex::none;
                if (!full) make(key, at(row));
                return row;
            },
            [&](size_t i, uint32_t row) {
                if (row == RowIndex::none) return false;
                f(i, at(row));
                done++;
                return true;
            });
        return done;
    }

    bool erase(uint64_t key); // false: there was none
    // f(key, row); it must not change the store.
    template <class F> void for_each(F &&f) const {
        for (const RowIndex &index : index_)
            index.for_each([&](uint64_t key, uint32_t row) { f(key, at(row)); });
    }

    // ---- rows by their numbers, which are in the order in which they were made ----
    uint32_t made() const { return rows_; }                      // also those that were erased,
    const std::vector<uint32_t> &holes() const { return free_; } // which are these
    const char *row(uint32_t number) const { return at(number); }
    // f(i, number) for each key in turn; RowIndex::none: it has no row.
    template <class F> void locate(const uint64_t *keys, size_t count, F &&f) const {
        stream(
            keys, count, [&](uint64_t key, uint64_t hash) { return segment(hash).find(key, hash); },
            [&](size_t i, uint32_t row) {
                f(i, row);
                return true;
            });
    }
    // How far a walk has come that may stop while the store changes.
    struct Scan {
        uint32_t segment = 0;
        uint64_t bucket = 0, built = 0; // of that segment, as it was built
    };
    // f(key, number) for about so many keys more; false: that was the last. Has met by then each
    // key that was there all the time, some perhaps again.
    template <class F> bool scan(Scan &scan, uint64_t keys, F &&f) const {
        for (uint64_t met = 0; scan.segment < segments; scan = {scan.segment + 1}) {
            const RowIndex &index = index_[scan.segment];
            if (scan.built != index.built()) scan = {scan.segment, 0, index.built()};
            for (; scan.bucket < index.buckets(); scan.bucket++, met++) {
                if (met >= keys) return true;
                index.for_each_in(scan.bucket, [&](uint64_t key, uint32_t row) {
                    f(key, row);
                    met++;
                });
            }
        }
        return false;
    }

  private:
    static constexpr size_t ahead = 32;
    static constexpr uint64_t line = 64, most_lines = 8; // fetched ahead; the rest the CPU foresees

    static uint64_t hash_of(uint64_t key) { return mix(key); }
    // The index itself takes the high bits.
    RowIndex &segment(uint64_t hash) { return index_[hash % segments]; }
    const RowIndex &segment(uint64_t hash) const { return index_[hash % segments]; }

    char *at(uint32_t row) const {
        return slabs_[row >> slab_shift_].at(uint64_t(row & ((1u << slab_shift_) - 1)) *
                                             row_bytes_);
    }
    // Inline, or GCC takes it for a function without effect and drops the calls.
    [[gnu::always_inline]] void prefetch(uint32_t row) const {
        const char *bytes = at(row);
        if (lines_ == 1) return __builtin_prefetch(bytes);
        // To the second cache, which waits for more lines at once than the first does.
        for (uint64_t l = 0; l < lines_; l++) __builtin_prefetch(bytes + l * line, 0, 2);
    }
    // look_up(key, hash) for each key, `ahead` after its bucket has been asked for, then, as much
    // later, use(i, row) until that returns false.
    template <class LookUp, class Use>
    void stream(const uint64_t *keys, size_t count, LookUp &&look_up, Use &&use) const {
        uint64_t hashes[ahead];
        uint32_t rows[ahead];
        for (size_t step = 0; step < count + 2 * ahead; step++) {
            const size_t place =
                step % ahead; // of this key, and of those 1 and 2 times `ahead` before
            if (step >= 2 * ahead && !use(step - 2 * ahead, rows[place])) return;
            if (const size_t i = step - ahead; step >= ahead && i < count) {
                rows[place] = look_up(keys[i], hashes[place]);
                if (rows[place] != RowIndex::none) prefetch(rows[place]);
            }
            if (step >= count) continue;
            hashes[place] = hash_of(keys[step]);
            segment(hashes[place]).prefetch(hashes[place]);
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
    IndexMemory index_memory_{segments};
    RowIndex index_[segments];
};

} // namespace dtrain::ps
