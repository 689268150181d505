// SPDX-License-Identifier: Apache-2.0
#include "ps/row_batch.h"

#include "base/hash.h"
#include "device/kernels.h"
#include "ps/client_table.h"
#include "ps/rules.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace

RowBatch::RowBatch(const ClientTable &table, const uint64_t *keys, uint64_t count)
    : table_(table), row_of_(count), parts_(table.lanes.size()) {
    deduplicate(keys);
    order_by_server();
}

// Rows are numbered as their keys come first.
void RowBatch::deduplicate(const uint64_t *keys) {
    const uint64_t count = row_of_.size();
    const auto bits = uint32_t(std::bit_width(count) + 1); // at most half full
    std::vector<uint32_t> rows(uint64_t{1} << bits, UINT32_MAX);
    keys_.reserve(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = mix(keys[i]) >> (64 - bits);
        while (rows[at] != UINT32_MAX && keys_[rows[at]] != keys[i])
            at = (at + 1) & (rows.size() - 1);
        if (rows[at] == UINT32_MAX) {
            rows[at] = uint32_t(keys_.size());
            keys_.push_back(keys[i]);
        }
        row_of_[i] = rows[at];
    }
}

void RowBatch::order_by_server() {
    const KeyPartition &partition = table_.key_partition;
    if (parts_.size() == 1) {
        parts_[0].count = keys_.size();
        return;
    }
    std::vector<uint32_t> number(keys_.size()); // first the server, then the new number
    for (size_t row = 0; row < keys_.size(); row++) {
        number[row] = partition.server_of(keys_[row]);
        parts_[number[row]].count++;
    }
    std::vector<uint64_t> next(parts_.size());
    for (size_t s = 1; s < parts_.size(); s++) next[s] = parts_[s].first = parts_[s - 1].end();
    std::vector<uint64_t> ordered(keys_.size());
    for (size_t row = 0; row < keys_.size(); row++) {
        number[row] = uint32_t(next[number[row]]++);
        ordered[number[row]] = keys_[row];
    }
    keys_.swap(ordered);
    for (uint32_t &row : row_of_) row = number[row];
}

// The payload of each request: its keys, then its rows; begins at a multiple of 8 bytes.
void RowBatch::lay_out() {
    const uint64_t size = table_.row_bytes, most = table_.rows_per_request;
    uint64_t bytes = 0;
    auto for_each_request = [&](auto &&f) {
        for (const Range &part : parts_)
            for (uint64_t first = part.first; first < part.end(); first += most)
                f(first, std::min(most, part.end() - first));
    };
    for_each_request(
        [&](uint64_t, uint64_t count) { bytes += aligned(count * (sizeof(uint64_t) + size)); });
    memory_ = std::make_unique_for_overwrite<char[]>(bytes);
    places_.resize(keys_.size());
    char *at = memory_.get();
    for_each_request([&](uint64_t first, uint64_t count) {
        std::memcpy(at, &keys_[first], count * sizeof(uint64_t));
        for (uint64_t i = 0; i < count; i++)
            places_[first + i] = at + count * sizeof(uint64_t) + i * size;
        at += aligned(count * (sizeof(uint64_t) + size));
    });
}

void RowBatch::sum(const char *values) {
    const TableParams &params = table_.params;
    const uint64_t size = table_.row_bytes;
    std::vector<bool> begun(keys_.size());
    for (size_t i = 0; i < row_of_.size(); i++) {
        const uint32_t row = row_of_[i];
        if (begun[row] && params.rule != DTRAIN_RULE_ASSIGN)
            device::reduce(places_[row], values + i * size, params.dim, params.dtype,
                           rule_info(params.rule).combine);
        else
            std::memcpy(places_[row], values + i * size, size);
        begun[row] = true;
    }
}

std::shared_ptr<RowBatch> RowBatch::of_push(const ClientTable &table, const uint64_t *keys,
                                            uint64_t count, const void *values) {
    std::shared_ptr<RowBatch> batch(new RowBatch(table, keys, count));
    batch->lay_out();
    batch->sum(static_cast<const char *>(values));
    return batch;
}

std::shared_ptr<RowBatch> RowBatch::of_pull(const ClientTable &table, const uint64_t *keys,
                                            uint64_t count, void *values) {
    std::shared_ptr<RowBatch> batch(new RowBatch(table, keys, count));
    batch->pulled_ = static_cast<char *>(values);
    bool in_order = batch->parts_.size() == 1 && batch->keys_.size() == count;
    if (in_order) return batch; // answers are what the caller wants
    batch->memory_ = std::make_unique_for_overwrite<char[]>(batch->keys_.size() * table.row_bytes);
    batch->target_ = std::exchange(batch->pulled_, batch->memory_.get());
    return batch;
}

void RowBatch::attach(const Range &rows, Outgoing &request) const {
    const uint64_t key_bytes = rows.count * sizeof(uint64_t);
    const uint64_t value_bytes = rows.count * table_.row_bytes;
    if (pulled_ == nullptr) {
        request.payload = places_[rows.first] - key_bytes;
        request.payload_bytes = key_bytes + value_bytes;
        return;
    }
    request.payload = &keys_[rows.first];
    request.payload_bytes = key_bytes;
    request.answer = pulled_ + rows.first * table_.row_bytes;
    request.answer_bytes = value_bytes;
}

void RowBatch::scatter() const {
    if (target_ == nullptr) return;
    const uint64_t size = table_.row_bytes;
    for (size_t i = 0; i < row_of_.size(); i++)
        std::memcpy(target_ + i * size, pulled_ + row_of_[i] * size, size);
}

} // namespace dtrain::ps
