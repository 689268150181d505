// Applies a rule block by block: norms, clipping, the kernels, the proximal step.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/update_rule.h"

#include "base/elementary.h"
#include "device/kernels.h"
#include "ps/table/dtype.h"
#include "ps/table/rules.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr uint64_t block = 512; // elements per block if a rule needs several passes

template <class T>
constexpr uint32_t dtype_of = std::is_same_v<T, double> ? DTRAIN_F64 : DTRAIN_F32;

template <class T> void add_norms(Norms &norms, const T *w, const T *direction, uint64_t n) {
    double sums[3];
    device::dots(w, direction, n, dtype_of<T>, sums);
    norms.values += sums[0];
    norms.direction += sums[1];
}

// A pointer to element `at` of a state array; nullptr stays nullptr.
template <class T> T *from(void *state, uint64_t at) {
    return state != nullptr ? static_cast<T *>(state) + at : nullptr;
}

} // namespace

UpdateRule::UpdateRule(const TableParams &p, const InstructionSet &set)
    : info_(&rule_info(p.rule)), rule_(p.rule), set_(&set), clip_norm_(p.clip_norm),
      dtype_(computed_dtype(p)), norms_(ps::takes_norms(p)) {
    step_.rate = p.learning_rate;
    step_.momentum = p.momentum;
    step_.beta1 = p.beta1;
    step_.beta2 = p.beta2;
    step_.rho = p.rho;
    step_.epsilon = p.epsilon;
    step_.l1 = p.l1;
    step_.l2 = p.l2;
    step_.clip = p.clip_value;
    step_.ftrl_beta = p.ftrl_beta;
    step_.compensation = p.compensation;
    step_.trust = p.trust;
    (info_->is(RuleInfo::own_decay) ? step_.own_decay : step_.decay) = p.weight_decay;
    adjusts_ = p.clip_value > 0 || p.clip_norm > 0 || step_.decay != 0;
    proximal_ = (p.l1 > 0 || p.l2 > 0) && !info_->is(RuleInfo::own_proximal);
}

Step UpdateRule::numbered(uint64_t number) const {
    Step step = step_;
    step.first = 1 / (1 - whole_power(step.beta1, number));
    step.second = 1 / (1 - whole_power(step.beta2, number));
    step.share = 1 / static_cast<double>(number);
    return step;
}

UpdatePlan UpdateRule::plan(uint64_t number) const {
    return {rule_,
            dtype_,
            info_->counts() ? numbered(number) : step_,
            clip_norm_,
            info_->ratio != nullptr,
            adjusts_,
            proximal_};
}

// Calls f(w, g, at, n) for each block of the values.
template <class T, class F>
void UpdateRule::blocks(const RuleTarget &target, const T *g, uint64_t count, F &&f) const {
    auto *w = static_cast<T *>(target.values);
    const uint64_t most = adjusts_ || proximal_ || norms_ ? block : count;
    for (uint64_t at = 0; at < count; at += most) f(w + at, g + at, at, std::min(most, count - at));
}

template <class T>
const T *UpdateRule::adjusted(const Step &step, T *w, const T *g, T *to, uint64_t n) const {
    if (!adjusts_) return g;
    adjust_kernels.of<T> (*set_)(step, w, g, to, nullptr, nullptr, n);
    return to;
}

template <class T>
void UpdateRule::plain(const Step &step, const RuleTarget &target, const T *g,
                       uint64_t count) const {
    Kernel<T> update = info_->update->of<T>(*set_), proximal = proximal_kernels.of<T>(*set_);
    bool shared = info_->is(RuleInfo::row_state); // row state is already included in step.ratio
    if (!adjusts_ && !proximal_) {                // one pass, and no block to adjust in
        const RuleTarget none;
        void *const *slots = shared ? none.slots : target.slots;
        return update(step, static_cast<T *>(target.values), g, static_cast<T *>(slots[0]),
                      static_cast<T *>(slots[1]), static_cast<T *>(slots[2]), count);
    }
    blocks(target, g, count, [&](T *w, const T *raw, uint64_t at, uint64_t n) {
        T room[block];
        T *state[max_slots] = {};
        for (uint32_t i = 0; i < max_slots && !shared; ++i) state[i] = from<T>(target.slots[i], at);
        const T *used = adjusted(step, w, raw, room, n);
        update(step, w, used, state[0], state[1], state[2], n);
        if (proximal_) proximal(step, w, used, nullptr, nullptr, nullptr, n);
    });
}

