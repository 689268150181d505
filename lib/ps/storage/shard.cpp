// Applies and collects pushes to a dense shard, and converts values for answers.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard.h"

#include "base/hash.h"
#include "device/kernels.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace dtrain::ps {
namespace {

constexpr uint64_t most_filled = 64 * block_values; // elements per write of fill()

// The elements that share a number of a slot, in a table without segments.
uint64_t items(const TableParams &params) {
    return rule_info(params.rule).is(RuleInfo::row_state) ? params.row_length : 1;
}

} // namespace

uint64_t Shard::bytes_needed(const TableParams &params, uint64_t count, uint32_t workers) {
    const RuleInfo &info = rule_info(params.rule);
    uint64_t slot = slot_size(params.dtype), values = DenseValues(params, count).bytes();
    uint64_t backups = info.is(RuleInfo::backs_up) ? workers : 0;
    uint64_t sums = !collects(params) ? 0 : collects_apart(params) ? workers : open_clocks;
    sums *= Aggregate::bytes_needed(ClockSums::element_bytes_of(params), count);
    uint64_t state = 0, all = 0;
    for (const StateArray &array : slots_of(params)) state += array.bytes_of(count);
    if (__builtin_mul_overflow(backups, count * slot, &all) ||
        __builtin_add_overflow(all, values + sums + state, &all))
        return UINT64_MAX;
    return all;
}

Shard::Shard(const TableParams &params, const Part &part, const dtrain_function_t *function,
             uint32_t workers)
    : Storage(params, function), info_(rule_info(params.rule)), part_(part), workers_(workers),
      bytes_(bytes_in_mode(params)), size_(device::dtype_size(computed_dtype(params))),
      values_(params, part.count()),
      lie_as_sent_(storage_dtype_of(params) == wire_dtype_of(params) &&
                   params.storage_dtype != DTRAIN_I8), // int8 scales are stored separately
      arrays_(slots_of(params)), slots_(arrays_.size()), by_row_(by_whole_rows(params)),
      counted_(counts_steps(params) ? counted_elements(params) : 0),
      steps_(part.count() / counted_elements(params)), added_(params, combines_by_function()),
      answers_(chunk_bytes) {}

std::unique_ptr<Shard> Shard::create(const TableParams &params, const Part &part,
                                     const dtrain_function_t *function, uint32_t workers) {
    std::unique_ptr<Shard> shard(new (std::nothrow) Shard(params, part, function, workers));
    if (shard == nullptr) return nullptr;
    if (!shard->values_.allocate()) return nullptr;
    // New memory is zeroed; for an initial value of 0 its pages stay untouched.
    if (params.initial != 0) shard->fill(params.initial);
    return shard->fill_slots() ? std::move(shard) : nullptr;
}

const void *Shard::at(uint64_t element) const { return values_.at(part_.place_of(element)); }

void Shard::fill(double value) {
    if (!values_.narrow())
        return ps::fill(computed_dtype(params_), values_.at(0), part_.count(), value);
    const std::vector<float> same(std::min(part_.count(), most_filled), float(value));
    for (uint64_t at = 0; at < part_.count(); at += same.size())
        values_.write({at, std::min<uint64_t>(same.size(), part_.count() - at)}, same.data(), {});
}

void Shard::set(const Range &range, const void *values) {
    before_change(local(range));
    if (values_.narrow())
        values_.write(local(range), static_cast<const float *>(values), {});
    else
        std::memcpy(values_.at(local(range).first), values, range.count * size_);
}

void Shard::make_room_to_open(uint64_t elements) {
    if (values_.narrow() && wide_.size() < elements) wide_.resize(elements);
}

char *Shard::open(const Range &local, uint64_t before) {
    if (!values_.narrow()) return values_.at(local.first);
    make_room_to_open(before + local.count);
    values_.read(local, &wide_[before]);
    return reinterpret_cast<char *>(&wide_[before]);
}

