// Makes rows, applies and collects pushes to a sparse shard, and gathers values.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/sparse_shard.h"

#include "base/hash.h"
#include "device/kernels.h"
#include "ps/storage/row_image.h"
#include "ps/table/narrow.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr size_t block = 128;
constexpr uint64_t usual_answer = 32 << 10;

constexpr uint64_t aligned(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

} // namespace

RowLayout::RowLayout(const TableParams &p) : values(row_bytes(p.storage_dtype, p.dtype, p.dim)) {
    uint64_t unit = device::dtype_size(storage_dtype_of(p)), end = values;
    auto place = [&](uint64_t size, uint64_t numbers) {
        unit = std::max(unit, size);
        const uint64_t at = aligned(end, size);
        end = at + size * numbers;
        return at;
    };
    for (const StateArray &array : slots_of(p)) {
        const uint64_t numbers = array.numbers_of(p.dim);
        slots.push_back({place(array.size, numbers), array.size * numbers});
    }
    const bool steps = counts_steps(p);
    steps_at = steps ? place(sizeof(uint32_t), 1) : end;
    bytes = aligned(end, unit);
}

SparseShard::SparseShard(const TableParams &params, const dtrain_function_t *function,
                         uint32_t workers)
    : Storage(params, function), initial_{Distribution(params.distribution),
                                          computed_dtype(params),
                                          params.dim,
                                          params.initial,
                                          params.spread,
                                          params.seed},
      layout_(params), narrow_(is_stored_narrow(params)),
      lie_as_sent_(storage_dtype_of(params) == wire_dtype_of(params)),
      row_bytes_(params.dim * device::dtype_size(computed_dtype(params))),
      sent_(row_bytes(params.wire_dtype, params.dtype, params.dim)),
      own_limit_(params.max_bytes > 0 ? params.max_bytes : UINT64_MAX), limit_(own_limit_),
      rows_(layout_.bytes), counts_(counts_steps(params)), added_(params, combines_by_function()),
      sum_bytes_(params.dim * added_.element_bytes()), pushers_(params, workers),
      initial_row_(layout_.bytes), answers_(usual_answer) {
    const std::vector<StateArray> slots = slots_of(params);
    for (size_t i = 0; i < slots.size(); i++)
        fill(slots[i].dtype, &initial_row_[layout_.slots[i].at], slots[i].numbers_of(params.dim),
             slots[i].initial);
    make_room_to_open(1);
    if (initial_.distribution == Distribution::uniform) {
        initial_.a = params.initial - params.spread;
        initial_.b = params.initial + params.spread;
    }
}

uint64_t SparseShard::memory() const {
    uint64_t bytes = rows_.memory();
    for (const RowStore &sums : sums_) bytes += sums.memory();
    return bytes;
}

const char *SparseShard::initial_values(uint64_t key) {
    if (!narrow_) {
        initial_.fill(key, initial_row_.data());
    } else {
        drawn_.resize(params_.dim);
        initial_.fill(key, drawn_.data());
        write_row(initial_row_.data(), storage_dtype_of(params_), drawn_.data(), params_.dim);
    }
    return initial_row_.data();
}

void SparseShard::make_row(uint64_t key, char *row) {
    if (narrow_)
        std::memcpy(row, initial_values(key), layout_.values);
    else
        initial_.fill(key, row);
    std::memcpy(row + layout_.values, initial_row_.data() + layout_.values,
                layout_.bytes - layout_.values);
}

void SparseShard::make_room_to_open(size_t count) {
    const size_t numbers = narrow_ ? count * params_.dim : 0;
    if (wide_.size() < numbers) wide_.resize(numbers);
}

char *SparseShard::open(const char *row, size_t i) {
    if (!narrow_) return const_cast<char *>(row);
    float *values = &wide_[i * params_.dim];
    read_row(values, storage_dtype_of(params_), row, params_.dim);
    return reinterpret_cast<char *>(values);
}

void SparseShard::close(uint64_t key, char *row, size_t i) {
    if (!narrow_) return;
    const uint64_t seed = mix(mix(params_.seed ^ mix(key)) ^ updates_);
    write_row(row, storage_dtype_of(params_), &wide_[i * params_.dim], params_.dim,
              {accumulates(params_), seed});
}

Reason SparseShard::no_room() const {
    if (limit_ == UINT64_MAX) return Reason::no_memory;
    return limit_ == own_limit_ ? Reason::table_limit : Reason::rows_limit;
}

