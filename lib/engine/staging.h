// Buffers into which pieces are received before they are added up: few and reused, so that they
// stay in the cache, and registered once with the transports that read and write remotely.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/registration.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::engine {

class Staging { // under the agent's lock
  public:
    using Devices = std::span<const std::unique_ptr<transport::Device>>;
    Staging(Devices devices, uint64_t buffer_bytes);
    ~Staging();
    // NULL: none is free now, try when one was given back. A taker that holds none, or whose other
    // ones may have to wait for this one, always gets one, so that nobody blocks anybody. Larger
    // pieces get memory of their own.
    void *take(uint64_t bytes, bool needs_it);
    void give_back(void *buffer, uint64_t bytes);

  private:
    void *make();
    void drop(void *buffer);

    const Devices devices_;
    const uint64_t buffer_bytes_;
    const size_t most_;
    std::vector<void *> free_;
    std::vector<std::unique_ptr<memory::Registration>> registered_;
    size_t made_ = 0;
};

} // namespace dtrain::engine
