// CRC-32C (Castagnoli, as in RFC 3720), in hardware where the processor can.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain::wire {

// The checksum of data[length]. A checksum over several pieces passes each one's result on as
// `crc`.
uint32_t crc32c(const void *data, size_t length, uint32_t crc = 0);

// The ways to compute it on this processor, best first; crc32c() takes the first one.
struct Crc32cKernel {
    const char *name;
    uint32_t (*update)(uint32_t state, const uint8_t *data, size_t length); // state: inverted crc
    bool (*usable)();
};
std::span<const Crc32cKernel> crc32c_kernels();

} // namespace dtrain::wire
