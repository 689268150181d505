// The small parts of a simulated card.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "card_access.h"
#include "program_memory.h"
#include "rdm/wire.h"

#include <deque>
#include <list>

namespace dtrain::card {

// The card's own memory is always there, as a real one's.
template <class T> using Memory = simulator::ProgramMemory<T>;
template <class T> using Queue = std::deque<T, Memory<T>>;
template <class T> using List = std::list<T, Memory<T>>;
using Bytes = simulator::Data<uint8_t>;

struct FrameHead {
    enum Kind : uint32_t { packet, bulk } kind;
    uint32_t bytes; // that follow
};

struct Frame {
    Bytes bytes;                       // its head included
    rdm::Operation *payload = nullptr; // taken when it is sent, and released then
    size_t sent = 0;
    bool taken = false; // the payload is in `bytes`
};

} // namespace dtrain::card
