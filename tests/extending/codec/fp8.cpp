// FP8: a scale (f32), then a byte per element: a sign, 4 bits of exponent and 3 of mantissa (E4M3).
// The greatest magnitude of a block becomes 448, the greatest of the format. The scale of a block
// that contains a NaN or infinity is NaN. Micikevicius et al.: FP8 formats for deep learning, 2022.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "compression/scale.h"
#include "device/kernels.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

namespace dtrain::compression {
namespace {

constexpr float greatest = 448, least_normal = 0x1p-6f, least = 0x1p-9f;
constexpr uint32_t bias = (127 - 7) << 3; // between the exponents of f32 and E4M3

uint8_t to_byte(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
    const auto sign = uint8_t(bits >> 24 & 0x80);
    if (std::fabs(x) < least_normal)
        return uint8_t(sign | uint8_t(std::nearbyint(std::fabs(x) / least)));
    const uint32_t even = magnitude >> 20 & 1; // to nearest even
    return uint8_t(sign | uint8_t(((magnitude + 0x7ffff + even) >> 20) - bias));
}

float to_float(uint8_t byte) {
    const uint32_t code = byte & 0x7f;
    const float x = code < 8 ? float(code) * least : std::bit_cast<float>((code + bias) << 20);
    return (byte & 0x80) != 0 ? -x : x;
}

void encode(const float *x, uint32_t n, uint8_t *out, bool, uint64_t) {
    const float most = device::largest(x, n);
    const bool is_number = most <= FLT_MAX, is_tiny = most < FLT_MIN * greatest;
    const bool none = !is_number || is_tiny;
    put_scale(out, is_number ? (is_tiny ? 0 : most / greatest)
                             : std::numeric_limits<float>::quiet_NaN());
    for (uint32_t i = 0; i < n; i++)
        out[scale_bytes + i] = none ? 0 : to_byte(x[i] * (greatest / most));
}

void decode(const uint8_t *in, uint32_t n, float *x) {
    const float scale = get_scale(in);
    for (uint32_t i = 0; i < n; i++) x[i] = scale * to_float(in[scale_bytes + i]);
}

constexpr Codec codec = {
    .bytes = [](uint32_t block) { return scale_bytes + block; },
    .encode = encode,
    .decode = decode,
};

} // namespace

extern const MethodInfo fp8_method = {
    .name = "fp8",
    .formula = "x * 448 / max of the block as FP8 E4M3, to nearest even",
    .source = "Micikevicius et al. 2022",
    .bytes = "1/4 (1 byte, 4 bytes per block)",
    .cost = "a maximum, a conversion",
    .use = "as `INT8`, if magnitudes within a block differ much",
    .read = read_block,
    .make = make_sharded,
    .codec = &codec,
};

} // namespace dtrain::compression
