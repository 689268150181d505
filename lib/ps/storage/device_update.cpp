// Submits the kernels of an update: the passes of the rule, or of each segment's.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_shard.h"

#include "base/clock.h"
#include "base/hash.h"
#include "device/kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace dtrain::ps {
namespace {

// Of a pass of DTRAIN_DV_UPDATE (dtrain_dv_update_t::norms).
uint64_t norm_bytes(uint64_t rows, uint64_t columns) {
    return rows * (2 + 3 * (columns / DTRAIN_DV_NORM_BLOCK + 1)) * sizeof(double);
}

dtrain_dv_update_t numbers_of(const UpdatePlan &plan) {
    const Step &s = plan.step;
    dtrain_dv_update_t u = {};
    u.struct_size = sizeof u;
    u.rate = s.rate;
    u.momentum = s.momentum;
    u.beta1 = s.beta1;
    u.beta2 = s.beta2;
    u.rho = s.rho;
    u.epsilon = s.epsilon;
    u.l1 = s.l1;
    u.l2 = s.l2;
    u.ftrl_beta = s.ftrl_beta;
    u.trust = s.trust;
    u.decay = s.decay;
    u.own_decay = s.own_decay;
    u.clip = s.clip;
    u.clip_norm = plan.clip_norm;
    u.first = s.first;
    u.second = s.second;
    u.share = s.share;
    const std::pair<bool, uint32_t> flags[] = {{plan.adjusts, DTRAIN_DV_ADJUSTS},
                                               {plan.proximal, DTRAIN_DV_PROXIMAL},
                                               {plan.clip_norm > 0, DTRAIN_DV_CLIPPED},
                                               {plan.takes_norms(), DTRAIN_DV_BY_ROW}};
    for (const auto &[set, flag] : flags)
        if (set) u.flags |= flag;
    return u;
}

} // namespace

// Values and gradients, with the state from the same elements or rows on.
struct DeviceShard::Rows {
    uint8_t *values, *gradients;
    uint8_t *slots[max_slots];
    uint64_t rows, columns, stride;
};

struct DeviceShard::Launch {
    dtrain_dv_work_t work = {};
    dtrain_dv_update_t update = {};
    void *to = nullptr;
    const void *from[2] = {};

    Launch() { work.struct_size = sizeof work; }
    Status run(const dtrain_dv_ops_t &ops, dtrain_dv_queue_t *queue) const {
        dtrain_dv_work_t its = work;
        its.dsts = &to;
        its.srcs = from;
        its.m = 1;
        its.update = its.kind == DTRAIN_DV_UPDATE ? &update : nullptr;
        return ops.run(queue, &its);
    }
};

Status DeviceShard::submit(Launches &&launches) {
    return stage_->submit(user(),
                          [launches = std::move(launches),
                           &ops = stage_->domain().ops()](dtrain_dv_queue_t *queue) -> Status {
                              for (const Launch &launch : launches)
                                  if (Status s = launch.run(ops, queue); s != DTRAIN_OK) return s;
                              return DTRAIN_OK;
                          });
}

uint64_t DeviceShard::scratch_bytes() const {
    const uint64_t wide = narrow_ ? capacity_ * sizeof(float) : 0;
    const uint64_t columns = by_row_ ? params_.row_length : capacity_;
    return for_device(capacity_ * size_) + for_device(wide) +
           (by_row_ ? norm_bytes(capacity_ / columns, columns) : 0);
}

// A server loads them in a thread of its own, which may wait a while.
constexpr int64_t longest_wait = 10 * second;

// The kernels are loaded now, and whether there is one for each rule is seen from an empty update.
Status DeviceShard::prepare() {
    accel::Domain &domain = stage_->domain();
    const uint32_t computed = computed_dtype(params_);
    std::vector<uint32_t> needed = {computed};
    if (narrow_) needed.push_back(storage_dtype_of(params_));
    if (info_.update != nullptr || segments_ != nullptr)
        needed.push_back(DTRAIN_DV_RULES | computed);
    for (const uint32_t kernels : needed)
        if (set_error_text("");
            !domain.prepare(kernels, monotonic_clock().now_ns() + longest_wait)) {
            const std::string why = error_text();
            return fail(DTRAIN_ERR_UNSUPPORTED, "accelerator %s cannot hold the table: %s",
                        domain.name().c_str(),
                        why.empty() ? "it lacks kernels for its dtype" : why.c_str());
        }
    Launches launches;
    update_part({}, {}, 1, launches);
    const Status s = submit(std::move(launches));
    return s == DTRAIN_OK ? stage_->await_last() : s;
}

Status DeviceShard::update_gathered() {
    const Range whole = std::exchange(gathered_, {});
    if (whole.count == 0) return DTRAIN_OK;
    before_change(whole);
    Launches launches;
    update(whole, launches);
    return submit(std::move(launches));
}

