// Chooses the method for the parameters of a compressor.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method.h"

#include "compression/low_rank.h"
#include "compression/sharded.h"
#include "compression/sparse.h"

namespace dtrain::compression {
namespace {

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

} // namespace

std::unique_ptr<Method> make_method(const Params &params, Group group) {
    if (params.kind == DTRAIN_COMPRESS_TOPK) return std::make_unique<Sparse>(params, group);
    if (params.kind != DTRAIN_COMPRESS_POWERSGD) return std::make_unique<Sharded>(params, group);
    if (LowRank::pays(params)) return std::make_unique<LowRank>(params, group);
    return std::make_unique<Uncompressed>(params, group);
}

} // namespace dtrain::compression
