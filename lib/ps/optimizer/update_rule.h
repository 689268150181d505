// A table's update rule, ready to be applied: what a push of g does to values w.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/kernels/kernels.h"
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

struct RuleInfo;

struct RuleTarget {
    void *values = nullptr;
    void *slots[max_slots] = {}; // as many as the rule has; backs_up: what the worker pulled
};

class UpdateRule {
  public:
    explicit UpdateRule(const TableParams &params,
                        const KernelTable &kernels = *supported_kernels(0));

    // Applies the rule to `count` elements; with norms, these are one row. number: of this update
    // of these elements, from 1 (read only where the rule counts). The memory of target and g must
    // not overlap. No alignment beyond the element's is needed.
    void apply(uint64_t number, const RuleTarget &target, const void *g, uint64_t count) const;
    void set_rate(double rate) { step_.rate = rate; }
    bool takes_norms() const { return norms_; }

  private:
    template <class T, class F>
    void blocks(const RuleTarget &target, const T *g, uint64_t count, F &&f) const;
    template <class T>
    void plain(const Step &step, const RuleTarget &target, const T *g, uint64_t count) const;
    // Of g as it is clipped, without what is no finite number.
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
    const KernelTable *kernels_;
    Step step_;
    double clip_norm_;
    uint32_t dtype_;
    bool norms_, adjusts_, proximal_;
};

// A constant to values.
void fill(uint32_t dtype, void *values, uint64_t count, double value);

} // namespace dtrain::ps
