// Maps keys to row numbers: a hash table of 64-byte buckets with linear probing.
// SPDX-License-Identifier: Apache-2.0
//
// A bucket is a cache line with five keys and the numbers of their rows, so that a look-up usually
// misses the cache once. A bucket that was ever full has a mark, and look-ups continue in the next
// one.
#pragma once
#include "ps/table/buffer.h"

#include <bit>
#include <cstdint>
#include <memory>

namespace dtrain::ps {

// Memory for indices that grow at about the same time, since keys spread evenly over them. For each
// size there is one piece for all indices, large enough for huge pages. It is freed when no index
// uses it any more.
class IndexMemory {
  public:
    struct Part {
        std::shared_ptr<Buffer> whole;
        char *start = nullptr; // nullptr: no memory
    };
    explicit IndexMemory(uint32_t indices) : indices_(indices) {}
    Part take(uint64_t bytes); // zeroed, aligned to 64 bytes

  private:
    uint32_t indices_;
    std::shared_ptr<Buffer> newest_;
    uint64_t bytes_ = 0; // bytes of each part of the newest piece
    uint32_t taken_ = 0; // number of its parts in use
};

class RowIndex {
  public:
    static constexpr uint32_t none = UINT32_MAX;

    uint64_t size() const { return size_; }
    uint64_t bytes() const { return buckets_ * sizeof(Bucket); }
    // The bytes after adding this many keys: more than bytes() if the index must grow.
    uint64_t bytes_with(uint64_t more) const {
        return more == 0 ? bytes() : buckets_for(size_ + more) * sizeof(Bucket);
    }

    // hash: the key's hash, always by the same function, with all 64 bits well mixed.
    // Inlined always: gcc takes a function that only prefetches for one without effect, and drops
    // the call.
    [[gnu::always_inline]] void prefetch(uint64_t hash) const {
        if (buckets_ > 0) __builtin_prefetch(at(home(hash)));
    }
    uint32_t find(uint64_t key, uint64_t hash) const { // none: the key is not in the index
        if (buckets_ == 0) return none;
        for (uint64_t b = home(hash);; b = next(b)) {
            const Bucket &bucket = *at(b);
            if (const uint32_t found = bucket.matches(key); found != 0)
                return bucket.rows[std::countr_zero(found)];
            if (!bucket.was_full) return none;
        }
    }
    // The key must not be in the index. False: no memory to grow, and nothing has changed.
    bool insert(uint64_t key, uint64_t hash, uint32_t row, uint64_t (*hash_of)(uint64_t key),
                IndexMemory &memory);
    uint32_t erase(uint64_t key, uint64_t hash); // returns its row, or none
    void clear();                                // keeps the memory

    // Calls f(key, row) in no particular order; f must not change the index.
    template <class F> void for_each(F &&f) const {
        for (uint64_t b = 0; b < buckets_; b++) for_each_in(b, f);
    }
    // The same for one bucket. A key stays in its bucket until the index is rebuilt.
    template <class F> void for_each_in(uint64_t bucket, F &&f) const {
        for (uint32_t i = 0; i < at(bucket)->used; i++) f(at(bucket)->keys[i], at(bucket)->rows[i]);
    }
    uint64_t buckets() const { return buckets_; }
    uint64_t built() const { return built_; } // number of rebuilds

  private:
    static constexpr uint32_t slots = 5;
    struct alignas(64) Bucket { // all zero: empty
        uint64_t keys[slots];
        uint32_t rows[slots];
        uint16_t used, was_full;

        // A bit for each place with this key. Without branches, since they would be unpredictable.
        uint32_t matches(uint64_t key) const {
            uint32_t bits = 0;
            for (uint32_t i = 0; i < slots; i++) bits |= uint32_t(keys[i] == key) << i;
            return bits & ((1u << used) - 1);
        }
    };
    static_assert(sizeof(Bucket) == 64);

    Bucket *at(uint64_t bucket) const { return reinterpret_cast<Bucket *>(memory_.start) + bucket; }
    uint64_t home(uint64_t hash) const { // Lemire: Fast random integer generation, 2019
        return uint64_t((unsigned __int128)(hash)*buckets_ >> 64);
    }
    uint64_t next(uint64_t bucket) const { return bucket + 1 == buckets_ ? 0 : bucket + 1; }
    uint64_t buckets_for(uint64_t size) const;
    void place(uint64_t key, uint64_t hash, uint32_t row);

    IndexMemory::Part memory_;
    uint64_t buckets_ = 0, size_ = 0;
    uint64_t erased_ = 0; // keys erased since the last rebuild
    uint64_t built_ = 0;
};

} // namespace dtrain::ps
