// CRC-32C (Castagnoli, as in RFC 3720), in hardware if the processor has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

// The checksum of data[length]. For a checksum over several pieces, pass each result as `crc` of
// the next call.
uint32_t crc32c(const void *data, size_t length, uint32_t crc = 0);

// The implementations that exist for this processor type, best first; crc32c() uses the first
// usable one.
struct Crc32cKernel {
    const char *name;
    uint32_t (*update)(uint32_t state, const uint8_t *data, size_t length); // state: inverted crc
    bool (*usable)();
};
std::span<const Crc32cKernel> crc32c_kernels();

} // namespace dtrain
