// Reduces the agreed tensors: a single one in place, several packed together.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "gradients/negotiation.h"
#include "memory/registration.h"
#include "memory/registry.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace dtrain::gradients {

// The buffers of a submission; may be the same buffer twice.
struct Buffers {
    const void *send = nullptr;
    void *recv = nullptr;
};

// Must be used by one thread at a time.
class Reducer {
  public:
    // All arguments must outlive this; bucket_bytes is equal on all ranks.
    Reducer(collectives::Communicator &communicator, memory::Registry &registry,
            uint64_t bucket_bytes, int64_t timeout_ns, const std::atomic<int64_t> &due_ns);
    ~Reducer();

    // Blocking, collective. buffers: one per item; not read if the item's id is 0.
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
    const std::atomic<int64_t> &due_ns_;
    // Memory for one bucket, allocated at its first use: shared with the other ranks of the host if
    // possible.
    std::unique_ptr<memory::Registration> memory_;
    uint8_t *bytes_ = nullptr;
};

} // namespace dtrain::gradients
