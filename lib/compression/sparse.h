// Top-k: every rank sends its elements of greatest magnitude, and keeps the others for later runs.
// SPDX-License-Identifier: Apache-2.0
//
// All ranks gather the k indices and values of each rank and add them up in rank order. Source:
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
    struct Entry { // as sent; one rank's indices ascend
        uint32_t index;
        float value;
    };

    // Calls f(first, n) for the next slice of the vector; returns whether it was the last one. Then
    // the stage becomes `then`.
    template <class F> bool slice(Stage then, F f);
    void take(uint64_t first, uint64_t n);
    Action sum();

    const Params params_;
    const Group group_;
    Selection selection_;
    std::vector<float> kept_;
    std::vector<Entry> own_, all_;
    const float *send_ = nullptr;
    // The values to select from: kept_, or the input if there is no feedback.
    const float *vector_ = nullptr;
    float *recv_ = nullptr;
    bool average_ = false;
    Stage stage_ = Stage::done;
    uint64_t at_ = 0; // the next element; in stage sum: the next entry of all_
    uint64_t taken_ = 0;
};

} // namespace dtrain::compression
