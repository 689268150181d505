// Top-k: every rank sends its elements of greatest magnitude, and keeps the others.
// SPDX-License-Identifier: Apache-2.0
//
// The k indices and values of each rank are gathered on all, who add them up in rank order. Source:
// Aji, Heafield: Sparse communication for distributed gradient descent, EMNLP 2017.
#pragma once
#include "compression/method.h"
#include "compression/selection.h"

#include <vector>

namespace dtrain::compression {

class Sparse final : public Method {
  public:
    Sparse(const Params &params, Group group);
    void begin(const float *send, float *recv, bool average) override;
    Action next() override;
    void reset() override;
    uint64_t sent_bytes() const override {
        return params_.kept * sizeof(Entry) * (uint64_t(group_.size) - 1);
    }
    double kept_square() const override;

  private:
    enum class Stage { add, count, take, clear, sum, divide, done };
    struct Entry { // on the wire; indices of one rank ascend
        uint32_t index;
        float value;
    };

    // Calls f(first, n) for the next slice of the vector; whether it was the last one, after which
    // the next stage begins.
    template <class F> bool slice(Stage then, F f);
    void take(uint64_t first, uint64_t n);
    Action sum();

    const Params params_;
    const Group group_;
    Selection selection_;
    std::vector<float> kept_;
    std::vector<Entry> own_, all_;
    const float *send_ = nullptr;
    const float *vector_ = nullptr; // what to send of: kept_, or without feedback the input
    float *recv_ = nullptr;
    bool average_ = false;
    Stage stage_ = Stage::done;
    uint64_t at_ = 0; // element; in sum: entry of all_
    uint64_t taken_ = 0;
};

} // namespace dtrain::compression
