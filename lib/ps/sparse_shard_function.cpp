// How a sparse shard runs a user's function. SPDX-License-Identifier: Apache-2.0
#include "ps/sparse_shard.h"

namespace dtrain::ps {

void SparseShard::set_rate(double rate) {
    rule_.set_rate(rate);
    if (function_ != nullptr) function_->set_rate(rate);
    if (segments_ != nullptr) segments_->set_rate(rate);
}

dtrain_function_row_t &SparseShard::add_row(uint64_t key, char *row) {
    dtrain_function_row_t &added = function_->add(key, row);
    for (size_t i = 0; i < layout_.slots.size(); i++) added.state[i] = row + layout_.slots[i].at;
    return added;
}

Reason SparseShard::run_update(const uint64_t *keys, size_t count, const void *g) {
    function_->begin(params_.dim);
    for (size_t i = 0; i < count; i++)
        add_row(keys[i], claimed_[i]).pushed = static_cast<const char *>(g) + i * layout_.values;
    return function_->update(updates_);
}

Reason SparseShard::transform(const uint64_t *keys, size_t count,
                              std::shared_ptr<const Buffer> &out) {
    std::shared_ptr<Buffer> pulled = answer(count * layout_.values);
    Buffer made; // rows that are not there
    if (pulled == nullptr || !made.allocate(count * layout_.bytes)) return Reason::no_memory;
    function_->begin(params_.dim);
    rows_.find(keys, count, [&](size_t i, char *row) {
        if (row == nullptr) make_row(keys[i], row = made.at(i * layout_.bytes));
        add_row(keys[i], row).pulled = pulled->at(i * layout_.values);
    });
    out = std::move(pulled);
    return function_->get(updates_);
}

} // namespace dtrain::ps
