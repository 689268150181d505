// The values of a dense shard as they are kept: of the table's type, or of its storage_dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/buffer.h"
#include "ps/table/narrow.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>

namespace dtrain::ps {

// Elements are counted from the start of the shard. Blocks of int8 begin anew with every row of the
// table, or every 128 elements where it has none.
class DenseValues {
  public:
    DenseValues(const TableParams &params, uint64_t count);
    uint64_t bytes() const { return count_ * size_ + scale_count(count_) * sizeof(float); }
    bool allocate(Buffer::Pages pages = Buffer::Pages::huge); // zeroed; false: no memory
    // What write() of a range may change: of the elements, and of the scales.
    Range changed(const Range &range) const;
    Range changed_scales(const Range &range) const;

    // As they lie in memory, which is a row (narrow.h) of the stored dtype but for int8.
    char *at(uint64_t element) const { return memory->at(element * size_); }
    uint64_t stored_size() const { return size_; } // of an element, without its share of a scale
    bool narrow() const { return narrow_; }        // the following are for this
    void read(const Range &range, float *to) const;
    // Whether a range of int8 is, as a row (narrow.h), what is stored: its blocks are the stored
    // ones, the last of which it may cut. Then copies it.
    bool copy_row(const Range &range, char *to) const;
    // Of an int8 block of which the range has a part, the other values stay as they are unless its
    // scale must grow; it shrinks when all of the block is written.
    void write(const Range &range, const float *from, const Rounding &rounding);

    // For int8: elements of a row, of which the last may have fewer, and the scales of each.
    uint64_t row() const { return row_; }
    uint64_t scales_of_row() const { return scales_of_row_; }

    std::shared_ptr<Buffer> memory, scales; // scales: of int8, else none

  private:
    uint64_t scale_count(uint64_t elements) const;
    uint64_t scale_of(uint64_t element) const {
        return element / row_ * scales_of_row_ + element % row_ / block_values;
    }
    // f(block, its scale's number) for the blocks that have a part of the range.
    template <class F> void for_each_block(const Range &range, F &&f) const;
    void write_part(const Range &part, const Range &block, char *scale, const float *from,
                    const Rounding &rounding);

    uint64_t count_, size_, row_, scales_of_row_;
    uint32_t dtype_;
    bool narrow_;
};

} // namespace dtrain::ps
