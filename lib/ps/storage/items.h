// The elements or rows that a request is about.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"

#include <cstdint>

namespace dtrain::ps {

// A range of a dense table's elements, or an array of a sparse table's keys.
class Items {
  public:
    static Items range(uint64_t first, uint64_t count) { return {first, count, nullptr, 1}; }
    static Items rows(const uint64_t *keys, uint64_t count, uint64_t dim) {
        return {0, count, keys, dim};
    }

    Range range() const { return {first_, count_}; }
    const uint64_t *keys() const { return keys_; }
    uint64_t count() const { return count_; }           // of elements, or of rows
    uint64_t elements() const { return count_ * dim_; } // also those of the rows
    // The elements that lie together: all of a range, or those of a row.
    uint64_t run() const { return keys_ != nullptr ? dim_ : count_; }
    // The element, or the key of the row, to which this one of elements() belongs.
    uint64_t at(uint64_t element) const {
        return keys_ != nullptr ? keys_[element / dim_] : first_ + element;
    }

  private:
    Items(uint64_t first, uint64_t count, const uint64_t *keys, uint64_t dim)
        : first_(first), count_(count), keys_(keys), dim_(dim) {}

    uint64_t first_, count_;
    const uint64_t *keys_;
    uint64_t dim_;
};

} // namespace dtrain::ps
