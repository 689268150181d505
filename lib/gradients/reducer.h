// Reduces what the ranks have agreed on: alone where it lies, or packed together.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "gradients/negotiation.h"
#include "memory/registration.h"
#include "memory/registry.h"

#include <cstdint>
#include <memory>
#include <span>

namespace dtrain::gradients {

// A submission's memory; may be the same twice.
struct Buffers {
    const void *send = nullptr;
    void *recv = nullptr;
};

// For one thread at a time.
class Reducer {
  public:
    // All outlive this; bucket_bytes is the same on all ranks.
    Reducer(collectives::Communicator &communicator, memory::Registry &registry,
            uint64_t bucket_bytes, int64_t timeout_ns);
    ~Reducer();

    // Blocking, collective. buffers: of each item; not read where its id is 0.
    Status reduce(const Bucket &bucket, std::span<const Buffers> buffers);

  private:
    Status prepare_memory();
    Status allreduce(const void *send, void *recv, uint64_t bytes, const Bucket &bucket);
    Status reduce_alone(const Bucket &bucket, const Buffers &buffers);
    Status reduce_packed(const Bucket &bucket, std::span<const Buffers> buffers);
    uint8_t *zeros(uint64_t bytes);

    collectives::Communicator &communicator_;
    memory::Registry &registry_;
    const uint64_t bucket_bytes_;
    const int64_t timeout_ns_; // of one all-reduce
    // One bucket, made when it is needed first: shared with the other ranks of the host if
    // possible.
    std::unique_ptr<memory::Registration> memory_;
    uint8_t *bytes_ = nullptr;
};

} // namespace dtrain::gradients
