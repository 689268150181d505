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
    explicit Staging(Devices devices, uint64_t piece_bytes = 0);
    ~Staging();
    // Pieces may have so many bytes from now on.
    void widen(uint64_t piece_bytes);
    // NULL: none is free now, try when one was given back. A taker that holds none, or whose other
    // ones may have to wait for this one, always gets one, so that nobody blocks anybody. Larger
    // pieces get memory of their own.
    void *take(uint64_t bytes, bool needs_it);
    void give_back(void *memory);

  private:
    struct Buffer {
        void *memory = nullptr;
        uint64_t bytes = 0;
        bool free = false;
        std::unique_ptr<memory::Registration> registration;
    };
    void *make();
    void drop(size_t i);

    const Devices devices_;
    uint64_t buffer_bytes_ = 0;
    size_t most_ = 0;
    std::vector<Buffer> buffers_; // those free are all of buffer_bytes_
};

} // namespace dtrain::engine
