// A table's learning rate: the rate that was set, times the schedule's factor for an update.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

class LearningRate {
  public:
    explicit LearningRate(const TableParams &params);

    void set(double rate) { rate_ = rate; }
    double set_to() const { return rate_; }
    // The rate for the table's update t, counted from 1; the same bits on all processors.
    double of(uint64_t t) const { return varies_ ? rate_ * factor(t) : rate_; }
    double factor(uint64_t t) const;

  private:
    double rate_;
    const bool varies_;
    const uint32_t schedule_;
    const uint64_t warmup_, steps_;
    const double decay_;
};

} // namespace dtrain::ps