void Shard::close(const Range &local, uint64_t before) {
    if (!values_.narrow()) return;
    values_.write(local, &wide_[before], {accumulates(params_), mix(mix(params_.seed) ^ updates_)});
}

std::shared_ptr<const Buffer> Shard::as_sent(const char *values, uint64_t count) {
    const uint32_t dtype = wire_dtype_of(params_);
    std::shared_ptr<Buffer> out = answers_.take(row_bytes(dtype, count));
    if (out != nullptr)
        write_row(out->at(0), dtype, reinterpret_cast<const float *>(values), count);
    return out;
}

std::shared_ptr<const Buffer> Shard::as_sent(const Range &range) {
    if (params_.wire_dtype == DTRAIN_I8 && params_.storage_dtype == DTRAIN_I8) {
        std::shared_ptr<Buffer> out = answers_.take(row_bytes(DTRAIN_I8, range.count));
        if (out == nullptr || values_.copy_row(local(range), out->at(0))) return out;
    }
    return as_sent(open(local(range)), range.count);
}

uint64_t Shard::slot_item() const { return items(params_); }

bool Shard::allocate_slot(size_t i) {
    auto fresh = std::make_shared<Buffer>();
    if (!fresh->allocate(arrays_[i].bytes_of(part_.count()))) return false;
    slots_[i] = std::move(fresh);
    return true;
}

bool Shard::fill_slots() {
    for (size_t i = 0; i < slots_.size(); ++i) {
        const StateArray &array = arrays_[i];
        if (array.initial == 0) continue;
        if (!allocate_slot(i)) return false;
        ps::fill(array.dtype, slots_[i]->at(0), array.numbers_of(part_.count()), array.initial);
    }
    return true;
}

Reason Shard::allocate_slots() {
    for (size_t i = 0; i < slots_.size(); ++i)
        if (slots_[i] == nullptr && !allocate_slot(i)) return Reason::no_memory;
    return Reason::none;
}

Reason Shard::back_up(uint32_t worker) {
    if (worker >= backups_.size()) backups_.resize(worker + 1);
    if (backups_[worker] != nullptr) return Reason::none;
    auto fresh = std::make_unique<Buffer>();
    if (!fresh->allocate(part_.count() * slot_size(params_.dtype))) return Reason::no_memory;
    copy_to_backup({0, part_.count()}, fresh->at(0));
    backups_[worker] = std::move(fresh);
    return Reason::none;
}

Reason Shard::note_pull(uint32_t worker, const Range &range) {
    if (!info_.is(RuleInfo::backs_up)) return Reason::none;
    Reason reason = back_up(worker);
    if (reason != Reason::none) return reason;
    copy_to_backup(local(range),
                   backups_[worker]->at(local(range).first * slot_size(params_.dtype)));
    return Reason::none;
}

void Shard::copy_to_backup(const Range &local, char *to) const {
    if (values_.narrow())
        values_.read(local, reinterpret_cast<float *>(to));
    else
        std::memcpy(to, values_.at(local.first), local.count * size_);
}

Reason Shard::push(const Range &range, const void *g, bool begins, uint32_t worker) {
    Reason reason = info_.is(RuleInfo::backs_up) ? back_up(worker) : allocate_slots();
    if (reason != Reason::none) return reason;
    if (numbered_) [[unlikely]]
        begin_update(updates_ + begins);
    const Pushed pushed = {local(range), static_cast<const char *>(g)};
    if (function_ != nullptr)
        reason = run_update({&pushed, 1});
    else
        update(local(range), g, worker);
    updates_ += begins && reason == Reason::none;
    return reason;
}

Reason Shard::collect(uint32_t sum, const Range &range, const void *g, double weight) {
    Reason reason = allocate_slots(); // done now, since apply() must not fail for want of memory
    if (reason != Reason::none) return reason;
    if (sum >= sums_.size()) sums_.resize(sum + 1);
    Aggregate &sums = sums_[sum];
    if (!sums.allocated() && !sums.allocate(added_.element_bytes(), part_.count()))
        return Reason::no_memory;
    if (by_row_) make_room_to_open(params_.row_length);
    const Pushed pushed = {local(range), added_.of(g, range.count, weight)};
    if (combines_by_function()) return combine_by_function(sums, {&pushed, 1});
    add(sums, pushed.local, pushed.g);
    return Reason::none;
}

