// The rows of a sparse table: a fixed number of bytes for each key; keys are any 64-bit numbers.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are stored one after the other in slabs, in the order in which they were made, and never
// move. The index has segments, so that growing moves a small part of the keys at a time. Look-ups
// come in batches: buckets and rows are prefetched some keys ahead, so that cache misses overlap.
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
    // Numbers of rows to be made, by segment.
    struct Growth {
        uint32_t rows[segments] = {};
        void add(uint64_t key) { rows[segment_of(key)]++; }
        void remove(uint64_t key) { rows[segment_of(key)]--; }
    };
    // row_bytes: at least 1. limit: the maximum of memory(), in bytes.
    explicit RowStore(uint64_t row_bytes, uint64_t limit = UINT64_MAX);

    uint64_t size() const { return rows_ - free_.size(); }
    uint64_t row_bytes() const { return row_bytes_; }
    // The bytes of rows and index; memory that was never touched is not counted.
    uint64_t memory() const;
    uint64_t memory_with(const Growth &growth) const; // memory() after making those rows
    // An upper bound of memory() after making this many rows in any segments.
    uint64_t most_memory_with(uint64_t rows) const;
    void set_limit(uint64_t limit) { limit_ = limit; }
    // Removes all rows, and keeps the memory for new ones.
    void clear();

    // Of so many keys in one call, the cache misses do not overlap.
    static constexpr size_t few = 4;
    // For keys that several calls of find() or obtain() will soon get, a few in each: first their
    // buckets, then, once those have come, their rows.
    void prefetch_buckets(const uint64_t *keys, size_t count) const {
        for (size_t i = 0; i < count; i++) {
            const uint64_t hash = hash_of(keys[i]);
            segment(hash).prefetch(hash);
        }
    }
    void prefetch_rows(const uint64_t *keys, size_t count) const {
        for (size_t i = 0; i < count; i++) {
            const uint64_t hash = hash_of(keys[i]);
            const uint32_t row = segment(hash).find(keys[i], hash);
            if (row != RowIndex::none) prefetch(row);
        }
    }

    // Calls f(i, row) for each key in order; row: a char *, or nullptr if there is no row.
    template <class F> void find(const uint64_t *keys, size_t count, F &&f) const {
        stream(
            keys, count, [&](uint64_t key, uint64_t hash) { return segment(hash).find(key, hash); },
            [&](size_t i, uint32_t row) {
                f(i, row == RowIndex::none ? nullptr : at(row));
                return true;
            });
    }

    // The same, but makes missing rows; make(key, row) must fill all of a new row. Returns the
    // number of keys for which f was called: fewer than `count` if memory or the limit ran out.
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

    bool erase(uint64_t key); // false: there was no row
    // Calls f(key, row) for all rows; f must not change the store.
    template <class F> void for_each(F &&f) const {
        for (const RowIndex &index : index_)
            index.for_each([&](uint64_t key, uint32_t row) { f(key, at(row)); });
    }

    // ---- rows by their numbers, in the order in which they were made ----
    uint32_t made() const { return rows_; }                      // number of rows, with erased ones
    const std::vector<uint32_t> &holes() const { return free_; } // numbers of erased rows
    const char *row(uint32_t number) const { return at(number); }
    // Calls f(i, number) for each key in order; RowIndex::none: it has no row.
    template <class F> void locate(const uint64_t *keys, size_t count, F &&f) const {
        stream(
            keys, count, [&](uint64_t key, uint64_t hash) { return segment(hash).find(key, hash); },
            [&](size_t i, uint32_t row) {
                f(i, row);
                return true;
            });
    }
    // The position of a scan, which can be interrupted while the store changes.
    struct Scan {
        uint32_t segment = 0;
        uint64_t bucket = 0, built = 0; // in that segment; its number of rebuilds
    };
    // Calls f(key, number) for about this many more keys; false: the scan is complete. A complete
    // scan has met each key that existed all the time, some perhaps more than once.
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
    static constexpr uint64_t line = 64, most_lines = 8; // prefetched; the CPU prefetches the rest

    static uint64_t hash_of(uint64_t key) { return mix(key); }
    // The segment uses the low bits of the hash, since the index uses the high bits.
    RowIndex &segment(uint64_t hash) { return index_[hash % segments]; }
    const RowIndex &segment(uint64_t hash) const { return index_[hash % segments]; }

    char *at(uint32_t row) const {
        return slabs_[row >> slab_shift_].at(uint64_t(row & ((1u << slab_shift_) - 1)) *
                                             row_bytes_);
    }
    // Must be inlined: GCC would drop the calls of a function that has no effect.
    [[gnu::always_inline]] void prefetch(uint32_t row) const {
        const char *bytes = at(row);
        if (lines_ == 1) return __builtin_prefetch(bytes);
        // Prefetches to the L2 cache, which handles more misses at once than the L1 cache.
        for (uint64_t l = 0; l < lines_; l++) __builtin_prefetch(bytes + l * line, 0, 2);
    }
    // Prefetches the bucket of each key, calls look_up(key, hash) `ahead` keys later, and
    // use(i, row) another `ahead` keys later, until use() returns false.
    template <class LookUp, class Use>
    void stream(const uint64_t *keys, size_t count, LookUp &&look_up, Use &&use) const {
        uint64_t hashes[ahead];
        uint32_t rows[ahead];
        if (count <= few) { // without the steps in which there is no key
            for (size_t i = 0; i < count; i++) {
                hashes[i] = hash_of(keys[i]);
                segment(hashes[i]).prefetch(hashes[i]);
            }
            for (size_t i = 0; i < count; i++) {
                rows[i] = look_up(keys[i], hashes[i]);
                if (rows[i] != RowIndex::none) prefetch(rows[i]);
            }
            for (size_t i = 0; i < count && use(i, rows[i]); i++) {
            }
            return;
        }
        for (size_t step = 0; step < count + 2 * ahead; step++) {
            const size_t place =
                step % ahead; // for this key, and for those `ahead` and 2 * `ahead` before it
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
    uint32_t rows_ = 0;       // rows made since the last clear()
    uint32_t touched_ = 0;    // the maximum of rows_ so far
    uint64_t index_bytes_ = 0;
    std::vector<uint32_t> free_; // erased rows
    std::vector<Buffer> slabs_;
    IndexMemory index_memory_{segments};
    RowIndex index_[segments];
};

} // namespace dtrain::ps
