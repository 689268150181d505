// Codecs that encode a vector block by block, each block independently.
// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16 store elements in that format. int8 stores a scale (f32), then a byte per element.
// onebit stores a scale, then a bit per element, set for negative ones. The scale of a block that
// contains a NaN or infinity is NaN. onebit follows Seide et al.: 1-bit stochastic gradient
// descent, Interspeech 2014, with one scale, the mean magnitude, as in Karimireddy et al.: Error
// feedback fixes SignSGD, ICML 2019.
#pragma once
#include "compression/params.h"

#include <cstdint>

namespace dtrain::compression {

// Pure: results depend only on the arguments, bit for bit. n <= block() elements; the last block
// may be shorter, but its encoding has the full size.
class BlockCodec {
  public:
    explicit BlockCodec(const Params &params)
        : kind_(params.kind), block_(params.block), stochastic_(params.is_stochastic()) {}

    uint32_t block() const { return block_; }
    uint64_t block_bytes() const;
    // random: for stochastic rounding; must differ for each block and step.
    void encode(const float *x, uint32_t n, uint8_t *out, uint64_t random) const;
    void decode(const uint8_t *in, uint32_t n, float *x) const;

  private:
    uint32_t kind_, block_;
    bool stochastic_;
};

} // namespace dtrain::compression
