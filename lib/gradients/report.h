// What a rank tells the others in a full exchange, and how it travels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gradients/bits.h"
#include "gradients/tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::gradients {

// A tensor that waits on this rank and is not known to all as it is.
struct Announcement {
    std::string name;
    TensorSpec spec;
    int32_t priority = 0;
    bool expired = false; // its submitter waits no longer
};

struct Report {
    bool joins = false;  // has run out of data
    bool closes = false; // destroys its queue
    Bits waiting;        // known tensors that wait here
    Bits expired;        // those of them whose submitter waits no longer
    std::vector<Announcement> fresh;
};

// Bytes of a report without announcements, and of one announcement.
size_t report_bytes(size_t words);
size_t announcement_bytes(const Announcement &announcement);

std::vector<uint8_t> encode(const Report &report);
// `words`: how many the bit vectors must have. ERR_CORRUPT for anything that encode() does not
// make.
Status decode(std::span<const uint8_t> bytes, size_t words, Report &out);

} // namespace dtrain::gradients
