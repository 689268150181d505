// Encodes and decodes blocks.
// SPDX-License-Identifier: Apache-2.0
#include "compression/block_codec.h"

#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstring>
#include <limits>

// gcc 12 vectorizes these loops only at a higher optimization level than the default one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

namespace dtrain::compression {
namespace {

constexpr uint64_t scale_bytes = sizeof(float);
constexpr float levels = 127;

void put_scale(uint8_t *out, float scale) { std::memcpy(out, &scale, sizeof scale); }
float get_scale(const uint8_t *in) {
    float scale;
    std::memcpy(&scale, in, sizeof scale);
    return scale;
}

void encode_int8(const float *x, uint32_t n, uint8_t *out, bool stochastic, uint64_t random) {
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

void decode_int8(const uint8_t *in, uint32_t n, float *x) {
    device::dequantize(x, reinterpret_cast<const int8_t *>(in + scale_bytes), n, get_scale(in));
}

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

void encode_onebit(const float *x, uint32_t n, uint8_t *out) {
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

void decode_onebit(const uint8_t *in, uint32_t n, float *x) {
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

uint32_t half_dtype(uint32_t kind) {
    return kind == DTRAIN_COMPRESS_F16 ? DTRAIN_F16 : DTRAIN_BF16;
}

} // namespace

uint64_t BlockCodec::block_bytes() const {
    if (kind_ == DTRAIN_COMPRESS_INT8) return scale_bytes + block_;
    if (kind_ == DTRAIN_COMPRESS_ONEBIT) return scale_bytes + block_ / 8;
    return block_ * uint64_t{2};
}

void BlockCodec::encode(const float *x, uint32_t n, uint8_t *out, uint64_t random) const {
    if (kind_ == DTRAIN_COMPRESS_INT8)
        encode_int8(x, n, out, stochastic_, random);
    else if (kind_ == DTRAIN_COMPRESS_ONEBIT)
        encode_onebit(x, n, out);
    else
        device::narrow(out, x, n, half_dtype(kind_));
}

void BlockCodec::decode(const uint8_t *in, uint32_t n, float *x) const {
    if (kind_ == DTRAIN_COMPRESS_INT8)
        decode_int8(in, n, x);
    else if (kind_ == DTRAIN_COMPRESS_ONEBIT)
        decode_onebit(in, n, x);
    else
        device::widen(x, in, n, half_dtype(kind_));
}

} // namespace dtrain::compression
