// Orders the rows of an operation, builds payloads, and unpacks answers.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/row_batch.h"

#include "base/hash.h"
#include "device/finite.h"
#include "device/kernels.h"
#include "ps/client/client_table.h"
#include "ps/optimizer/segment_rules.h"
#include "ps/table/finite.h"
#include "ps/table/item.h"
#include "ps/table/narrow.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dtrain::ps {
namespace {

// Small enough that client and server work on different requests of one call at the same time.
constexpr uint64_t most_bytes = 32 << 10;

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace

RowBatch::RowBatch(const ClientTable &table, const Call &call)
    : table_(table), call_(call), size_(item_of(table.params, call.kind, call.argument).bytes),
      most_(std::max<uint64_t>(1, std::min(table.chunk, most_bytes) / (sizeof(uint64_t) + size_))),
      narrow_(travels_narrow(table.params, call.kind)),
      sent_(narrow_ ? narrow_bytes(table.params, call.kind, 1) : size_),
      halves_(is_half(table.params.dtype) && has_trait(call.kind, Trait::pushes)),
      parts_(table.channels.size()) {
    deduplicate();
    order_by_server();
}

// Numbers rows in the order of the first occurrence of their keys.
void RowBatch::deduplicate() {
    const uint64_t count = call_.count;
    const uint64_t *keys = call_.keys;
    const auto bits = uint32_t(std::bit_width(count) + 1); // the hash table is at most half full
    std::vector<uint32_t> rows(uint64_t{1} << bits);       // a row's number + 1; 0: empty
    std::vector<uint32_t> last;                            // by row: its key's last place so far
    order_.reserve(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = mix(keys[i]) >> (64 - bits);
        while (rows[at] != 0 && keys[order_[rows[at] - 1]] != keys[i])
            at = (at + 1) & (rows.size() - 1);
        if (rows[at] == 0) {
            order_.push_back(uint32_t(i));
            rows[at] = uint32_t(order_.size());
            if (!last.empty()) last.push_back(uint32_t(i));
            continue;
        }
        if (later_.empty()) {
            later_.resize(count);
            last = order_;
            last.reserve(count);
        }
        uint32_t &before = last[rows[at] - 1];
        later_[before] = uint32_t(i);
        before = uint32_t(i);
    }
}

void RowBatch::order_by_server() {
    if (parts_.size() == 1) {
        parts_[0].count = order_.size();
        if (order_.size() == call_.count) order_ = {};
        return;
    }
    std::vector<uint32_t> servers(order_.size());
    table_.key_partition.with_lookup([&](auto server_of) {
        for (size_t row = 0; row < order_.size(); row++) {
            servers[row] = server_of(call_.keys[order_[row]]);
            parts_[servers[row]].count++;
        }
    });
    std::vector<uint64_t> next(parts_.size());
    for (size_t s = 1; s < parts_.size(); s++) next[s] = parts_[s].first = parts_[s - 1].end();
    std::vector<uint32_t> ordered(order_.size());
    for (size_t row = 0; row < order_.size(); row++) ordered[next[servers[row]]++] = order_[row];
    order_.swap(ordered);
}

uint64_t RowBatch::scratch_bytes(RequestKind kind, uint64_t rows) const {
    const bool carries = has_trait(kind, Trait::carries),
               receives = has_trait(kind, Trait::receives);
    const bool in_place = order_.empty() && !narrow_;
    if (in_place) return carries ? rows * (sizeof(uint64_t) + size_) : 0;
    return aligned(rows * (sizeof(uint64_t) + carries * sent_)) + aligned(rows * receives * sent_) +
           uint64_t{carries} * (narrow_ + 2 * halves_) * table_.params.dim * sizeof(float);
}

template <class F> void RowBatch::for_each_place(uint64_t row, F &&f) const {
    uint64_t place = order_.empty() ? row : order_[row];
    f(place);
    if (later_.empty()) return;
    while ((place = later_[place]) != 0) f(place);
}

bool RowBatch::repeats(uint64_t row) const {
    return !later_.empty() && later_[order_.empty() ? row : order_[row]] != 0;
}

void RowBatch::add_up_halves(uint64_t row, char *to, float *wide) const {
    const TableParams &params = table_.params;
    float *const again = wide + params.dim;
    bool begun = false;
    for_each_place(row, [&](uint64_t place) {
        read_row(begun ? again : wide, params.dtype,
                 static_cast<const char *>(call_.send) + place * size_, params.dim);
        if (begun) combine_repeated(params, DTRAIN_F32, wide, again);
        begun = true;
    });
    write_row(to, params.dtype, wide, params.dim);
}

// Writes the keys, and then their rows for kinds that carry them.
void RowBatch::gather(const Range &rows, RequestKind kind, char *to, char *wide) const {
    for (uint64_t i = 0; i < rows.count; i++) {
        const uint64_t row = rows.first + i;
        const uint64_t key = call_.keys[order_.empty() ? row : order_[row]];
        std::memcpy(to + i * sizeof key, &key, sizeof key);
    }
    if (!has_trait(kind, Trait::carries)) return;
    to += rows.count * sizeof(uint64_t);
    const auto *values = static_cast<const char *>(call_.send);
    const TableParams &params = table_.params;
    const bool sums = has_trait(kind, Trait::pushes);
    for (uint64_t row = rows.first; row < rows.end(); row++, to += sent_) {
        if (halves_ && repeats(row)) {
            add_up_halves(row, to, reinterpret_cast<float *>(wide));
            continue;
        }
        char *sum = narrow_ ? wide : to;
        bool begun = false;
        for_each_place(row, [&](uint64_t place) {
            if (begun && sums)
                combine_repeated(params, params.dtype, sum, values + place * size_);
            else
                std::memcpy(sum, values + place * size_, size_);
            begun = true;
        });
        if (narrow_)
            write_row(to, params.wire_dtype, reinterpret_cast<const float *>(sum), params.dim);
    }
}

void RowBatch::attach(const Range &rows, Outgoing &request, char *scratch) const {
    const RequestKind kind = request.header.kind;
    const bool carries = has_trait(kind, Trait::carries);
    const bool receives = has_trait(kind, Trait::receives);
    request.payload_bytes = rows.count * (sizeof(uint64_t) + carries * sent_);
    request.payload = call_.keys + rows.first;
    // The scratch has the payload, then the answer, then a row.
    const uint64_t answer_at = aligned(request.payload_bytes);
    const uint64_t row_at = answer_at + aligned(rows.count * receives * sent_);
    if (carries || !order_.empty()) {
        gather(rows, kind, scratch, scratch + row_at);
        request.payload = scratch;
    }
    if (!receives) return;
    request.answer_bytes = rows.count * sent_;
    const bool in_place = order_.empty() && !narrow_;
    request.answer =
        in_place ? static_cast<char *>(call_.receive) + rows.first * size_ : scratch + answer_at;
}

std::optional<uint64_t> RowBatch::find_not_finite() const {
    const TableParams &params = table_.params;
    const uint64_t values = call_.count * params.dim,
                   at = first_not_finite_sent(params, call_.send, values);
    if (at < values) return call_.keys[at / params.dim];
    if (later_.empty()) return std::nullopt;
    // The sum of a repeated key's rows may be infinite although all rows are finite.
    std::vector<char> request(scratch_bytes(call_.kind, 1));
    std::vector<float> sent(narrow_ ? params.dim : 0);
    for (uint64_t row = 0; row < order_.size(); row++) {
        if (!repeats(row)) continue;
        const uint64_t sum_at = aligned(sizeof(uint64_t) + sent_);
        gather({row, 1}, call_.kind, request.data(), request.data() + sum_at);
        const char *sum = request.data() + sizeof(uint64_t);
        if (narrow_) read_row(sent.data(), params.wire_dtype, sum, params.dim);
        const uint64_t found = narrow_
                                   ? device::first_not_finite(sent.data(), params.dim, DTRAIN_F32)
                                   : device::first_not_finite(sum, params.dim, params.dtype);
        if (found < params.dim) return call_.keys[order_[row]];
    }
    return std::nullopt;
}

void RowBatch::deliver(const Range &rows, const void *answer) const {
    if (order_.empty() && !narrow_) return; // the answer was received in place
    const auto *values = static_cast<const char *>(answer);
    auto *to = static_cast<char *>(call_.receive);
    const TableParams &params = table_.params;
    for (uint64_t row = rows.first; row < rows.end(); row++, values += sent_)
        for_each_place(row, [&](uint64_t place) {
            if (narrow_)
                read_row(reinterpret_cast<float *>(to + place * size_), params.wire_dtype, values,
                         params.dim);
            else
                std::memcpy(to + place * size_, values, size_);
        });
}

} // namespace dtrain::ps
