// Copies rows in pieces, and before they change.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace dtrain::ps {

bool DenseRanks::allocate(uint32_t count, const std::vector<uint32_t> &holes) {
    any_ = !holes.empty();
    if (!any_) return true;
    if (!holes_.allocate(count)) return false;
    before_.assign(count / group + 1, 0);
    for (const uint32_t hole : holes) holes_.mark(hole);
    for (uint32_t i = 0; i < count / group; i++)
        before_[i + 1] = before_[i] + holes_.count(i * group, (i + 1) * group);
    return true;
}

uint32_t DenseRanks::of(uint32_t row) const {
    if (!any_) return row;
    return row - before_[row / group] - holes_.count(row / group * group, row);
}

RowCopy::RowCopy(const RowStore &store, std::shared_ptr<Buffer> keys, std::shared_ptr<Buffer> rows)
    : GradualCopy(
          {{keys, store.size() * sizeof(uint64_t)}, {rows, store.size() * store.row_bytes()}}),
      from_(&store), keys_(std::move(keys)), rows_(std::move(rows)), row_bytes_(store.row_bytes()),
      made_(store.made()) {}

std::shared_ptr<RowCopy> RowCopy::begin(const RowStore &store, std::shared_ptr<Buffer> keys,
                                        std::shared_ptr<Buffer> rows) {
    std::shared_ptr<RowCopy> copy(new RowCopy(store, std::move(keys), std::move(rows)));
    const bool all =
        copy->ranks_.allocate(copy->made_, store.holes()) && copy->marks_.allocate(copy->made_);
    return all ? copy : nullptr;
}

void RowCopy::copy(uint64_t key, uint32_t row) {
    const uint64_t place = ranks_.of(row);
    std::memcpy(keys_->at(place * sizeof key), &key, sizeof key);
    std::memcpy(rows_->at(place * row_bytes_), from_->row(row), row_bytes_);
    marks_.mark(row);
}

void RowCopy::before_change(const uint64_t *keys, size_t count) {
    if (!going() || settled_ != nullptr) return;
    from_->locate(keys, count, [&](size_t i, uint32_t row) {
        if (row != RowIndex::none && due(row)) copy(keys[i], row);
    });
}

void RowCopy::settle(std::shared_ptr<const RowStore> store) {
    if (!going() || settled_ != nullptr) return;
    settled_ = std::move(store);
    from_ = settled_.get();
}

bool RowCopy::copy_more(uint64_t bytes) {
    constexpr size_t most = 32; // rows that are prefetched before they are copied
    uint64_t keys[most];
    uint32_t rows[most];
    size_t count = 0;
    auto flush = [&] {
        for (size_t i = 0; i < count; i++) copy(keys[i], rows[i]);
        count = 0;
    };
    const uint64_t wanted = bytes / (row_bytes_ + sizeof(uint64_t)) + 1;
    const bool more = from_->scan(scan_, wanted, [&](uint64_t key, uint32_t row) {
        if (!due(row)) return;
        __builtin_prefetch(from_->row(row));
        __builtin_prefetch(rows_->at(ranks_.of(row) * row_bytes_), 1);
        keys[count] = key;
        rows[count] = row;
        if (++count == most) flush();
    });
    flush();
    return more;
}

void RowCopy::let_go() {
    settled_.reset();
    from_ = nullptr;
}

} // namespace dtrain::ps
