// A table's update rule, ready to be applied: updates values w by a push of g.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/kernels.h"
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

struct RuleInfo;

struct RuleTarget {
    void *values = nullptr;
    void *slots[max_slots] = {}; // the rule's slots; backs_up: the values that the worker pulled
};

// What an accelerator needs to make one update to the same bits.
struct UpdatePlan {
    uint32_t rule, dtype; // DTRAIN_RULE_*; that of values and gradients
    Step step;            // without what norms make of it
    double clip_norm;
    bool ratio, adjusts, proximal; // passes that the rule needs
    bool takes_norms() const { return ratio || clip_norm > 0; }
};

class UpdateRule {
  public:
    explicit UpdateRule(const TableParams &params, const InstructionSet &set = *supported_set(0));

    // Applies the rule to `count` elements, which are one row if the rule takes norms. number: the
    // number of this update of these elements, from 1 (used only if the rule counts). The memory of
    // target and g must not overlap. No alignment beyond the element's is needed.
    void apply(uint64_t number, const RuleTarget &target, const void *g, uint64_t count) const;
    UpdatePlan plan(uint64_t number) const;
    void set_rate(double rate) { step_.rate = rate; }
    bool takes_norms() const { return norms_; }

  private:
    template <class T, class F>
    void blocks(const RuleTarget &target, const T *g, uint64_t count, F &&f) const;
    template <class T>
    void plain(const Step &step, const RuleTarget &target, const T *g, uint64_t count) const;
    // The norm of the clipped g, without values that are not finite.
    template <class T>
    double finite_norm(const Step &step, const RuleTarget &target, const T *g,
                       uint64_t count) const;
    template <class T>
    void row(Step &step, const RuleTarget &target, const T *g, uint64_t count) const;
    template <class T>
    void optimize(uint64_t number, const RuleTarget &target, const void *g, uint64_t count) const;
    template <class T>
    const T *adjusted(const Step &step, T *w, const T *g, T *to, uint64_t n) const;
    Step numbered(uint64_t number) const;

    const RuleInfo *info_;
    uint32_t rule_;
    const InstructionSet *set_;
    Step step_;
    double clip_norm_;
    uint32_t dtype_;
    bool norms_, adjusts_, proximal_;
};

// Sets all values to a constant.
void fill(uint32_t dtype, void *values, uint64_t count, double value);

} // namespace dtrain::ps
