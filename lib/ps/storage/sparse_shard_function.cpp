// How a sparse shard calls a user's function.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/sparse_shard.h"
#include "ps/table/narrow.h"

namespace dtrain::ps {

dtrain_function_row_t &SparseShard::add_row(uint64_t key, char *row, char *values) {
    dtrain_function_row_t &added = function_->add(key, values, params_.dim);
    for (size_t i = 0; i < layout_.slots.size(); i++) added.state[i] = row + layout_.slots[i].at;
    return added;
}

Reason SparseShard::run_update(const uint64_t *keys, char *const *rows, const char *const *g,
                               size_t count) {
    function_->begin();
    make_room_to_open(count);
    for (size_t i = 0; i < count; i++) add_row(keys[i], rows[i], open(rows[i], i)).pushed = g[i];
    const Reason reason = function_->update(updates_);
    for (size_t i = 0; i < count && reason == Reason::none; i++) close(keys[i], rows[i], i);
    return reason;
}

Reason SparseShard::transform(const uint64_t *keys, size_t count,
                              std::shared_ptr<const Buffer> &out) {
    std::shared_ptr<Buffer> pulled = answers_.take(count * row_bytes_);
    Buffer made; // temporary rows for keys without a row
    if (pulled == nullptr || !made.allocate(count * layout_.bytes)) return Reason::no_memory;
    function_->begin();
    make_room_to_open(count);
    rows_.find(keys, count, [&](size_t i, char *row) {
        if (row == nullptr) make_row(keys[i], row = made.at(i * layout_.bytes));
        add_row(keys[i], row, open(row, i)).pulled = pulled->at(i * row_bytes_);
    });
    out = pulled;
    const Reason reason = function_->get(updates_);
    if (reason != Reason::none || params_.wire_dtype == 0) return reason;
    std::shared_ptr<Buffer> sent = answers_.take(count * sent_);
    if (sent == nullptr) return Reason::no_memory;
    for (size_t i = 0; i < count; i++)
        write_row(sent->at(i * sent_), params_.wire_dtype,
                  reinterpret_cast<const float *>(pulled->at(i * row_bytes_)), params_.dim);
    out = std::move(sent);
    return reason;
}

} // namespace dtrain::ps
