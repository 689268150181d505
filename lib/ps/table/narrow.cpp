// Quantizes rows to f16, bf16 or int8, and converts between these types.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/narrow.h"

#include "base/hash.h"
#include "device/kernels.h"
#include "dtrain_basics.h"

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <limits>

namespace dtrain::ps {
namespace {

constexpr float levels = 127;
constexpr float most_scale = FLT_MAX / levels * (1 - FLT_EPSILON); // 127 * most_scale is finite
constexpr uint64_t piece = 4 * block_values;                       // fits in the L1 cache

// The values of a row from `first` on; `first` is the start of a block.
template <class Byte> struct Part { Byte *values, *scales; };
template <class Byte>
Part<Byte> part_of(Byte *row, uint32_t dtype, uint64_t count, uint64_t first) {
    return {row + first * device::dtype_size(dtype),
            row + count + first / block_values * sizeof(float)}; // the scales; used for int8 only
}

void write_part(const Part<char> &to, uint32_t dtype, const float *from, uint64_t count,
                const Rounding &rounding) {
    if (dtype == DTRAIN_F32)
        std::memcpy(to.values, from, count * sizeof(float));
    else if (dtype == DTRAIN_I8)
        write_blocks(to.values, to.scales, from, count, rounding);
    else if (rounding.random)
        device::narrow_randomly(to.values, from, count, dtype, uint32_t(rounding.seed >> 32),
                                rounding.first);
    else
        device::narrow(to.values, from, count, dtype);
}

void read_part(float *to, uint32_t dtype, const Part<const char> &from, uint64_t count) {
    if (dtype == DTRAIN_F32)
        std::memcpy(to, from.values, count * sizeof(float));
    else if (dtype == DTRAIN_I8)
        read_blocks(to, from.values, from.scales, count);
    else
        device::widen(to, from.values, count, dtype);
}

} // namespace

float scale_at(const char *scale) {
    float value;
    std::memcpy(&value, scale, sizeof value);
    return value;
}

float scale_for(const float *from, uint64_t count) {
    const float most = device::largest(from, count);
    if (!(most <= FLT_MAX)) return std::numeric_limits<float>::quiet_NaN();
    const float scale = most / levels;
    return scale < FLT_MIN ? 0 : std::min(scale, most_scale);
}

void write_block(char *bytes, char *scale_at, float scale, const float *from, uint64_t count,
                 const Rounding &rounding) {
    auto *to = reinterpret_cast<int8_t *>(bytes);
    std::memcpy(scale_at, &scale, sizeof scale);
    if (!(scale > 0))
        std::memset(to, 0, count);
    else if (rounding.random)
        device::quantize_randomly(to, from, count, 1 / scale, uint32_t(rounding.seed >> 32));
    else
        device::quantize(to, from, count, 1 / scale);
}

void write_blocks(char *bytes, char *scales, const float *from, uint64_t count,
                  const Rounding &rounding) {
    for (uint64_t at = 0; at < count; at += block_values, scales += sizeof(float)) {
        const uint64_t n = std::min(block_values, count - at);
        const Rounding own = {.random = rounding.random, .seed = mix(rounding.seed, at)};
        write_block(bytes + at, scales, scale_for(from + at, n), from + at, n, own);
    }
}

void read_blocks(float *to, const char *bytes, const char *scales, uint64_t count) {
    const auto *from = reinterpret_cast<const int8_t *>(bytes);
    for (uint64_t at = 0; at < count; at += block_values, scales += sizeof(float))
        device::dequantize(to + at, from + at, std::min(block_values, count - at),
                           scale_at(scales));
}

uint64_t row_bytes(uint32_t dtype, uint64_t count) {
    const uint64_t scales = dtype == DTRAIN_I8 ? blocks_of(count) * sizeof(float) : 0;
    return count * device::dtype_size(dtype) + scales;
}

uint64_t row_bytes(uint32_t narrow, uint32_t dtype, uint64_t count) {
    return narrow != 0 ? row_bytes(narrow, count) : count * device::dtype_size(dtype);
}

void write_row(void *to, uint32_t dtype, const float *from, uint64_t count,
               const Rounding &rounding) {
    write_part(part_of(static_cast<char *>(to), dtype, count, 0), dtype, from, count, rounding);
}

void read_row(float *to, uint32_t dtype, const void *from, uint64_t count) {
    read_part(to, dtype, part_of(static_cast<const char *>(from), dtype, count, 0), count);
}

void convert_row(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype,
                 uint64_t count) {
    if (to_dtype == from_dtype) {
        std::memcpy(to, from, row_bytes(to_dtype, count));
        return;
    }
    float wide[piece];
    for (uint64_t at = 0; at < count; at += piece) {
        const uint64_t n = std::min(piece, count - at);
        read_part(wide, from_dtype, part_of(static_cast<const char *>(from), from_dtype, count, at),
                  n);
        write_part(part_of(static_cast<char *>(to), to_dtype, count, at), to_dtype, wide, n, {});
    }
}

} // namespace dtrain::ps
