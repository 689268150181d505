// Adds the length to control messages, and finds complete ones in a stream.
// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

namespace dtrain::wire {
namespace {

constexpr size_t prefix = 4;

uint32_t length_of(const uint8_t *at) {
    return uint32_t(at[0]) | uint32_t(at[1]) << 8 | uint32_t(at[2]) << 16 | uint32_t(at[3]) << 24;
}

} // namespace

void append_frame(const Message &message, std::vector<uint8_t> &out) {
    std::vector<uint8_t> body = encode(message);
    for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(uint8_t(body.size() >> shift));
    out.insert(out.end(), body.begin(), body.end());
}

Status next_frame(std::span<const uint8_t> in, size_t &used, Message &message) {
    used = 0;
    if (in.size() < prefix) return DTRAIN_IN_PROGRESS;
    uint32_t length = length_of(in.data());
    if (length == 0 || length > max_frame)
        return fail(DTRAIN_ERR_CORRUPT, "control frame of %u bytes; allowed are 1 to %u", length,
                    max_frame);
    if (in.size() - prefix < length) return DTRAIN_IN_PROGRESS;
    // A copy, since flatbuffers needs aligned data.
    std::vector<uint8_t> body(in.begin() + prefix, in.begin() + prefix + length);
    used = prefix + length;
    return decode(body, message);
}

} // namespace dtrain::wire