Reason SparseShard::claim(const uint64_t *keys, size_t count, const uint32_t *sum) {
    if (limit_ != UINT64_MAX && !has_room(keys, count, sum)) return no_room();
    before_change(keys, count);
    claimed_.resize(count);
    made_.clear();
    made_.reserve(count);
    const size_t done = rows_.obtain(
        keys, count,
        [&](uint64_t key, char *row) {
            make_row(key, row);
            made_.push_back(key);
        },
        [&](size_t i, char *row) { claimed_[i] = row; });
    if (kept_rows_.any())
        for (const uint64_t key : made_) kept_rows_.made(key);
    if (done == count) return Reason::none;
    undo_claim();
    return Reason::no_memory;
}

void SparseShard::undo_claim() {
    for (const uint64_t key : made_)
        if (rows_.erase(key)) kept_rows_.erased(key);
    made_.clear();
}

void SparseShard::update(uint64_t key, char *row, const void *g) {
    uint64_t number = number_;
    if (counts_) {
        uint32_t steps;
        std::memcpy(&steps, row + layout_.steps_at, sizeof steps);
        if (steps < UINT32_MAX) steps++; // beyond that, the corrections no longer change
        std::memcpy(row + layout_.steps_at, &steps, sizeof steps);
        number = steps;
    }
    if (segments_ != nullptr) {
        char *slots[max_slots * DTRAIN_SEGMENTS];
        for (size_t i = 0; i < layout_.slots.size(); i++) slots[i] = row + layout_.slots[i].at;
        segments_->apply(number, open(row), slots, static_cast<const char *>(g));
        return close(key, row);
    }
    RuleTarget target = {open(row), {}};
    for (size_t i = 0; i < layout_.slots.size(); i++) target.slots[i] = row + layout_.slots[i].at;
    rule_.apply(number, target, g, params_.dim);
    close(key, row);
}

Reason SparseShard::push(const uint64_t *keys, size_t count, const void *g, bool begins) {
    Reason reason = claim(keys, count);
    if (reason != Reason::none) return reason;
    if (numbered_) [[unlikely]]
        begin_update(updates_ + begins);
    const auto *from = static_cast<const char *>(g);
    if (function_ != nullptr) {
        pushed_.resize(count);
        for (size_t i = 0; i < count; i++) pushed_[i] = from + i * row_bytes_;
        reason = run_update(keys, claimed_.data(), pushed_.data(), count);
        if (reason != Reason::none) return reason;
    } else {
        for (size_t i = 0; i < count; i++) update(keys[i], claimed_[i], from + i * row_bytes_);
    }
    updates_ += begins;
    return Reason::none;
}

Reason SparseShard::collect(uint32_t sum, const uint64_t *keys, size_t count, const void *g,
                            double weight, uint32_t worker) {
    make_sum(sum);
    Reason reason = claim(keys, count, &sum); // done now, since apply() must not lack memory
    if (reason != Reason::none) return reason;
    RowStore &sums = sums_[sum];
    fresh_.clear();
    auto begin = [&](uint64_t key, char *row) {
        if (pushers_.kept()) pushers_.begin(row + sum_bytes_);
        fresh_.emplace_back(key, row);
    };
    size_t made = sums.obtain(keys, count, begin, [&](size_t i, char *row) { claimed_[i] = row; });
    if (made < count) {
        for (const auto &[key, row] : fresh_)
            sums.erase(key); // otherwise the clock would update their rows
        undo_claim();
        return Reason::no_memory;
    }
    if (kept_sums_[sum].any())
        for (const auto &[key, row] : fresh_) kept_sums_[sum].made(key);
    auto next = fresh_.begin(); // in the order of the keys
    const bool combines = combines_by_function();
    if (combines) function_->begin();
    const char *from = added_.of(g, count * params_.dim, weight);
    for (size_t i = 0; i < count; i++, from += sum_bytes_) {
        if (pushers_.kept()) pushers_.add(claimed_[i] + sum_bytes_, worker, weight);
        if (next != fresh_.end() && next->second == claimed_[i]) {
            std::memcpy(claimed_[i], from, sum_bytes_);
            ++next;
        } else if (combines) {
            function_->add(keys[i], claimed_[i], params_.dim).pushed = from;
        } else {
            added_.add(claimed_[i], from, params_.dim);
        }
    }
    reason = combines ? function_->combine(updates_) : Reason::none;
    for (size_t i = 0; i < fresh_.size() && reason != Reason::none; i++)
        if (sums.erase(fresh_[i].first)) kept_sums_[sum].erased(fresh_[i].first);
    return reason;
}

