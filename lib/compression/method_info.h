// The descriptor of a method of compression. Each method has a file of its own, with its
// descriptor,
// `<name>_method`, from which everything else that knows the method follows (docs/EXTENDING.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compression/method.h"

#include <cstdint>
#include <memory>

namespace dtrain::compression {

// Encodes a vector block by block, each block independently. Pure: results depend only on the
// arguments, bit for bit. The last block may have fewer than `block` elements, but its encoding has
// the full size.
struct Codec {
    uint64_t (*bytes)(uint32_t block); // of an encoded block
    // stochastic: to round at random, by `random`, which differs for each block and step.
    void (*encode)(const float *x, uint32_t n, uint8_t *out, bool stochastic, uint64_t random);
    void (*decode)(const uint8_t *in, uint32_t n, float *x);
};

struct MethodInfo {
    const char *name;
    // For docs/COMPRESSION.md, in Markdown: what is computed, its source, what it costs, its use.
    const char *formula, *source, *bytes, *cost, *use;
    // Checks the parameters that only this method has, and fills in their defaults.
    Status (*read)(const dtrain_compressor_params_t &given, Params &out);
    std::unique_ptr<Method> (*make)(const Params &params, Group group);
    const Codec *codec = nullptr;  // of methods that compress by blocks
    bool rounds_at_random = false; // knows DTRAIN_COMPRESS_STOCHASTIC
};

// read and make of methods that compress by blocks, with any codec.
Status read_block(const dtrain_compressor_params_t &given, Params &out);
std::unique_ptr<Method> make_sharded(const Params &params, Group group);

const MethodInfo *find_method(uint32_t kind); // nullptr: unknown

} // namespace dtrain::compression
