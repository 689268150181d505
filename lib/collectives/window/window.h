// The memory that the ranks of a communicator share when all are on one host, and the rules for its
// use.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank has an area that only this rank writes; the others read it. Each counter has one
// writer, lies in a cache line of its own and only grows, over all operations of the communicator.
//
//   flags  operations' headers (some, used in turn) and the pipeline's counters
//   ring   what the rank contributes and, in the pipeline, its results
//
// A position counts the bytes of the ring that operations have used so far; each rank can compute
// from the calls alone where the others' contributions lie. Operations use the whole ring in turn
// rather than the same few slots again, because a store into a line that another core still has in
// its cache takes several times as long as a store into a line that has left it (SharedCopy). So
// the ring should be twice as large as a core's cache.
#pragma once
#include "accel/direct_buffers.h"
#include "common/parts.h"
#include "common/shared_copy.h"
#include "device/kernels.h"
#include "engine/mesh.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <vector>

namespace dtrain::collectives {

inline constexpr uint32_t max_window_ranks = 64;
inline constexpr uint32_t ring_blocks = 4; // blocks of the largest chunk for each rank
inline constexpr size_t line_bytes = 128;  // two cache lines: the prefetcher fetches pairs

// Announces a rank's operation; a tiny contribution fits into the same cache line.
struct alignas(line_bytes) Header {
    static constexpr uint64_t inline_bytes = 48;
    std::atomic<uint64_t> number; // of the operation
    uint64_t fingerprint;         // of all calls made so far
    uint8_t data[inline_bytes];
};

struct alignas(line_bytes) Counter {
    std::atomic<uint64_t> value;
};

// Identifies a rank's process, for peer_processes.h.
struct alignas(line_bytes) Introduction {
    using Nonce = uint8_t[16];
    pid_t process;    // 0: do not read its memory
    uint64_t address; // where the same nonce lies in its memory
    Nonce nonce;
};

// Where a rank's buffers lie on an accelerator, if its header says that they do (window_device.h).
struct alignas(line_bytes) DeviceOffer {
    accel::DirectBuffer send, recv;
    double before, after; // factors of its input and of its result
    uint8_t nonce[16];    // of its process
    int64_t process;
};

// What another rank copies with this one into this one's buffer.
struct alignas(line_bytes) Incoming {
    tp::Parts parts;
};

struct RankFlags {
    // A rank that only gives may be this many operations ahead of the others, less one.
    static constexpr uint64_t headers_in_turn = 8;
    Header &header(uint64_t number) { return headers[number % headers_in_turn]; }

    Header headers[headers_in_turn];
    Counter copied, reduced, released; // positions: everything before is copied, reduced, released
    Counter declined; // number of the last operation that rank 0 cannot run on the accelerator
    Counter given_up; // number of the first operation that failed here; 0: none
    Introduction introduction;
    // Used in turn: they are read only if all ranks' buffers lie there, and then no rank is ahead
    // before the leader has read them.
    DeviceOffer on_device[2];
    Incoming incoming;
};

class Window {
  public:
    // Rank 0 creates the window; the others attach with the handle. Both run under the agent's
    // lock; attach() returns BUSY until the memory has arrived.
    static Status create(transport::Device &device, uint32_t ranks, uint64_t area_bytes,
                         tp::Distance distance, void *handle, std::unique_ptr<Window> &out);
    static Status attach(transport::Device &device, dtrain_tp_ep_t *creator, const void *handle,
                         uint32_t ranks, uint32_t rank, uint64_t area_bytes, tp::Distance distance,
                         std::unique_ptr<Window> &out);
    ~Window(); // under the agent's lock

    // Of two in one process: whether they are the same memory.
    bool is_shared_with(const Window &other) const { return handle_ == other.handle_; }
    RankFlags &flags(uint32_t rank) const { return *reinterpret_cast<RankFlags *>(area(rank)); }
    uint8_t *at(uint32_t rank, uint64_t position) const {
        return area(rank) + flags_bytes + position % ring_bytes_;
    }
    // Both are powers of two, as is every smaller chunk.
    uint64_t chunk_bytes() const { return chunk_bytes_; } // limit of one rank's piece of a block
    uint64_t exchange_bytes() const {
        return exchange_bytes_;
    } // limit of what a rank publishes at once

    // Reserves `count` blocks for the next operation and returns the position of the first. A block
    // is a chunk for each rank, or a power of two up to exchange_bytes(), so the ring's end splits
    // none.
    uint64_t reserve(uint64_t block_bytes, uint64_t count);
    // Whether no rank needs any more the bytes that positions before this one overwrite.
    bool released(uint64_t position);
    // Whether this rank still keeps them from being released.
    bool holds(uint32_t rank, uint64_t position) const {
        return position > ring_bytes_ + flags(rank).released.value.load(std::memory_order_acquire);
    }
    // This rank has read everything before this position.
    void release(uint32_t rank, uint64_t position) {
        flags(rank).released.value.store(position, std::memory_order_release);
    }

    // Copies into this rank's ring, from which the others read. Used by the operation whose turn it
    // is.
    void write(void *to, const void *from, uint64_t bytes) {
        if (streams(to, bytes))
            tp::copy_stream(to, from, bytes);
        else
            device::copy(to, from, bytes);
    }
    // Whether write() would store past the caches, because the others' cores are far away. The
    // bytes must be written next.
    bool streams(void *to, uint64_t bytes) { return writes_.streams(to, bytes); }
    bool readers_are_far() const { return writes_.is_far(); } // as of the last write()
    const tp::SharedCopy &writes() const { return writes_; }

    // Wakes ranks that sleep until something is stored.
    void ring() const { device_.ops().window_ring(window_); }

    // Operations on the window run one after the other: turn says which is next.
    std::atomic<uint64_t> turn{0}; // number of finished operations
    // Lower bound of the operations that all ranks have announced; used by the operation whose turn
    // it is
    uint64_t announced = 0;

  private:
    static constexpr uint64_t flags_bytes = 4096;
    static_assert(sizeof(RankFlags) <= flags_bytes);

    Window(transport::Device &device, uint32_t ranks, uint64_t area_bytes, tp::Distance distance);
    void opened(const void *handle);
    uint8_t *area(uint32_t rank) const { return base_ + rank * stride_; }
    uint64_t total_bytes() const { return stride_ * ranks_; }

    transport::Device &device_;
    dtrain_tp_win_t *window_ = nullptr;
    std::array<uint8_t, transport::Device::max_blob> handle_{}; // what others attach with
    uint8_t *base_ = nullptr;
    const uint32_t ranks_;
    const uint64_t chunk_bytes_, exchange_bytes_, ring_bytes_, stride_;
    tp::SharedCopy writes_;
    uint64_t reserved_ = 0; // guarded by the order of the communicator's calls
    // Lower bound of what all ranks have released; used by the operation whose turn it is
    uint64_t released_ = 0;
};

} // namespace dtrain::collectives
