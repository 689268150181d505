// How a dense shard calls a user's function.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard.h"

#include <algorithm>

namespace dtrain::ps {

template <class F> void Shard::for_each_row(const Range &local, F &&f) const {
    part_.for_each_run(local, [&](const Range &elements, uint64_t place) {
        const uint64_t dim = params_.row_length > 0 ? params_.row_length : elements.count;
        for (uint64_t at = 0; at < elements.count; at += dim)
            f(elements.first + at, place + at, dim);
    });
}

template <class F> void Shard::take_batches(Aggregate &sums, F &&f) const {
    const uint64_t row = std::max<uint64_t>(params_.row_length, 1);
    const uint64_t most = chunk_bytes / size_ / row * row;
    std::vector<Pushed> batch;
    uint64_t count = 0;
    auto add = [&](const Range &block, const char *g) {
        if (count + block.count > most) {
            f(Batch(batch));
            batch.clear();
            count = 0;
        }
        batch.push_back({block, g});
        count += block.count;
    };
    sums.take(add, most);
    f(Batch(batch));
}

dtrain_function_row_t &Shard::add_row(uint64_t key, uint64_t place, uint64_t dim, char *values) {
    dtrain_function_row_t &row = function_->add(key, values, dim);
    for (size_t i = 0; i < slots_.size(); ++i)
        row.state[i] = slots_[i]->at(place / arrays_[i].elements * arrays_[i].size);
    return row;
}

Reason Shard::run_update(Batch batch) {
    uint64_t count = 0;
    for (const Pushed &pushed : batch) count += pushed.local.count;
    make_room_to_open(count);
    function_->begin();
    uint64_t before = 0;
    for (const auto &[local, g] : batch) {
        before_change(local);
        char *values = open(local, before);
        for_each_row(local, [&, &local = local, g = g](uint64_t key, uint64_t place, uint64_t dim) {
            const uint64_t offset = (place - local.first) * size_;
            add_row(key, place, dim, values + offset).pushed = g + offset;
        });
        before += local.count;
    }
    const Reason reason = function_->update(updates_);
    if (reason != Reason::none) return reason;
    before = 0;
    for (const Pushed &pushed : batch) {
        close(pushed.local, before);
        before += pushed.local.count;
    }
    return reason;
}

Reason Shard::add_by_function(Aggregate &total, Aggregate &sums) {
    Reason reason = Reason::none;
    take_batches(sums, [&](Batch batch) {
        if (reason == Reason::none) reason = combine_by_function(total, batch);
    });
    return reason;
}

Reason Shard::apply_by_function(Aggregate &total, double divisor) {
    Reason reason = Reason::none;
    take_batches(total, [&](Batch batch) {
        if (reason != Reason::none) return;
        for (const auto &[local, g] : batch)
            added_.finish(total.at(local.first), local.count, divisor);
        reason = run_update(batch);
    });
    return reason;
}

Reason Shard::transform(const Range &range, std::shared_ptr<const Buffer> &out) {
    auto pulled = std::make_shared<Buffer>();
    Reason reason = allocate_slots();
    if (reason != Reason::none) return reason;
    if (!pulled->allocate(range.count * size_)) return Reason::no_memory;
    const Range places = local(range);
    char *values = open(places);
    function_->begin();
    for_each_row(places, [&](uint64_t key, uint64_t place, uint64_t dim) {
        const uint64_t offset = (place - places.first) * size_;
        add_row(key, place, dim, values + offset).pulled = pulled->at(offset);
    });
    reason = function_->get(updates_);
    out = std::move(pulled);
    if (reason != Reason::none || params_.wire_dtype == 0) return reason;
    out = as_sent(out->at(0), range.count);
    return out != nullptr ? Reason::none : Reason::no_memory;
}

Reason Shard::combine_by_function(Aggregate &sums, Batch batch) {
    function_->begin();
    for (const Pushed &pushed : batch)
        sums.merge(pushed.local, pushed.g, [&](const Range &part, char *to, const char *from) {
            for_each_row(part, [&](uint64_t key, uint64_t place, uint64_t dim) {
                const uint64_t offset = (place - part.first) * size_;
                function_->add(key, to + offset, dim).pushed = from + offset;
            });
        });
    const Reason reason = function_->combine(updates_);
    if (reason == Reason::none)
        for (const Pushed &pushed : batch) sums.mark(pushed.local);
    return reason;
}

} // namespace dtrain::ps