void DeviceShard::update(const Range &whole, Launches &out) {
    if (narrow_) convert(whole, true, out);
    auto part = [&](const Range &range, uint64_t step) { update_part(whole, range, step, out); };
    if (counted_ > 1)
        steps_.advance({whole.first / counted_, whole.count / counted_},
                       [&](const Range &rows, uint64_t step) {
                           part({rows.first * counted_, rows.count * counted_}, step);
                       });
    else if (counted_ == 1)
        steps_.advance(whole, part);
    else
        part(whole, number_);
    if (narrow_) convert(whole, false, out);
}

// Between the stored values and the wide ones, as Shard::open() and close().
void DeviceShard::convert(const Range &whole, bool opens, Launches &out) {
    void *const stored = values(whole.first), *const wide = wide_values();
    const bool random = !opens && accumulates(params_);
    Launch &made = out.emplace_back();
    made.to = opens ? wide : stored;
    made.from[0] = opens ? stored : wide;
    dtrain_dv_work_t &work = made.work;
    work.kind = random ? DTRAIN_DV_ROUND : DTRAIN_DV_CONVERT;
    work.dtype = opens ? storage_dtype_of(params_) : uint32_t{DTRAIN_F32};
    work.op = opens ? uint32_t{DTRAIN_F32} : storage_dtype_of(params_);
    work.count = whole.count;
    work.n = 1;
    work.seed = uint32_t(mix(mix(params_.seed) ^ updates_) >> 32);
    work.first = uint32_t(whole.first);
}

uint8_t *DeviceShard::wide_values() const {
    return stage_->scratch() + for_device(capacity_ * size_);
}

void DeviceShard::update_part(const Range &whole, const Range &part, uint64_t step, Launches &out) {
    const uint64_t at = (part.first - whole.first) * size_;
    Rows rows = {narrow_ ? wide_values() + at : values(part.first),
                 stage_->scratch() + at,
                 {},
                 1,
                 part.count,
                 part.count};
    if (segments_ == nullptr) {
        for (size_t i = 0; i < state_.size(); i++)
            rows.slots[i] = slot(i) + part.first / state_[i].elements * state_[i].size;
        if (by_row_) {
            rows.rows = part.count / params_.row_length;
            rows.columns = rows.stride = params_.row_length;
        }
        return add_rule(rule_.plan(step), rows, out);
    }
    const uint64_t row = part.first / params_.row_length;
    rows.rows = part.count / params_.row_length;
    rows.stride = params_.row_length;
    size_t next = 0; // of state_
    segments_->for_each(
        [&](const UpdateRule &rule, uint64_t first, uint64_t count, uint32_t slots) {
            Rows its = rows;
            its.values += first * size_;
            its.gradients += first * size_;
            its.columns = count;
            for (uint32_t i = 0; i < slots; i++, next++)
                its.slots[i] = slot(next) + row * state_[next].numbers * state_[next].size;
            add_rule(rule.plan(step), its, out);
        });
}

void DeviceShard::add_rule(const UpdatePlan &plan, const Rows &rows, Launches &out) const {
    const RuleInfo &info = rule_info(plan.rule);
    Launch made;
    made.to = rows.values;
    made.work.dtype = plan.dtype;
    made.work.count = rows.rows * rows.columns;
    if (info.update == nullptr && segments_ == nullptr) {
        made.from[0] = rows.values;
        made.from[1] = rows.gradients;
        made.work.kind = DTRAIN_DV_REDUCE;
        made.work.op = info.combine;
        made.work.n = 2;
        out.push_back(made);
        return;
    }
    made.from[0] = rows.gradients;
    made.work.kind = DTRAIN_DV_UPDATE;
    made.work.op = plan.rule;
    made.work.n = 1;
    made.update = numbers_of(plan);
    made.update.columns = rows.columns;
    made.update.stride = rows.stride;
    std::copy_n(rows.slots, max_slots, made.update.slots);
    made.update.norms = wide_values() + (narrow_ ? for_device(capacity_ * sizeof(float)) : 0);
    const bool clips = plan.clip_norm > 0;
    const std::pair<uint32_t, bool> passes[] = {{DTRAIN_DV_PASS_CLIP, clips},
                                                {DTRAIN_DV_PASS_SCALE, clips},
                                                {DTRAIN_DV_PASS_DIRECTION, plan.ratio},
                                                {DTRAIN_DV_PASS_RATIO, plan.ratio},
                                                {DTRAIN_DV_PASS_APPLY, true}};
    for (const auto &[pass, needed] : passes) {
        if (!needed) continue;
        made.update.pass = pass;
        out.push_back(made);
    }
}

} // namespace dtrain::ps
