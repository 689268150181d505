// Checks the parameters of a compressor and fills in defaults.
// SPDX-License-Identifier: Apache-2.0
#include "compression/params.h"

#include "base/hash.h"
#include "compression/method_info.h"
#include "dtrain_names.h"

#include <string>

namespace dtrain::compression {
namespace {

constexpr uint64_t max_count = uint64_t{1} << 40; // 4 TiB

std::string known_kinds() {
    std::string kinds;
#define DTRAIN_APPEND(NAME, name)                                                                  \
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(DTRAIN_COMPRESS_##NAME) + " (" #name ")";
    DTRAIN_EACH_COMPRESS(DTRAIN_APPEND)
    return kinds;
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
    const MethodInfo *method = find_method(given.kind);
    if (method == nullptr)
        return fail(DTRAIN_ERR_INVALID, "compressor: unknown kind %u; known are %s", given.kind,
                    known_kinds().c_str());
    if (out.is_stochastic() && !method->rounds_at_random)
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: kind %s does not support stochastic rounding (int8 does)",
                    method->name);
    if (given.kind != DTRAIN_COMPRESS_POWERSGD &&
        (given.matrices != nullptr || given.matrix_count != 0))
        return fail(DTRAIN_ERR_INVALID, "compressor: matrices: kind %s has none (powersgd does)",
                    method->name);
    return method->read(given, out);
}

uint64_t hash_of(const std::vector<Matrix> &matrices) {
    uint64_t hash = matrices.size();
    for (const Matrix &matrix : matrices) hash = mix(mix(hash, matrix.rows), matrix.columns);
    return hash;
}

} // namespace dtrain::compression
