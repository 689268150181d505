// SPDX-License-Identifier: Apache-2.0
#include "ps/row_batch.h"

#include "base/hash.h"
#include "device/kernels.h"
#include "ps/client_table.h"
#include "ps/item.h"
#include "ps/rules.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace

RowBatch::RowBatch(const ClientTable &table, const Call &call)
    : table_(table), size_(item_of(table.params, call.kind, call.argument).bytes),
      most_(std::max<uint64_t>(1, table.chunk / (sizeof(uint64_t) + size_))), row_of_(call.count),
      parts_(table.lanes.size()) {
    deduplicate(call.keys);
    order_by_server();
    if (has_trait(call.kind, Trait::carries)) {
        lay_out();
        const bool pushes = has_trait(call.kind, Trait::pushes);
        sum(static_cast<const char *>(call.send),
            !pushes || table.params.rule == DTRAIN_RULE_ASSIGN);
    }
    if (has_trait(call.kind, Trait::receives)) prepare_answers(call.receive);
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
    uint64_t bytes = 0;
    auto for_each_request = [&](auto &&f) {
        for (const Range &part : parts_)
            for (uint64_t first = part.first; first < part.end(); first += most_)
                f(first, std::min(most_, part.end() - first));
    };
    for_each_request(
        [&](uint64_t, uint64_t count) { bytes += aligned(count * (sizeof(uint64_t) + size_)); });
    sent_ = std::make_unique_for_overwrite<char[]>(bytes);
    places_.resize(keys_.size());
    char *at = sent_.get();
    for_each_request([&](uint64_t first, uint64_t count) {
        std::memcpy(at, &keys_[first], count * sizeof(uint64_t));
        for (uint64_t i = 0; i < count; i++)
            places_[first + i] = at + count * sizeof(uint64_t) + i * size_;
        at += aligned(count * (sizeof(uint64_t) + size_));
    });
}

void RowBatch::sum(const char *values, bool assigns) {
    const TableParams &params = table_.params;
    std::vector<bool> begun(keys_.size());
    for (size_t i = 0; i < row_of_.size(); i++) {
        const uint32_t row = row_of_[i];
        if (begun[row] && !assigns)
            device::reduce(places_[row], values + i * size_, params.dim, params.dtype,
                           rule_info(params.rule).combine);
        else
            std::memcpy(places_[row], values + i * size_, size_);
        begun[row] = true;
    }
}

void RowBatch::prepare_answers(void *target) {
    answers_ = static_cast<char *>(target);
    const bool in_order = parts_.size() == 1 && keys_.size() == row_of_.size();
    if (in_order) return; // answers are what the caller wants
    received_ = std::make_unique_for_overwrite<char[]>(keys_.size() * size_);
    target_ = std::exchange(answers_, received_.get());
}

void RowBatch::attach(const Range &rows, Outgoing &request) const {
    const uint64_t key_bytes = rows.count * sizeof(uint64_t), row_bytes = rows.count * size_;
    const RequestKind kind = request.header.kind;
    const bool carries = has_trait(kind, Trait::carries);
    request.payload = carries ? places_[rows.first] - key_bytes
                              : reinterpret_cast<const char *>(&keys_[rows.first]);
    request.payload_bytes = carries ? key_bytes + row_bytes : key_bytes;
    if (!has_trait(kind, Trait::receives)) return;
    request.answer = answers_ + rows.first * size_;
    request.answer_bytes = row_bytes;
}

void RowBatch::scatter() const {
    if (target_ == nullptr) return;
    for (size_t i = 0; i < row_of_.size(); i++)
        std::memcpy(target_ + i * size_, answers_ + row_of_[i] * size_, size_);
}

} // namespace dtrain::ps
