// Checks the parameters of a compressor and fills in defaults.
// SPDX-License-Identifier: Apache-2.0
#include "compression/params.h"

#include <algorithm>
#include <cmath>

namespace dtrain::compression {
namespace {

constexpr uint64_t max_count = uint64_t{1} << 40; // 4 TiB
constexpr uint32_t default_block = 256, max_block = 65536, block_unit = 8;
constexpr uint32_t default_rank = 2, max_rank = 64;
constexpr double default_ratio = 0.01;

Status read_block(const dtrain_compressor_params_t &given, Params &out) {
    out.block = given.block == 0 ? default_block : given.block;
    if (out.block % block_unit != 0 || out.block > max_block)
        return fail(DTRAIN_ERR_INVALID, "compressor: block %u: must be a multiple of %u up to %u",
                    out.block, block_unit, max_block);
    return DTRAIN_OK;
}

Status read_ratio(const dtrain_compressor_params_t &given, Params &out) {
    double ratio = given.ratio == 0 ? default_ratio : given.ratio;
    if (!(ratio > 0 && ratio <= 1))
        return fail(DTRAIN_ERR_INVALID, "compressor: ratio %g: must be above 0 and at most 1",
                    ratio);
    if (given.count > UINT32_MAX)
        return fail(DTRAIN_ERR_LIMIT,
                    "compressor: topk numbers elements with 32 bits; split the "
                    "vector of %llu elements",
                    static_cast<unsigned long long>(given.count));
    auto kept = uint64_t(std::ceil(ratio * double(given.count)));
    out.kept = std::clamp<uint64_t>(kept, 1, given.count);
    return DTRAIN_OK;
}

Status read_matrix(const dtrain_compressor_params_t &given, Params &out) {
    out.rank = given.rank == 0 ? default_rank : given.rank;
    if (out.rank > max_rank)
        return fail(DTRAIN_ERR_INVALID, "compressor: rank %u: must be at most %u", out.rank,
                    max_rank);
    if (given.rows != 0 && given.count % given.rows != 0)
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: %llu elements cannot be a matrix of %llu rows; set rows to 0",
                    static_cast<unsigned long long>(given.count),
                    static_cast<unsigned long long>(given.rows));
    out.rows = given.rows != 0 ? given.rows : uint64_t(std::ceil(std::sqrt(double(given.count))));
    out.columns = (given.count + out.rows - 1) / out.rows;
    return DTRAIN_OK;
}

} // namespace

Status read_params(const dtrain_compressor_params_t &given, Params &out) {
    out = {};
    out.kind = given.kind;
    out.count = given.count;
    out.seed = given.seed;
    out.flags = given.flags;
    if (given.dtype != 0 && given.dtype != DTRAIN_F32)
        return fail(DTRAIN_ERR_UNSUPPORTED, "compressor: dtype %u: only f32 is compressed",
                    given.dtype);
    if (given.count == 0 || given.count > max_count)
        return fail(DTRAIN_ERR_INVALID, "compressor: count %llu: must be 1 to 2^40",
                    static_cast<unsigned long long>(given.count));
    if ((given.flags & ~(DTRAIN_COMPRESS_NO_FEEDBACK | DTRAIN_COMPRESS_STOCHASTIC)) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "compressor: unknown flags 0x%x", given.flags);
    if (out.is_stochastic() && given.kind != DTRAIN_COMPRESS_INT8)
        return fail(DTRAIN_ERR_INVALID, "compressor: only kind int8 supports stochastic rounding");
    switch (given.kind) {
    case DTRAIN_COMPRESS_F16:
    case DTRAIN_COMPRESS_BF16:
    case DTRAIN_COMPRESS_INT8:
    case DTRAIN_COMPRESS_ONEBIT: return read_block(given, out);
    case DTRAIN_COMPRESS_TOPK: return read_ratio(given, out);
    case DTRAIN_COMPRESS_POWERSGD: return read_matrix(given, out);
    default:
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: unknown kind %u; known are 1 (DTRAIN_COMPRESS_F16) to 6 "
                    "(DTRAIN_COMPRESS_POWERSGD)",
                    given.kind);
    }
}

} // namespace dtrain::compression
