// No compression: a plain all-reduce as a method.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compression/method.h"

namespace dtrain::compression {

// Used for vectors that compression would not make smaller.
class Uncompressed final : public Method {
  public:
    Uncompressed(const Params &params, Group group) : count_(params.count), group_(group) {}
    void begin(const float *send, float *recv, bool average) override {
        call_ = {.kind = collectives::Kind::allreduce,
                 .send = send,
                 .recv = recv,
                 .count = count_,
                 .dtype = DTRAIN_F32,
                 .op = average ? uint32_t{DTRAIN_AVG} : uint32_t{DTRAIN_SUM}};
        called_ = false;
    }
    Action next() override {
        if (called_) return {.kind = Action::Kind::done};
        called_ = true;
        return {.kind = Action::Kind::call, .call = call_};
    }
    void reset() override {}
    uint64_t sent_bytes() const override {
        return allreduce_bytes(count_ * sizeof(float), group_.size);
    }
    double kept_square() const override { return 0; }

  private:
    const uint64_t count_;
    const Group group_;
    collectives::Call call_;
    bool called_ = false;
};

} // namespace dtrain::compression
