// PowerSGD: sends a matrix of low rank instead of the vector.
// SPDX-License-Identifier: Apache-2.0
//
// The vector is an n x m matrix M (row by row, padded with zeros). The sum of all ranks' M is
// approximated by P Q^T with P n x r and Q m x r: P = M Q, summed over ranks and orthonormalized;
// Q = M^T P, summed over ranks. The next run starts from Q, so that runs are steps of one power
// iteration. Source: Vogels et al.: PowerSGD, NeurIPS 2019.
#pragma once
#include "compression/method.h"

#include <vector>

namespace dtrain::compression {

class LowRank final : public Method {
  public:
    LowRank(const Params &params, Group group);
    // Whether P and Q together are smaller than the vector.
    static bool pays(const Params &params);
    void begin(const float *send, float *recv, bool average) override;
    Action next() override;
    void reset() override;
    uint64_t sent_bytes() const override {
        return allreduce_bytes((p_.size() + q_.size()) * sizeof(float), group_.size);
    }
    double kept_square() const override;

  private:
    enum class Stage { multiply, orthonormalize, transpose, expand, renew, done };

    // Calls f(row, first element, elements) for the next few rows; returns whether all rows are
    // done.
    template <class F> bool some_rows(F f);
    Action sum(std::vector<float> &factor, Stage then);
    void multiply_row(uint64_t row, uint64_t first, uint64_t n);
    void expand_row(uint64_t row, uint64_t first, uint64_t n);
    void renew_start();

    const Params params_;
    const Group group_;
    std::vector<float> p_, q_; // column by column
    std::vector<float> kept_;
    std::vector<float> next_q_, row_;
    const float *send_ = nullptr;
    const float *vector_ = nullptr; // M: kept_, or the input if there is no feedback
    float *recv_ = nullptr;
    bool average_ = false;
    Stage stage_ = Stage::done;
    uint64_t at_ = 0; // the next row
};

} // namespace dtrain::compression
