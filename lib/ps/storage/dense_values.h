// The stored values of a dense shard, in the table's dtype or its storage_dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/buffer.h"
#include "ps/table/narrow.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>

namespace dtrain::ps {

// Elements are counted from the start of the shard. Blocks of int8 start with every row of the
// table, or every 128 elements if it has no rows.
class DenseValues {
  public:
    DenseValues(const TableParams &params, uint64_t count);
    uint64_t bytes() const { return count_ * size_ + scale_count(count_) * sizeof(float); }
    bool allocate(Buffer::Pages pages = Buffer::Pages::huge); // zeroed; false: no memory
    // The elements and the scales that write() of a range may change.
    Range changed(const Range &range) const;
    Range changed_scales(const Range &range) const;

    // The stored bytes. They are a row (narrow.h) of the stored dtype, except for int8.
    char *at(uint64_t element) const { return memory->at(element * size_); }
    uint64_t stored_size() const { return size_; } // bytes of an element without its scale
    bool narrow() const { return narrow_; }        // if true, use the following functions
    void read(const Range &range, float *to) const;
    // If the blocks of an int8 range are the stored ones (it may cut the last one), copies the
    // range as a row (narrow.h). False: they are not.
    bool copy_row(const Range &range, char *to) const;
    // If the range has a part of an int8 block, the other values of the block stay unchanged unless
    // its scale must grow. The scale shrinks only when the whole block is written.
    void write(const Range &range, const float *from, const Rounding &rounding);

    // For int8: the elements of a row (the last row may have fewer), and the scales per row.
    uint64_t row() const { return row_; }
    uint64_t scales_of_row() const { return scales_of_row_; }

    std::shared_ptr<Buffer> memory, scales; // scales: for int8 only

  private:
    uint64_t scale_count(uint64_t elements) const;
    uint64_t scale_of(uint64_t element) const {
        return element / row_ * scales_of_row_ + element % row_ / block_values;
    }
    // Calls f(block, index of its scale) for the blocks that overlap the range.
    template <class F> void for_each_block(const Range &range, F &&f) const;
    void write_part(const Range &part, const Range &block, char *scale, const float *from,
                    const Rounding &rounding);

    uint64_t count_, size_, row_, scales_of_row_;
    uint32_t dtype_;
    bool narrow_;
};

} // namespace dtrain::ps
