// The frame of a TFRecord: length (8 bytes), its checksum (4), the data, their checksum (4); all
// numbers little-endian. Source: tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format
// details".
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/crc32c.h"

namespace dtrain::data {

inline constexpr size_t length_size = 8, checksum_size = 4;
inline constexpr size_t header_size = length_size + checksum_size;

inline uint64_t load_le(const uint8_t *p, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= uint64_t(p[i]) << (8 * i);
    return value;
}

inline void store_le(uint8_t *p, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) p[i] = uint8_t(value >> (8 * i));
}

// The checksum is masked, so that checksums stored inside checksummed data stay meaningful.
inline uint32_t masked_crc(const void *data, size_t length) {
    const uint32_t crc = crc32c(data, length);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

} // namespace dtrain::data
