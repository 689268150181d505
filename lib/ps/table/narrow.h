// Values of an f32 table in fewer bytes: as they travel, and as servers keep them.
// SPDX-License-Identifier: Apache-2.0
//
// int8: blocks of values with one scale (f32) each, its
// largest magnitude over 127, a value being its byte times the scale (row-wise quantisation as of
// embedding tables, Guan et al.: Post-training 4-bit quantization on embedding tables, 2019, here
// symmetric). A block with a NaN or an infinity has the scale NaN, and so all of it is NaN. In one
// whose scale would be subnormal all is 0.
#pragma once
#include <cstdint>

namespace dtrain::ps {

inline constexpr uint64_t block_values = 128; // of int8, that share a scale; a row's last: fewer

constexpr uint64_t blocks_of(uint64_t values) { return (values + block_values - 1) / block_values; }

// To nearest even, or at random so that the mean is exact, as a function of the seed and the
// value's number: the first one's, and on.
struct Rounding {
    bool random = false;
    uint64_t seed = 0, first = 0;
};

// Blocks of int8, whose values lie one after the other, and so do their scales, unaligned.
void write_blocks(char *bytes, char *scales, const float *from, uint64_t count,
                  const Rounding &rounding);
void read_blocks(float *to, const char *bytes, const char *scales, uint64_t count);
// One block with a scale that is large enough; 0 and NaN: that is what all become.
void write_block(char *bytes, char *scale_at, float scale, const float *from, uint64_t count,
                 const Rounding &rounding);
float scale_for(const float *from, uint64_t count);
float scale_at(const char *scale);

// A row of f32, f16, bf16, or int8: these are followed by their scales.
uint64_t row_bytes(uint32_t dtype, uint64_t count);
void write_row(void *to, uint32_t dtype, const float *from, uint64_t count,
               const Rounding &rounding = {});
void read_row(float *to, uint32_t dtype, const void *from, uint64_t count);
// The same where narrow is 0: of the table's own dtype, whichever that is.
uint64_t row_bytes(uint32_t narrow, uint32_t dtype, uint64_t count);
// The bytes as they are where the types are the same.
void convert_row(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype,
                 uint64_t count);

} // namespace dtrain::ps
