// Control frames on a byte stream: 4 bytes of length, little-endian, then that many of a message.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

namespace dtrain::wire {

// Appends the message as a frame.
void append_frame(const Message &message, std::vector<uint8_t> &out);

// Takes the first frame out of `in`. DTRAIN_IN_PROGRESS: it is not complete (its announced length
// is below max_frame; nothing is allocated for it before it is here); DTRAIN_ERR_CORRUPT: close.
// `used` counts the bytes of `in` that are done with.
Status next_frame(std::span<const uint8_t> in, size_t &used, Message &message);

} // namespace dtrain::wire
