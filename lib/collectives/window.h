// The memory that the ranks of a communicator share when all are on one host, and how it is used.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank has an area that only it writes; the others read it. Counters have one writer each, lie
// on lines of their own and only grow, over all operations of the communicator.
//
//   flags     exchange slots' headers (two, used in turn) and the pipeline's counters
//   exchange  two slots of a rank's whole contribution, for small operations
//   pieces    what the rank contributes to each other rank's piece, `depth` blocks deep
//   results   the rank's reduced piece, `depth` blocks deep
#pragma once
#include "engine/mesh.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace dtrain::collectives {

inline constexpr uint64_t exchange_bytes = 64 << 10; // largest contribution to a small operation
inline constexpr uint32_t pipeline_depth = 4;
inline constexpr size_t line_bytes = 128; // two cache lines: the prefetcher fetches pairs

// One exchange's contribution; a tiny one travels with its header in a single cache line.
struct alignas(line_bytes) ExchangeHeader {
    static constexpr uint64_t inline_bytes = 48;
    std::atomic<uint64_t> number; // of the exchange that is in the slot
    uint64_t fingerprint;         // of the calls made so far
    uint8_t data[inline_bytes];
};

struct alignas(line_bytes) Counter {
    std::atomic<uint64_t> value;
};

struct alignas(line_bytes) PipelineHeader {
    std::atomic<uint64_t> fingerprint; // of the pipelined call that the rank is in
};

struct RankFlags {
    ExchangeHeader exchange[2];
    PipelineHeader pipeline;
    Counter copied, reduced, taken; // blocks
};

class Window {
  public:
    // As rank 0: makes it; the others attach with the handle. Both under the agent's lock; attach()
    // returns BUSY until the memory has come.
    static Status create(transport::Device &device, uint32_t ranks, uint64_t area_bytes,
                         void *handle, std::unique_ptr<Window> &out);
    static Status attach(transport::Device &device, dtrain_tp_ep_t *creator, const void *handle,
                         uint32_t ranks, uint32_t rank, uint64_t area_bytes,
                         std::unique_ptr<Window> &out);
    ~Window(); // under the agent's lock

    RankFlags &flags(uint32_t rank) const { return *reinterpret_cast<RankFlags *>(area(rank)); }
    uint8_t *exchange_slot(uint32_t rank, uint64_t number) const {
        return area(rank) + flags_bytes + (number & 1) * exchange_bytes;
    }
    // Where `rank` puts what it contributes to `owner`'s piece of this block.
    uint8_t *piece(uint32_t rank, uint32_t owner, uint64_t block) const {
        return pipeline(rank) + ((block % pipeline_depth) * ranks_ + owner) * chunk_bytes_;
    }
    // Where `owner` puts its reduced piece. (Its own place among the pieces is free.)
    uint8_t *result(uint32_t owner, uint64_t block) const { return piece(owner, owner, block); }
    uint64_t chunk_bytes() const { return chunk_bytes_; } // most of one piece
    uint32_t ranks() const { return ranks_; }

    // Tells those who sleep that something was stored.
    void ring() const { device_.ops().window_ring(window_); }

    // Operations on the window run one after the other: whose turn it is.
    std::atomic<uint64_t> turn{0};

  private:
    static constexpr uint64_t flags_bytes = 4096;
    static_assert(sizeof(RankFlags) <= flags_bytes);

    Window(transport::Device &device, uint32_t ranks, uint64_t area_bytes);
    uint8_t *area(uint32_t rank) const { return base_ + rank * stride_; }
    uint8_t *pipeline(uint32_t rank) const { return area(rank) + flags_bytes + 2 * exchange_bytes; }
    uint64_t total_bytes() const { return stride_ * ranks_; }

    transport::Device &device_;
    dtrain_tp_win_t *window_ = nullptr;
    uint8_t *base_ = nullptr;
    const uint32_t ranks_;
    const uint64_t chunk_bytes_, stride_;
};

} // namespace dtrain::collectives
