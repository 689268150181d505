// Narrow formats for the values of f32 tables, on the wire and in the servers' storage.
// SPDX-License-Identifier: Apache-2.0
//
// int8: values are quantized in blocks with one scale (f32) each, which is the block's largest
// magnitude divided by 127; a value is its byte times the scale (row-wise quantization of embedding
// tables, Guan et al.: Post-training 4-bit quantization on embedding tables, 2019, here symmetric).
// If a block has a NaN or an infinity, its scale is NaN, and so are all its values. If the scale
// would be subnormal, all values of the block are 0.
#pragma once
#include <cstdint>

namespace dtrain::ps {

inline constexpr uint64_t block_values = 128; // int8 values per scale; a row's last block: fewer

constexpr uint64_t blocks_of(uint64_t values) { return (values + block_values - 1) / block_values; }

// Rounds to nearest even, or stochastically so that the mean is exact. The random numbers are a
// function of the seed and of the value's index; `first` is the index of the first value.
struct Rounding {
    bool random = false;
    uint64_t seed = 0, first = 0;
};

// Blocks of int8: `bytes` has the values, `scales` the blocks' scales, both contiguous and
// unaligned.
void write_blocks(char *bytes, char *scales, const float *from, uint64_t count,
                  const Rounding &rounding);
void read_blocks(float *to, const char *bytes, const char *scales, uint64_t count);
// Writes one block with a given scale, which must be large enough. A scale of 0 or NaN makes all
// values 0 or NaN.
void write_block(char *bytes, char *scale_at, float scale, const float *from, uint64_t count,
                 const Rounding &rounding);
float scale_for(const float *from, uint64_t count);
float scale_at(const char *scale);

// A row of f32, f16, bf16 or int8; int8 values are followed by their scales.
uint64_t row_bytes(uint32_t dtype, uint64_t count);
void write_row(void *to, uint32_t dtype, const float *from, uint64_t count,
               const Rounding &rounding = {});
void read_row(float *to, uint32_t dtype, const void *from, uint64_t count);
// As above; if narrow is 0, the row is of the table's dtype, which may be any.
uint64_t row_bytes(uint32_t narrow, uint32_t dtype, uint64_t count);
// Copies the bytes if both types are the same.
void convert_row(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype,
                 uint64_t count);

} // namespace dtrain::ps
