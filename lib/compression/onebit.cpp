// ONEBIT: a scale (f32), then a bit per element, set for negative ones. The scale of a block that
// contains a NaN or infinity is NaN. Follows Seide et al.: 1-bit stochastic gradient descent,
// Interspeech 2014, with one scale, the mean magnitude, as in Karimireddy et al.: Error feedback
// fixes SignSGD, ICML 2019.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "compression/scale.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <limits>

// gcc 12 vectorizes these loops only at a higher optimization level than the default one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

namespace dtrain::compression {
namespace {

// Sums in double, because the sum of the largest floats exceeds a float.
float mean_magnitude(const float *x, uint32_t n) {
    constexpr uint32_t lanes = 8;
    double partial[lanes] = {}, sum = 0;
    uint32_t i = 0;
    for (; n - i >= lanes; i += lanes)
        for (uint32_t k = 0; k < lanes; k++) partial[k] += double(__builtin_fabsf(x[i + k]));
    for (uint32_t k = 0; i < n; i++, k++) partial[k] += double(__builtin_fabsf(x[i]));
    for (double p : partial) sum += p;
    return float(sum / n);
}

// The multiplication moves the lowest bit of each byte to its place in the highest byte.
uint8_t pack_signs(const float *x) {
    uint64_t signs = 0;
    for (uint32_t k = 0; k < 8; k++)
        signs |= uint64_t(std::bit_cast<uint32_t>(x[k]) >> 31) << 8 * k;
    return uint8_t(signs * 0x0102040810204080u >> 56);
}

void encode(const float *x, uint32_t n, uint8_t *out, bool, uint64_t) {
    const bool is_number = device::largest(x, n) <= FLT_MAX;
    put_scale(out, is_number ? mean_magnitude(x, n) : std::numeric_limits<float>::quiet_NaN());
    uint8_t *bits = out + scale_bytes;
    uint32_t i = 0;
    for (; n - i >= 8; i += 8) bits[i / 8] = pack_signs(x + i);
    if (i == n) return;
    float rest[8] = {};
    std::copy(x + i, x + n, rest);
    bits[i / 8] = pack_signs(rest);
}

void decode(const uint8_t *in, uint32_t n, float *x) {
    constexpr uint32_t sign = 0x80000000;
    const uint32_t scale = std::bit_cast<uint32_t>(get_scale(in));
    const uint8_t *bits = in + scale_bytes;
    auto decode_byte = [&](uint8_t byte, float *out) {
        static constexpr uint32_t masks[8] = {1, 2, 4, 8, 16, 32, 64, 128};
        for (uint32_t k = 0; k < 8; k++)
            out[k] = std::bit_cast<float>(scale ^ ((byte & masks[k]) == masks[k] ? sign : 0));
    };
    uint32_t i = 0;
    for (; n - i >= 8; i += 8) decode_byte(bits[i / 8], x + i);
    if (i == n) return;
    float rest[8];
    decode_byte(bits[i / 8], rest);
    std::copy(rest, rest + (n - i), x + i);
}

constexpr Codec codec = {
    .bytes = [](uint32_t block) { return scale_bytes + block / 8; },
    .encode = encode,
    .decode = decode,
};

} // namespace

extern const MethodInfo onebit_method = {
    .name = "onebit",
    .formula = "the sign times the block's mean magnitude",
    .source = "Seide et al. 2014",
    .bytes = "1/32 (1 bit, 4 bytes per block)",
    .cost = "a mean, a sign",
    .use = "the network is slow; training may need more steps",
    .read = read_block,
    .make = make_sharded,
    .codec = &codec,
};

} // namespace dtrain::compression
