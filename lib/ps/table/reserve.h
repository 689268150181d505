// Memory that a server grants to its disk thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

namespace dtrain::ps {

// Asks for more bytes; returns how many were granted and charged, fewer if the limit is reached.
using Reserve = std::function<uint64_t(uint64_t bytes)>;

inline uint64_t any_memory(uint64_t bytes) { return bytes; }

} // namespace dtrain::ps
