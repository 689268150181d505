// Memory that a server lets its disk thread have.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

namespace dtrain::ps {

// How much of so many more bytes has been granted, and charged: less where the limit is reached.
using Reserve = std::function<uint64_t(uint64_t bytes)>;

inline uint64_t any_memory(uint64_t bytes) { return bytes; }

} // namespace dtrain::ps