void Shard::add(Aggregate &sums, const Range &local, const void *g) {
    sums.merge(local, g, [&](const Range &part, void *to, const char *from) {
        added_.add(to, from, part.count);
    });
    sums.mark(local);
}

Reason Shard::add_up(const std::vector<uint32_t> &sums, Aggregate *&total) {
    Reason reason = Reason::none;
    for (uint32_t sum : sums) {
        if (sum >= sums_.size() || !sums_[sum].allocated()) continue;
        if (total == nullptr) {
            total = &sums_[sum];
            continue;
        }
        if (combines_by_function() && reason == Reason::none)
            reason = add_by_function(*total, sums_[sum]);
        else
            sums_[sum].take([&](const Range &block, void *g) { add(*total, block, g); });
    }
    return reason;
}

Reason Shard::apply(const ClockUpdate &made_of) {
    begin_clock(made_of.clock);
    Aggregate *total = nullptr;
    Reason reason = add_up(made_of.sums, total);
    if (total == nullptr) return reason;
    if (reason != Reason::none) { // the sums could not be added up
        total->take([](const Range &, void *) {});
        return reason;
    }
    if (function_ != nullptr) return apply_by_function(*total, made_of.divisor);
    auto update_block = [&](const Range &block, void *g) {
        added_.finish(g, block.count, made_of.divisor);
        update(block, g, 0);
    };
    if (by_row_)
        total->take_rows(params_.row_length, update_block);
    else
        total->take(update_block);
    return Reason::none;
}

void Shard::set_mode(const TableParams &params) {
    take_mode(mode_bits(params), params_);
    sums_.clear();
    bytes_ = bytes_in_mode(params_);
}

void Shard::drop(uint32_t sum) {
    if (sum < sums_.size() && sums_[sum].allocated()) sums_[sum].take([](const Range &, void *) {});
}

void Shard::update_part(const Range &range, uint64_t step, const void *g, uint32_t worker) {
    uint64_t slot = slot_size(params_.dtype), item = slot_item();
    RuleTarget target = {open(range), {}};
    for (uint32_t i = 0; i < info_.slot_count(); ++i)
        target.slots[i] = slots_[i]->at(range.first / item * slot);
    if (info_.is(RuleInfo::backs_up)) target.slots[0] = backups_[worker]->at(range.first * slot);
    rule_.apply(step, target, g, range.count);
    close(range);
}

void Shard::update_segments(uint64_t row, uint64_t step, const void *g) {
    char *slots[max_slots * DTRAIN_SEGMENTS];
    for (size_t i = 0; i < slots_.size(); ++i)
        slots[i] = slots_[i]->at(row * arrays_[i].numbers * arrays_[i].size);
    const Range range = {row * params_.row_length, params_.row_length};
    segments_->apply(step, open(range), slots, static_cast<const char *>(g));
    close(range);
}

void Shard::update(const Range &whole, const void *g, uint32_t worker) {
    before_change(whole);
    auto from = [&](uint64_t first) {
        return static_cast<const char *>(g) + (first - whole.first) * size_;
    };
    auto part = [&](const Range &range, uint64_t step) {
        if (segments_ != nullptr)
            return update_segments(range.first / params_.row_length, step, from(range.first));
        update_part(range, step, from(range.first), worker);
    };
    uint64_t most = by_row_ ? params_.row_length : whole.count;
    for (uint64_t first = whole.first; first < whole.end(); first += most) {
        Range range = {first, most};
        if (counted_ > 1)
            steps_.advance({first / most, 1},
                           [&](const Range &, uint64_t step) { part(range, step); });
        else if (counted_ == 1)
            steps_.advance(range, part);
        else
            part(range, number_);
    }
}

} // namespace dtrain::ps
