// SPDX-License-Identifier: Apache-2.0
#include "ps/shard.h"

#include "device/kernels.h"
#include "ps/rules.h"

#include <cstring>
#include <new>

namespace dtrain::ps {

uint64_t Shard::bytes_needed(const TableParams &params, uint64_t count) {
    uint64_t per_element = device::dtype_size(params.dtype);
    per_element += rule_slots(params.rule) * uint64_t{slot_size(params.dtype)};
    uint64_t sums = params.consistency == DTRAIN_BSP
                        ? open_clocks * Aggregate::bytes_needed(params.dtype, count)
                        : 0;
    return count * per_element + sums;
}

Shard::Shard(const TableParams &params, const Range &range)
    : params_(params), range_(range), size_(device::dtype_size(params.dtype)), steps_(range.count) {
}

std::unique_ptr<Shard> Shard::create(const TableParams &params, const Range &range) {
    std::unique_ptr<Shard> shard(new (std::nothrow) Shard(params, range));
    if (shard == nullptr) return nullptr;
    shard->values_ = std::make_shared<Buffer>();
    if (!shard->values_->allocate(range.count * shard->size_)) return nullptr;
    // Fresh memory is zero: untouched pages stay untouched.
    if (params.initial != 0) fill(params.dtype, shard->values_->at(0), range.count, params.initial);
    return shard;
}

const void *Shard::at(uint64_t element) const {
    return values_->at((element - range_.first) * size_);
}

void Shard::set(const Range &range, const void *values) {
    std::memcpy(values_->at(local(range).first * size_), values, range.count * size_);
}

Reason Shard::allocate_slots() {
    for (uint32_t i = 0; i < rule_slots(params_.rule); ++i)
        if (slots_[i].empty() && !slots_[i].allocate(range_.count * slot_size(params_.dtype)))
            return Reason::no_memory;
    return Reason::none;
}

Reason Shard::push(const Range &range, const void *g, bool begins) {
    Reason reason = allocate_slots();
    if (reason != Reason::none) return reason;
    update(local(range), g);
    updates_ += begins;
    return Reason::none;
}

Reason Shard::collect(uint64_t clock, const Range &range, const void *g) {
    Aggregate &sums = sums_[clock % open_clocks];
    Reason reason = allocate_slots(); // now, since apply() must not fail
    if (reason != Reason::none) return reason;
    if (!sums.allocated() && !sums.allocate(params_.dtype, range_.count)) return Reason::no_memory;
    sums.add(local(range), g);
    return Reason::none;
}

void Shard::apply(uint64_t clock, uint32_t workers) {
    ++updates_;
    Aggregate &sums = sums_[clock % open_clocks];
    if (!sums.allocated()) return;
    sums.take([&](const Range &block, void *g) {
        if (params_.aggregate == DTRAIN_AVG && workers > 1)
            device::scale(g, block.count, params_.dtype, workers);
        update(block, g);
    });
}

void Shard::update(const Range &whole, const void *g) {
    uint64_t slot = slot_size(params_.dtype);
    auto part = [&](const Range &range, uint64_t step) {
        RuleTarget target = {values_->at(range.first * size_), {}};
        for (uint32_t i = 0; i < rule_slots(params_.rule); ++i)
            target.slots[i] = slots_[i].at(range.first * slot);
        const char *from = static_cast<const char *>(g) + (range.first - whole.first) * size_;
        apply_rule(params_, step, target, from, range.count);
    };
    if (rule_counts_steps(params_.rule))
        steps_.advance(whole, part);
    else
        part(whole, 0);
}

} // namespace dtrain::ps
