// INT8: a scale (f32), then a byte per element. The scale of a block that contains a NaN or
// infinity is NaN.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "compression/scale.h"
#include "device/kernels.h"

#include <cfloat>
#include <limits>

namespace dtrain::compression {
namespace {

constexpr float levels = 127;

void encode(const float *x, uint32_t n, uint8_t *out, bool stochastic, uint64_t random) {
    const float most = device::largest(x, n);
    auto *bytes = reinterpret_cast<int8_t *>(out + scale_bytes);
    // For tiny values 127 / most is not finite; error feedback keeps them.
    const bool is_number = most <= FLT_MAX, is_tiny = most < FLT_MIN * levels;
    if (!is_number || is_tiny) {
        put_scale(out, is_number ? 0 : std::numeric_limits<float>::quiet_NaN());
        std::memset(bytes, 0, n);
        return;
    }
    put_scale(out, most / levels);
    if (stochastic)
        device::quantize_randomly(bytes, x, n, levels / most, uint32_t(random));
    else
        device::quantize(bytes, x, n, levels / most);
}

void decode(const uint8_t *in, uint32_t n, float *x) {
    device::dequantize(x, reinterpret_cast<const int8_t *>(in + scale_bytes), n, get_scale(in));
}

constexpr Codec codec = {
    .bytes = [](uint32_t block) { return scale_bytes + block; },
    .encode = encode,
    .decode = decode,
};

} // namespace

extern const MethodInfo int8_method = {
    .name = "int8",
    .formula = "level = round(x * 127 / max of the block), to nearest even, or with "
               "`DTRAIN_COMPRESS_STOCHASTIC` up with the probability of the fraction. Random "
               "numbers depend on seed, rank, step and element only",
    .source = "",
    .bytes = "1/4 (1 byte, 4 bytes per block)",
    .cost = "a maximum, a rounding",
    .use = "the network is the bottleneck, and you want to tune nothing",
    .read = read_block,
    .make = make_sharded,
    .codec = &codec,
    .rounds_at_random = true,
};

} // namespace dtrain::compression
