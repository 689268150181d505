// Buffers that receive pieces before these are reduced. They are few and reused, so that they stay
// in the cache, and are registered once with the transports that read and write remotely.
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
    // Allows pieces of up to this many bytes from now on.
    void widen(uint64_t piece_bytes);
    // Returns NULL if no buffer is free; try again after one was returned. needs_it: always
    // returns one. To be set by a caller that holds no buffer, or whose other buffers may have to
    // wait for this one, so that no caller blocks another. Larger pieces get memory that is
    // allocated for them alone.
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
    std::vector<Buffer> buffers_; // free ones all have buffer_bytes_
};

} // namespace dtrain::engine
