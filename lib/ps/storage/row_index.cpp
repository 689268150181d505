// Inserts, erases and rebuilds; shares memory between indices.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_index.h"

#include <cstring>
#include <utility>

namespace dtrain::ps {

IndexMemory::Part IndexMemory::take(uint64_t bytes) {
    const bool larger = bytes > bytes_;
    Part part;
    if (larger || bytes < bytes_ || taken_ == indices_) {
        part.whole = std::make_shared<Buffer>();
        if (!part.whole->allocate(larger ? indices_ * bytes : bytes)) return part;
        part.start = part.whole->at(0);
    } else {
        part = {newest_, newest_->at(taken_++ * bytes)};
    }
    if (larger) {
        newest_ = part.whole;
        bytes_ = bytes;
        taken_ = 1;
    }
    return part;
}

// The index is at most four fifths full and grows by a quarter, so that little memory is idle.
uint64_t RowIndex::buckets_for(uint64_t size) const {
    uint64_t buckets = buckets_ > 0 ? buckets_ : 1;
    while (size > buckets * (slots - 1)) buckets += buckets / 4 + 1;
    return buckets;
}

void RowIndex::place(uint64_t key, uint64_t hash, uint32_t row) {
    uint64_t b = home(hash);
    while (at(b)->used == slots) b = next(b);
    Bucket &bucket = *at(b);
    bucket.keys[bucket.used] = key;
    bucket.rows[bucket.used] = row;
    if (++bucket.used == slots) bucket.was_full = 1;
}

bool RowIndex::insert(uint64_t key, uint64_t hash, uint32_t row, uint64_t (*hash_of)(uint64_t key),
                      IndexMemory &memory) {
    const uint64_t wanted = buckets_for(size_ + 1);
    // Rebuilds after many erasures, too, so that fewer keys have been inserted since the last
    // rebuild than would fill every bucket once. So every look-up ends at a bucket that was never
    // full.
    if (wanted != buckets_ || erased_ > buckets_ / 2) {
        RowIndex larger;
        larger.memory_ = memory.take(wanted * sizeof(Bucket));
        if (larger.memory_.start == nullptr) return false;
        larger.buckets_ = wanted;
        for_each([&](uint64_t k, uint32_t r) { larger.place(k, hash_of(k), r); });
        memory_ = std::move(larger.memory_);
        buckets_ = wanted;
        erased_ = 0;
        built_++;
    }
    place(key, hash, row);
    size_++;
    return true;
}

uint32_t RowIndex::erase(uint64_t key, uint64_t hash) {
    if (buckets_ == 0) return none;
    for (uint64_t b = home(hash);; b = next(b)) {
        Bucket &bucket = *at(b);
        if (const uint32_t found = bucket.matches(key); found != 0) {
            const int i = std::countr_zero(found);
            const uint32_t last = --bucket.used;
            const uint32_t row = std::exchange(bucket.rows[i], bucket.rows[last]);
            bucket.keys[i] = bucket.keys[last];
            size_--;
            erased_++;
            return row;
        }
        if (!bucket.was_full) return none;
    }
}

void RowIndex::clear() {
    if (size_ + erased_ > 0) std::memset(memory_.start, 0, bytes());
    size_ = erased_ = 0;
}

} // namespace dtrain::ps
