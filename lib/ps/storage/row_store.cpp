// Makes and erases rows, and accounts for their memory.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_store.h"

#include <algorithm>

namespace dtrain::ps {
namespace {

// Virtual memory: the system provides pages on first touch.
constexpr uint64_t slab_bytes = 64 << 20;
constexpr uint32_t most_rows = RowIndex::none;

} // namespace

RowStore::RowStore(uint64_t row_bytes, uint64_t limit)
    : row_bytes_(row_bytes), limit_(limit),
      lines_(std::min((row_bytes + line - 1) / line, most_lines)) {
    while (slab_shift_ < 31 && row_bytes << (slab_shift_ + 1) <= slab_bytes) slab_shift_++;
}

uint64_t RowStore::memory() const {
    return touched_ * row_bytes_ + index_bytes_ + free_.capacity() * sizeof(uint32_t);
}

uint64_t RowStore::memory_with(const Growth &growth) const {
    uint64_t rows = 0, grown = 0;
    for (uint32_t s = 0; s < segments; s++) {
        rows += growth.rows[s];
        grown += index_[s].bytes_with(growth.rows[s]) - index_[s].bytes();
    }
    const uint64_t idle = free_.size() + (touched_ - rows_);
    return memory() + grown + (rows - std::min(rows, idle)) * row_bytes_;
}

uint64_t RowStore::most_memory_with(uint64_t rows) const {
    // An index grows by a quarter plus one bucket, once it has four keys per bucket on average.
    const uint64_t grown = index_bytes_ / 4 + rows * 20 + uint64_t{segments} * 128;
    return memory() + grown + rows * row_bytes_;
}

void RowStore::clear() {
    for (RowIndex &index : index_) index.clear();
    free_.clear();
    rows_ = 0;
}

uint32_t RowStore::add(uint64_t key, uint64_t hash) {
    RowIndex &index = segment(hash);
    const uint64_t growth = index.bytes_with(1) - index.bytes();
    const uint64_t fresh = free_.empty() && rows_ == touched_ ? row_bytes_ : 0;
    if (memory() + growth + fresh > limit_) return RowIndex::none;
    uint32_t row = rows_;
    if (!free_.empty()) {
        row = free_.back();
    } else {
        if (rows_ == most_rows) return RowIndex::none;
        if (rows_ >> slab_shift_ == slabs_.size()) {
            Buffer slab;
            if (!slab.allocate(row_bytes_ << slab_shift_)) return RowIndex::none;
            slabs_.push_back(std::move(slab));
        }
    }
    if (!index.insert(key, hash, row, hash_of, index_memory_)) return RowIndex::none;
    index_bytes_ += growth;
    if (row != rows_)
        free_.pop_back();
    else if (++rows_ > touched_)
        touched_ = rows_;
    return row;
}

bool RowStore::erase(uint64_t key) {
    const uint64_t hash = hash_of(key);
    const uint32_t row = segment(hash).erase(key, hash);
    if (row == RowIndex::none) return false;
    free_.push_back(row);
    return true;
}

} // namespace dtrain::ps
