// Large all-reduce in shared memory, by way of the rings.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window_operation.h"

namespace dtrain::collectives {

// All-reduce of anything larger: reduce-scatter and all-gather in blocks of one chunk per rank,
// three blocks in work at once.
class WindowPipeline : public WindowOperation {
  public:
    WindowPipeline(engine::Request *completed, const WindowCall &call,
                   engine::OperationListener &listener, bool on_stack);
    static bool suits(const CollectiveSpec &spec, bool ragged);
    // What a call takes of each rank's ring.
    static uint64_t block_bytes(const CollectiveSpec &spec, const Window &window);
    static uint64_t blocks(const CollectiveSpec &spec, const Window &window);

  protected:
    Step move() override; // after it was announced
    bool lacks(uint32_t rank) const override;
    uint64_t position(uint64_t block) const { return call_.position + block * chunk_ * ranks_; }

    const uint64_t bytes_, chunk_, blocks_;

  private:
    struct Piece {
        uint64_t offset, bytes;
    };
    bool copy_in();
    int reduce_own(); // -1: mismatch
    bool copy_out();
    Piece piece(uint64_t block, uint32_t owner) const;
    // Where `rank` puts what it contributes to `owner`'s piece, and as the owner the result.
    uint8_t *slot(uint32_t rank, uint32_t owner, uint64_t block) const {
        return call_.window->at(rank, position(block) + owner * chunk_);
    }

    uint64_t copied_ = 0, reduced_ = 0, taken_ = 0; // blocks of this call
};

} // namespace dtrain::collectives
