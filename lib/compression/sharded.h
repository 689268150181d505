// Compression by blocks: every rank sums one shard of the vector.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks exchange the shards of their encoded vectors (all-to-all). Each rank decodes and sums its
// own shard in f32, in rank order, and encodes the sum; then all ranks gather the encoded sums.
// What encoding loses is kept on both sides: each rank keeps the rest of its vector, and the
// shard's rank the rest of the sum. Source: Zheng et al.: Communication-efficient distributed
// blockwise momentum SGD with error feedback, NeurIPS 2019.
#pragma once
#include "compression/method_info.h"

#include <vector>

namespace dtrain::compression {

class Sharded final : public Method {
  public:
    Sharded(const Params &params, Group group);
    void begin(const float *send, float *recv, bool average) override;
    Action next() override;
    void reset() override;
    uint64_t sent_bytes() const override { return 2 * shard_bytes_ * (uint64_t(group_.size) - 1); }
    double kept_square() const override;

  private:
    enum class Stage { encode, sum, decode, done };

    // Calls f(block of the vector, its first element, elements) for the next few blocks below
    // `last`; returns whether all are done.
    template <class F> bool some_blocks(uint64_t last, F f);
    void encode(const float *x, uint32_t n, uint8_t *out, uint64_t random) const;
    void encode_block(uint64_t block, uint64_t first, uint32_t n);
    void sum_block(uint64_t block, uint32_t n);
    Action exchange(collectives::Kind kind, Stage then, uint64_t first_block);
    uint64_t random(uint64_t block, uint64_t side) const;

    const Params params_;
    const Group group_;
    const Codec &codec_;
    const uint64_t block_bytes_; // encoded
    const uint64_t blocks_, shard_blocks_, shard_bytes_, first_own_;
    std::vector<float> kept_;                // rest of this rank's vector
    std::vector<float> kept_sum_;            // rest of the shard's sum
    std::vector<uint8_t> out_, in_;          // one shard per rank
    std::vector<float> decoded_, block_sum_; // one block
    const float *send_ = nullptr;
    float *recv_ = nullptr;
    bool average_ = false;
    Stage stage_ = Stage::done;
    uint64_t at_ = 0; // the next block
    uint64_t runs_ = 0;
};

} // namespace dtrain::compression