Reason SparseShard::add_others(const uint64_t *keys, char *const *sums, size_t count,
                               std::span<const uint32_t> others) {
    const bool combines = combines_by_function();
    Reason reason = Reason::none;
    for (const uint32_t other : others) {
        if (other >= sums_.size() || reason != Reason::none) continue;
        if (combines) function_->begin();
        sums_[other].find(keys, count, [&](size_t i, const char *its) {
            if (its == nullptr) return;
            if (combines)
                function_->add(keys[i], sums[i], params_.dim).pushed = its;
            else
                added_.add(sums[i], its, params_.dim);
            if (pushers_.kept()) pushers_.add_others(sums[i] + sum_bytes_, its + sum_bytes_);
        });
        if (combines) reason = function_->combine(updates_);
        for (size_t i = 0; i < count; i++) sums_[other].erase(keys[i]);
    }
    return reason;
}

void SparseShard::set_mode(const TableParams &params) {
    take_mode(mode_bits(params), params_);
    sums_.clear();
    kept_sums_.clear();
}

void SparseShard::drop(uint32_t sum) {
    if (sum < sums_.size()) sums_[sum].clear();
    recount_sums();
}

Reason SparseShard::apply(const ClockUpdate &made_of) {
    begin_clock(made_of.clock);
    uint64_t keys[block];
    char *values[block], *rows[block];
    size_t count = 0;
    Reason reason = Reason::none;
    std::span<const uint32_t> others = made_of.sums; // the sums after the current one
    auto update_block = [&] {
        if (reason == Reason::none) reason = add_others(keys, values, count, others);
        for (size_t i = 0; i < count; i++) {
            const bool own = pushers_.kept(); // the row has a divisor of its own
            added_.finish(values[i], params_.dim,
                          own ? pushers_.weight(values[i] + sum_bytes_) : made_of.divisor);
        }
        before_change(keys, count);
        rows_.find(keys, count, [&](size_t i, char *row) {
            rows[i] = row;
            if (function_ == nullptr) update(keys[i], row, values[i]);
        });
        if (function_ != nullptr && reason == Reason::none)
            reason = run_update(keys, rows, values, count);
        count = 0;
    };
    for (const uint32_t sum : made_of.sums) {
        others = others.subspan(1);
        if (sum >= sums_.size()) continue;
        sums_[sum].for_each([&](uint64_t key, char *values_of) {
            keys[count] = key;
            values[count] = values_of;
            if (++count == block) update_block();
        });
        update_block();
        sums_[sum].clear();
    }
    recount_sums();
    return reason;
}

Reason SparseShard::set(const uint64_t *keys, size_t count, const void *values) {
    Reason reason = claim(keys, count);
    if (reason != Reason::none) return reason;
    const auto *from = static_cast<const char *>(values);
    for (size_t i = 0; i < count; i++, from += row_bytes_)
        if (narrow_)
            write_row(claimed_[i], storage_dtype_of(params_), reinterpret_cast<const float *>(from),
                      params_.dim);
        else
            std::memcpy(claimed_[i], from, row_bytes_);
    return Reason::none;
}

void SparseShard::erase(const uint64_t *keys, size_t count) {
    before_change(keys, count);
    for (size_t i = 0; i < count; i++) {
        if (rows_.erase(keys[i])) kept_rows_.erased(keys[i]);
        for (size_t s = 0; s < sums_.size(); s++) // otherwise apply() would look for the row
            if (sums_[s].erase(keys[i])) kept_sums_[s].erased(keys[i]);
    }
}

std::shared_ptr<const Buffer> SparseShard::gather(const uint64_t *keys, size_t count) {
    std::shared_ptr<Buffer> values = answers_.take(count * sent_);
    if (values == nullptr) return nullptr;
    const uint32_t stored = storage_dtype_of(params_), wire = wire_dtype_of(params_);
    rows_.find(keys, count, [&](size_t i, const char *row) {
        char *to = values->at(i * sent_);
        if (row == nullptr && !narrow_ && lie_as_sent_) return initial_.fill(keys[i], to);
        if (row == nullptr) row = initial_values(keys[i]);
        if (lie_as_sent_)
            std::memcpy(to, row, sent_);
        else
            convert_row(to, wire, row, stored, params_.dim);
    });
    return values;
}

} // namespace dtrain::ps
