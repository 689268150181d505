// Allocates, reads and writes the values of a dense shard.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/dense_values.h"

#include "base/hash.h"
#include "device/kernels.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {

DenseValues::DenseValues(const TableParams &params, uint64_t count)
    : count_(count), size_(device::dtype_size(storage_dtype_of(params))),
      row_(params.row_length > 0 ? params.row_length : block_values),
      scales_of_row_(blocks_of(row_)), dtype_(storage_dtype_of(params)),
      narrow_(is_stored_narrow(params)) {}

uint64_t DenseValues::scale_count(uint64_t elements) const {
    if (!narrow_ || dtype_ != DTRAIN_I8) return 0;
    return elements / row_ * scales_of_row_ + blocks_of(elements % row_);
}

bool DenseValues::allocate(Buffer::Pages pages) {
    memory = std::make_shared<Buffer>();
    if (!memory->allocate(count_ * size_, pages)) return false;
    const uint64_t scale_bytes = scale_count(count_) * sizeof(float);
    if (scale_bytes == 0) return true;
    scales = std::make_shared<Buffer>();
    return scales->allocate(scale_bytes, pages);
}

template <class F> void DenseValues::for_each_block(const Range &range, F &&f) const {
    for (uint64_t at = range.first; at < range.end();) {
        const uint64_t row = at / row_, block = at % row_ / block_values;
        const uint64_t first = row * row_ + block * block_values;
        const uint64_t end = std::min({first + block_values, (row + 1) * row_, count_});
        f(Range{first, end - first}, row * scales_of_row_ + block);
        at = end;
    }
}

Range DenseValues::changed(const Range &range) const {
    if (dtype_ != DTRAIN_I8 || range.count == 0) return range;
    Range all = {range.first, 0};
    for_each_block(range, [&](const Range &block, uint64_t) {
        all.first = std::min(all.first, block.first);
        all.count = block.end() - all.first;
    });
    return all;
}

Range DenseValues::changed_scales(const Range &range) const {
    if (range.count == 0) return {};
    const uint64_t first = scale_of(range.first);
    return {first, scale_of(range.end() - 1) + 1 - first};
}

void DenseValues::read(const Range &range, float *to) const {
    if (dtype_ != DTRAIN_I8) return read_row(to, dtype_, at(range.first), range.count);
    for_each_block(range, [&](const Range &block, uint64_t scale) {
        const Range part = intersect(block, range);
        read_blocks(to + (part.first - range.first), at(part.first),
                    scales->at(scale * sizeof(float)), part.count);
    });
}

bool DenseValues::copy_row(const Range &range, char *to) const {
    const bool begins = range.first % row_ % block_values == 0;
    const bool fits = row_ % block_values == 0 || range.first % row_ + range.count <= row_;
    if (dtype_ != DTRAIN_I8 || !begins || !fits) return false;
    std::memcpy(to, at(range.first), range.count);
    std::memcpy(to + range.count, scales->at(scale_of(range.first) * sizeof(float)),
                blocks_of(range.count) * sizeof(float));
    return true;
}

void DenseValues::write(const Range &range, const float *from, const Rounding &rounding) {
    if (dtype_ != DTRAIN_I8)
        return write_row(at(range.first), dtype_, from, range.count,
                         {rounding.random, rounding.seed, range.first});
    for_each_block(range, [&](const Range &block, uint64_t index) {
        const Range part = intersect(block, range);
        const Rounding own = {.random = rounding.random, .seed = mix(rounding.seed, block.first)};
        const float *its = from + (part.first - range.first);
        char *scale = scales->at(index * sizeof(float));
        if (part == block)
            write_block(at(block.first), scale, scale_for(its, block.count), its, block.count, own);
        else
            write_part(part, block, scale, its, own);
    });
}

void DenseValues::write_part(const Range &part, const Range &block, char *scale, const float *from,
                             const Rounding &rounding) {
    float whole[block_values];
    read_blocks(whole, at(block.first), scale, block.count);
    std::copy_n(from, part.count, whole + (part.first - block.first));
    const float old = scale_at(scale), needed = scale_for(whole, block.count);
    if (needed <= old)
        write_block(at(part.first), scale, old, from, part.count, rounding);
    else // a larger scale, or NaN
        write_block(at(block.first), scale, needed, whole, block.count, rounding);
}

} // namespace dtrain::ps
