// Control frames on a byte stream: 4 bytes of length (little-endian), then a message of that
// length.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

namespace dtrain::wire {

// Appends the message as a frame.
void append_frame(const Message &message, std::vector<uint8_t> &out);

// Takes the first frame out of `in`. DTRAIN_IN_PROGRESS: it is not complete (its announced length
// is at most max_frame; nothing is allocated for it before it has arrived). DTRAIN_ERR_CORRUPT:
// close the connection. `used` is the number of bytes of `in` that were consumed.
Status next_frame(std::span<const uint8_t> in, size_t &used, Message &message);

} // namespace dtrain::wire
