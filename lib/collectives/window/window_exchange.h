// Small collectives in shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/window_operation.h"

namespace dtrain::collectives {

// Each rank publishes its whole contribution, reads what it needs from the others and combines it.
// Serves all kinds except those over a graph, for small sizes.
class WindowExchange final : public WindowOperation {
  public:
    WindowExchange(engine::Request *completed, const WindowCall &call,
                   engine::OperationListener &listener, bool on_stack)
        : WindowOperation(completed, call, listener, on_stack),
          end_(call.position + call.ring_bytes) {}
    // Equal on all ranks, as is the space in each rank's ring: one block of block_bytes().
    // allreduce_bytes: above this size the pipeline moves less data.
    static bool suits(const CollectiveSpec &spec, bool ragged, const Window &window,
                      uint64_t allreduce_bytes);
    static constexpr uint64_t default_allreduce_bytes = 16 << 10;
    static uint64_t block_bytes(const CollectiveSpec &spec);

  private:
    Step move() override;
    const char *way() const override { return "window exchange"; }
    bool lacks(uint32_t rank) const override {
        return published_ ? rank == seen_ : lags(rank) || call_.window->holds(rank, end_);
    }
    void publish();
    void combine();
    // Where `rank` publishes: in its header if it publishes few `bytes`, else in its ring.
    const uint8_t *contribution(uint32_t rank, uint64_t bytes) const;
    const uint8_t *contribution(uint32_t rank) const;

    const uint64_t end_; // of its bytes in the rings
    bool published_ = false;
    uint32_t seen_ = 0; // ranks below are known to have published
};

} // namespace dtrain::collectives
