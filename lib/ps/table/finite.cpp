// Converts block by block: large values may become infinite.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/finite.h"

#include "device/finite.h"
#include "ps/table/narrow.h"
#include "ps/table/table_params.h"

#include <algorithm>

namespace dtrain::ps {
namespace {

constexpr uint64_t converted_at_once = 256; // values converted at a time

} // namespace

uint64_t first_not_finite_sent(const TableParams &params, const void *values, uint64_t count) {
    const uint32_t wire = params.wire_dtype;
    if (!is_half(wire))
        return device::first_not_finite(values, count, params.dtype); // I8 is scaled
    const auto *numbers = static_cast<const float *>(values);
    uint16_t sent[converted_at_once]; // large values become infinite when they are narrowed
    for (uint64_t at = 0; at < count; at += converted_at_once) {
        const uint64_t n = std::min(converted_at_once, count - at);
        write_row(sent, wire, numbers + at, n);
        if (const uint64_t bad = device::first_not_finite(sent, n, wire); bad < n) return at + bad;
    }
    return count;
}

} // namespace dtrain::ps
