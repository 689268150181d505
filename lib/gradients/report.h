// The report that a rank sends to the others in a full exchange, and its encoding.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gradients/bits.h"
#include "gradients/tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::gradients {

// A tensor that waits on this rank and that the other ranks do not know in this form.
struct Announcement {
    std::string name;
    TensorSpec spec;
    int32_t priority = 0;
    bool expired = false; // its submission has timed out
};

struct Report {
    bool joins = false;  // this rank has run out of data
    bool closes = false; // this rank destroys its queue
    Bits waiting;        // known tensors that wait on this rank
    Bits expired;        // those of them whose submission has timed out
    std::vector<Announcement> fresh;
};

// Size of a report without announcements, and of one announcement, in bytes.
size_t report_bytes(size_t words);
size_t announcement_bytes(const Announcement &announcement);

std::vector<uint8_t> encode(const Report &report);
// `words`: the number of words that the bit vectors must have. ERR_CORRUPT for anything that
// encode() does not produce.
Status decode(std::span<const uint8_t> bytes, size_t words, Report &out);

} // namespace dtrain::gradients
