// What a library tells the card, whichever it is: memory to register, and work requests.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::test {

struct Range {
    uint64_t at;
    uint64_t len;
    uint64_t end() const { return at + len; }
    bool within(const Range &other) const { return at >= other.at && end() <= other.end(); }
};

// A piece that the card reads from the peer's memory, or writes there.
struct Piece {
    Range local;
    Range remote;
};

struct Told {
    std::vector<Range> registered;
    std::vector<Piece> read, written;
    uint64_t sent = 0; // bytes of messages, which go to whatever buffer their receiver has posted
};

// By this process, to all of its cards, since the last call. Any thread.
Told take_told();

} // namespace dtrain::test
