// bfloat16: each element as bf16.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "device/kernels.h"

namespace dtrain::compression {
namespace {

constexpr Codec codec = {
    .bytes = [](uint32_t block) { return block * uint64_t{2}; },
    .encode = [](const float *x, uint32_t n, uint8_t *out, bool,
                 uint64_t) { device::narrow(out, x, n, DTRAIN_BF16); },
    .decode = [](const uint8_t *in, uint32_t n, float *x) { device::widen(x, in, n, DTRAIN_BF16); },
};

} // namespace

extern const MethodInfo bf16_method = {
    .name = "bf16",
    .formula = "each element as bf16, to nearest even",
    .source = "",
    .bytes = "1/2",
    .cost = "two conversions",
    .use = "as `F16`, if magnitudes are unknown",
    .read = read_block,
    .make = make_sharded,
    .codec = &codec,
};

} // namespace dtrain::compression
