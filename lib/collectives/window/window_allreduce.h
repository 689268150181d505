// Large all-reduce, and reduce of more than two ranks, in shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/window_bulk.h"

namespace dtrain::collectives {

// Direct: each rank sums its piece of all ranks' buffers and stores the result into all of them, so
// every byte is read once and written once. By kernel: each rank sums its piece from copies of the
// others', and then copies the other pieces of the result. Pipeline: reduce-scatter and all-gather
// in blocks of one chunk per rank, with three blocks in progress. Reduce is the same, but only one
// rank wants the result.
class WindowAllreduce final : public WindowBulk {
  public:
    WindowAllreduce(engine::Request *completed, const WindowCall &call,
                    const SharedBuffers &buffers, PeerMemory &peers,
                    engine::OperationListener &listener, bool on_stack);
    static bool suits(const CollectiveSpec &spec);
    // The space that a call takes in each rank's ring.
    static uint64_t block_bytes(const CollectiveSpec &spec, const Window &window);
    static uint64_t blocks(const CollectiveSpec &spec, const Window &window);
    // The part of this rank's memory that the others touch.
    static SharedBuffers find_shared(memory::Registry &registry, const transport::Device &device,
                                     const CollectiveSpec &spec, const void *send, void *recv,
                                     engine::Request &request);

  private:
    struct Piece {
        uint64_t offset, bytes;
    };
    uint64_t touched_bytes(uint32_t) const override { return bytes_; }
    bool touches(uint32_t rank, uint32_t owner) const override { return rank != owner; }
    DeviceJob device_job() const override;
    Step direct() override;
    Step pipeline() override;
    bool pipeline_lacks(uint32_t rank) const override;
    bool copy_in();
    int reduce_own(); // -1: mismatch
    bool copy_out();
    bool wants(uint32_t rank) const { // whether it wants the result
        return call_.spec.kind == Kind::allreduce || rank == uint32_t(call_.spec.root);
    }
    uint64_t position(uint64_t block) const { return call_.position + block * chunk_ * ranks_; }
    Piece piece(uint64_t block, uint32_t owner) const;
    Piece whole_piece(uint32_t owner) const; // in the direct way
    // Where `rank` stores its contribution to `owner`'s piece, and where the owner stores the
    // result.
    uint8_t *slot(uint32_t rank, uint32_t owner, uint64_t block) const {
        return call_.window->at(rank, position(block) + owner * chunk_);
    }

    const uint64_t bytes_, chunk_, blocks_;
    uint64_t begin_, piece_end_; // direct: the rest of this rank's piece
    // Pipeline: finished blocks of this call, by stage.
    uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;
};

} // namespace dtrain::collectives
