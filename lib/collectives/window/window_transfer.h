// The other large collectives in shared memory, which move or sum pieces between ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/layout.h"
#include "collectives/window/window_bulk.h"

namespace dtrain::collectives {

// Reduce-scatter, all-gather, broadcast, reduce of two ranks, gather, scatter, all-to-all: some
// ranks give pieces, and some take pieces, which they copy or sum. Direct: straight from the
// givers' buffers, so only these need to be shared. If one of two ranks only gives, and the taker's
// buffer is within its reach: both copy. Pipeline: block by block through the givers'
// rings; a rank that only gives runs ahead as far as its ring allows.
class WindowTransfer final : public WindowBulk {
  public:
    WindowTransfer(engine::Request *completed, const WindowCall &call, const SharedBuffers &buffers,
                   PeerMemory &peers, engine::OperationListener &listener, bool on_stack);
    static bool suits(const CollectiveSpec &spec, bool ragged);
    // The space that a call takes in each rank's ring.
    static uint64_t block_bytes(const CollectiveSpec &spec, const Window &window);
    static uint64_t blocks(const CollectiveSpec &spec, const Window &window);
    // The part of this rank's memory that the others touch.
    static SharedBuffers find_shared(memory::Registry &registry, const transport::Device &device,
                                     const CollectiveSpec &spec, const void *send, void *recv,
                                     engine::Request &request);

  private:
    uint64_t touched_bytes(uint32_t rank) const override;
    bool touches(uint32_t rank, uint32_t owner) const override;
    void offer_addresses(Offer &offer) override;
    bool needs_all_offers() const override;
    void have_offers() override;
    bool is_left_alone() override;
    DeviceJob device_job() const override;
    Step direct() override;
    Step pipeline() override;
    bool pipeline_lacks(uint32_t rank) const override;

    bool takes_from(uint32_t rank, uint32_t owner) const;
    uint32_t taker() const { return takes_from(0, 1) ? 0 : 1; } // of two ranks, if one only gives
    Step copy_together();
    bool give_block();
    int take_block(); // -1: mismatch
    // Sums bytes [begin, begin + bytes) of the pieces for this rank; address(q) is where they begin
    // in rank q's piece.
    template <class F> void add_up(uint64_t begin, uint64_t bytes, F &&address);
    void copy_piece(uint32_t from, uint64_t begin, const uint8_t *address, uint64_t bytes);
    Status take_piece(uint32_t from, uint64_t begin, uint64_t bytes);
    Status give_part(uint64_t begin, uint64_t bytes);
    const uint8_t *source() const;
    uint64_t piece_bytes(uint32_t from, uint32_t to) const;
    uint64_t
    taken_bytes() const; // of two ranks, one way: of the taker's buffer, to the piece's end
    uint64_t source_offset(uint32_t to) const;
    uint64_t target_offset(uint32_t from) const;
    uint64_t part_of(uint64_t block, uint64_t bytes) const; // bytes of a piece in this block
    uint64_t position(uint64_t block) const { return call_.position + block * block_bytes_; }
    uint8_t *slot(uint32_t from, uint32_t to, uint64_t block) const;

    const Layout layout_;
    const uint64_t chunk_, block_bytes_, blocks_;
    const bool gives_, takes_;
    uint64_t given_ = 0, taken_ = 0; // pipeline: finished blocks of this call
    uint32_t turn_ = 1;              // direct: the next piece is from rank_ + turn_
    uint64_t begin_ = 0;             // first missing byte of that piece
    bool is_offered_ = false;        // the other rank may write into this one's buffer
    bool together_ = false;          // it does: of two ranks, both copy
    bool are_parts_taken_ = false;   // and no part is left
};

} // namespace dtrain::collectives