template <class T>
double UpdateRule::finite_norm(const Step &step, const RuleTarget &target, const T *g,
                               uint64_t count) const {
    T room[block];
    Norms norms;
    blocks(target, g, count, [&](T *w, const T *raw, uint64_t, uint64_t n) {
        const T *used = adjusted(step, w, raw, room, n);
        std::transform(used, used + n, room, [](T x) { return std::isfinite(x) ? x : T(0); });
        add_norms(norms, room, room, n);
    });
    return std::sqrt(norms.direction);
}

template <class T>
void UpdateRule::row(Step &step, const RuleTarget &target, const T *g, uint64_t count) const {
    T room[block], along[block];
    if (clip_norm_ > 0) {
        Norms norms;
        Step clipped = step;
        clipped.decay = 0;
        blocks(target, g, count, [&](T *w, const T *raw, uint64_t, uint64_t n) {
            add_norms(norms, w, adjusted(clipped, w, raw, room, n), n);
        });
        double norm = std::sqrt(norms.direction);
        if (!std::isfinite(norm)) norm = finite_norm(clipped, target, g, count);
        if (norm > clip_norm_) step.scale = clip_norm_ / norm;
    }
    if (info_->ratio != nullptr) {
        Norms norms;
        Kernel<T> direction =
            info_->direction != nullptr ? info_->direction->of<T>(*set_) : nullptr;
        blocks(target, g, count, [&](T *w, const T *raw, uint64_t at, uint64_t n) {
            const T *used = adjusted(step, w, raw, room, n);
            if (direction != nullptr)
                direction(step, w, used, from<T>(target.slots[0], at), from<T>(target.slots[1], at),
                          along, n);
            add_norms(norms, w, direction != nullptr ? along : used, n);
        });
        T *kept = info_->is(RuleInfo::row_state) ? static_cast<T *>(target.slots[0]) : nullptr;
        double state = kept != nullptr ? *kept : 0;
        step.ratio = info_->ratio(step, norms, count, state);
        if (kept != nullptr) *kept = static_cast<T>(state);
    }
    plain(step, target, g, count);
}

template <class T>
void UpdateRule::optimize(uint64_t number, const RuleTarget &target, const void *g,
                          uint64_t count) const {
    const auto *gradient = static_cast<const T *>(g);
    if (!norms_ && !info_->counts()) return plain(step_, target, gradient, count);
    Step step = info_->counts() ? numbered(number) : step_;
    if (norms_)
        row(step, target, gradient, count);
    else
        plain(step, target, gradient, count);
}

void UpdateRule::apply(uint64_t number, const RuleTarget &target, const void *g,
                       uint64_t count) const {
    if (info_ == &rule_info(DTRAIN_RULE_ASSIGN)) {
        std::memcpy(target.values, g, count * device::dtype_size(dtype_));
        return;
    }
    if (info_->update == nullptr)
        return device::reduce(target.values, g, count, dtype_, info_->combine);
    if (dtype_ == DTRAIN_F64) return optimize<double>(number, target, g, count);
    optimize<float>(number, target, g, count);
}

void fill(uint32_t dtype, void *values, uint64_t count, double value) {
    visit_dtype(dtype, [&]<class T>() {
        std::fill_n(static_cast<T *>(values), count, converted<T>(value));
    });
}

} // namespace dtrain::ps
