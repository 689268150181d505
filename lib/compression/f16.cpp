// Half precision: each element as f16.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "device/kernels.h"

namespace dtrain::compression {
namespace {

constexpr Codec codec = {
    .bytes = [](uint32_t block) { return block * uint64_t{2}; },
    .encode = [](const float *x, uint32_t n, uint8_t *out, bool,
                 uint64_t) { device::narrow(out, x, n, DTRAIN_F16); },
    .decode = [](const uint8_t *in, uint32_t n, float *x) { device::widen(x, in, n, DTRAIN_F16); },
};

} // namespace

extern const MethodInfo f16_method = {
    .name = "f16",
    .formula = "each element as f16, to nearest even",
    .source = "",
    .bytes = "1/2",
    .cost = "two conversions",
    .use = "always safe to try",
    .read = read_block,
    .make = make_sharded,
    .codec = &codec,
};

} // namespace dtrain::compression
