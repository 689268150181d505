// How a dense shard runs a user's function. SPDX-License-Identifier: Apache-2.0
#include "ps/shard.h"

#include <cstring>

namespace dtrain::ps {

void Shard::set_rate(double rate) {
    rule_.set_rate(rate);
    if (function_ != nullptr) function_->set_rate(rate);
    if (segments_ != nullptr) segments_->set_rate(rate);
}

template <class F> void Shard::gather_rows(const Range &local, uint64_t element, F &&f) {
    const uint64_t dim = params_.row_length > 0 ? params_.row_length : local.count;
    function_->begin(dim);
    char *values = open(local);
    for (uint64_t first = local.first; first < local.end(); first += dim) {
        dtrain_function_row_t &row =
            function_->add(element + (first - local.first), values + (first - local.first) * size_);
        for (size_t i = 0; i < slots_.size(); ++i)
            row.state[i] = slots_[i]->at(first / arrays_[i].elements * arrays_[i].size);
        f(row, (first - local.first) * size_);
    }
}

Reason Shard::run_update(const Range &local, const void *g) {
    const char *pushed = static_cast<const char *>(g) - local.first * size_;
    Reason reason = Reason::none;
    part_.for_each_run(local, [&](const Range &elements, uint64_t place) {
        if (reason != Reason::none) return;
        auto attach = [&](dtrain_function_row_t &row, uint64_t offset) {
            row.pushed = pushed + place * size_ + offset;
        };
        gather_rows({place, elements.count}, elements.first, attach);
        reason = function_->update(updates_);
        if (reason == Reason::none) close({place, elements.count});
    });
    return reason;
}

Reason Shard::transform(const Range &range, std::shared_ptr<const Buffer> &out) {
    auto pulled = std::make_shared<Buffer>();
    Reason reason = allocate_slots();
    if (reason != Reason::none) return reason;
    if (!pulled->allocate(range.count * size_)) return Reason::no_memory;
    gather_rows(local(range), range.first, [&](dtrain_function_row_t &row, uint64_t offset) {
        row.pulled = pulled->at(offset);
    });
    reason = function_->get(updates_);
    out = std::move(pulled);
    if (reason != Reason::none || params_.wire_dtype == 0) return reason;
    out = as_sent(out->at(0), range.count);
    return out != nullptr ? Reason::none : Reason::no_memory;
}

// All of the range or nothing, though it may take several calls: what was there is put back.
Reason Shard::combine_by_function(Aggregate &sums, const Range &local, uint64_t element,
                                  const void *g) {
    const std::vector<char> before(sums.at(local.first), sums.at(local.end()));
    const bool rows = params_.row_length > 0;
    Reason reason = Reason::none;
    sums.add(local, g, [&](const Range &part, void *to, const char *from) {
        if (reason != Reason::none) return false;
        const uint64_t dim = rows ? params_.row_length : part.count;
        function_->begin(dim);
        for (uint64_t at = 0; at < part.count; at += dim)
            function_
                ->add(element + (part.first - local.first) + at,
                      static_cast<char *>(to) + at * size_)
                .pushed = from + at * size_;
        reason = function_->combine(updates_);
        return reason == Reason::none;
    });
    if (reason != Reason::none) std::memcpy(sums.at(local.first), before.data(), before.size());
    return reason;
}

} // namespace dtrain::ps
