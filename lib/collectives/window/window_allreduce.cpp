// Large all-reduce and reduce in shared memory: the direct way and the pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_allreduce.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace dtrain::collectives {
namespace {

uint64_t total(const CollectiveSpec &spec) { return spec.count * spec.element_bytes; }

// Cuts small calls into two blocks, so that the stages overlap.
uint64_t chunk_of(const CollectiveSpec &spec, const Window &window) {
    uint64_t half = std::bit_ceil(total(spec) / uint64_t(spec.size) / 2);
    return std::min(std::max(half, smallest_chunk), window.chunk_bytes());
}

} // namespace

bool WindowAllreduce::suits(const CollectiveSpec &spec) {
    // In a reduce of two ranks, one sends and the other sums: WindowTransfer does that.
    return spec.kind == Kind::allreduce || (spec.kind == Kind::reduce && spec.size > 2);
}

uint64_t WindowAllreduce::block_bytes(const CollectiveSpec &spec, const Window &window) {
    return chunk_of(spec, window) * uint64_t(spec.size);
}

uint64_t WindowAllreduce::blocks(const CollectiveSpec &spec, const Window &window) {
    uint64_t block = block_bytes(spec, window);
    return (total(spec) + block - 1) / block;
}

SharedBuffers WindowAllreduce::find_shared(memory::Registry &registry,
                                           const transport::Device &device,
                                           const CollectiveSpec &spec, const void *send, void *recv,
                                           engine::Request &request) {
    bool only_read = spec.kind == Kind::reduce && spec.rank != spec.root;
    return SharedBuffers::find(registry, device, send, only_read ? send : recv, total(spec),
                               request);
}

WindowAllreduce::WindowAllreduce(engine::Request *completed, const WindowCall &call,
                                 const SharedBuffers &buffers, PeerMemory &peers,
                                 engine::OperationListener &listener, bool on_stack)
    : WindowBulk(completed, call, buffers, peers, listener, on_stack), bytes_(total(call.spec)),
      chunk_(chunk_of(call.spec, *call.window)), blocks_(blocks(call.spec, *call.window)) {
    consider_device();
    const Piece own = whole_piece(rank_);
    begin_ = own.offset;
    piece_end_ = own.offset + own.bytes;
}

WindowAllreduce::Piece WindowAllreduce::whole_piece(uint32_t owner) const {
    const uint64_t share = (bytes_ / ranks_ + 63) / 64 * 64; // whole cache lines
    const uint64_t begin = std::min(bytes_, share * owner);
    return {begin, owner + 1 == ranks_ ? bytes_ - begin : std::min(share, bytes_ - begin)};
}

// ---- direct: no other rank touches this rank's piece in any of the buffers ----

WindowOperation::Step WindowAllreduce::direct() {
    uint64_t bytes = std::min(piece_end_ - begin_, bytes_per_step);
    uint64_t count = bytes / call_.spec.element_bytes;
    const void *from[max_window_ranks];
    void *to[max_window_ranks];
    uint32_t m = 0;
    for (uint32_t q = 0; q < ranks_; q++) {
        from[q] = sends_[q] + begin_;
        if (wants(q)) to[m++] = recvs_[q] + begin_;
    }
    if (count > 0) device::reduce_to(to, m, from, ranks_, count, call_.dtype, call_.op);
    begin_ += bytes;
    return begin_ == piece_end_ ? Step::done : Step::moved;
}

// ---- by the leader, on an accelerator ----

DeviceJob WindowAllreduce::device_job() const {
    DeviceStep sum{.from = {}, .to = {}, .bytes = bytes_};
    for (uint32_t q = 0; q < ranks_; q++) {
        sum.from.push_back({.rank = q});
        if (wants(q)) sum.to.push_back({.rank = q, .in_result = true});
    }
    return {std::move(sum)};
}

// ---- pipeline ----

WindowAllreduce::Piece WindowAllreduce::piece(uint64_t block, uint32_t owner) const {
    // The last block is divided evenly, in whole cache lines.
    uint64_t begin = block * chunk_ * ranks_;
    uint64_t length = std::min(chunk_ * ranks_, bytes_ - begin);
    uint64_t share = (length / ranks_ + 63) / 64 * 64;
    uint64_t offset = std::min(length, share * owner);
    uint64_t bytes = owner + 1 == ranks_ ? length - offset : std::min(share, length - offset);
    return {begin + offset, bytes};
}

WindowOperation::Step WindowAllreduce::pipeline() {
    bool moved = false;
    bool again = true;
    for (uint32_t round = 0; again && round < rounds_per_step; round++) {
        again = false;
        if (copied_ < blocks_ && copied_ < reduced_ + 2) again = copy_in();
        if (reduced_ < copied_) {
            int r = reduce_own();
            if (r < 0) return Step::mismatch;
            again = again || r > 0;
        }
        if (taken_ < reduced_) again = copy_out() || again;
        moved = moved || again;
    }
    if (taken_ == blocks_) return Step::done;
    return moved ? Step::moved : Step::idle;
}

bool WindowAllreduce::pipeline_lacks(uint32_t rank) const {
    return (reduced_ < blocks_ &&
            !has_published(rank, &RankFlags::copied, position(reduced_ + 1))) ||
           (wants(rank_) && !has_published(rank, &RankFlags::reduced, position(taken_ + 1))) ||
           (copied_ < blocks_ && call_.window->holds(rank, position(copied_ + 1)));
}

// Copies what this rank contributes to the others' pieces.
bool WindowAllreduce::copy_in() {
    if (!call_.window->released(position(copied_ + 1))) return false;
    auto *send = static_cast<const uint8_t *>(call_.send);
    for (uint32_t i = 1; i < ranks_; i++) {
        uint32_t q = (rank_ + i) % ranks_;
        Piece p = piece(copied_, q);
        call_.window->write(slot(rank_, q, copied_), send + p.offset, p.bytes);
    }
    copied_++;
    publish(&RankFlags::copied, position(copied_));
    return true;
}

int WindowAllreduce::reduce_own() {
    for (uint32_t q = 0; q < ranks_; q++) {
        if (Peer peer = reduced_ == 0 ? look_at(q) : Peer::there; peer != Peer::there)
            return peer == Peer::differs ? -1 : 0;
        if (!has_published(q, &RankFlags::copied, position(reduced_ + 1))) return 0;
    }
    Piece p = piece(reduced_, rank_);
    uint64_t count = p.bytes / call_.spec.element_bytes;
    const void *sources[max_window_ranks];
    for (uint32_t q = 0; q < ranks_; q++) sources[q] = slot(q, rank_, reduced_);
    sources[rank_] = static_cast<const uint8_t *>(call_.send) + p.offset;
    void *to[2];
    uint32_t m = 0;
    if (wants(rank_)) to[m++] = static_cast<uint8_t *>(call_.recv) + p.offset;
    uint8_t *const shown = slot(rank_, rank_, reduced_);
    const bool streams =
        call_.spec.kind == Kind::allreduce && call_.window->streams(shown, p.bytes);
    if (m == 0 || (call_.spec.kind == Kind::allreduce && !streams)) to[m++] = shown;
    device::reduce_to(to, m, sources, ranks_, count, call_.dtype, call_.op);
    if (streams) tp::copy_stream(shown, to[0], p.bytes);
    reduced_++;
    publish(&RankFlags::reduced, position(reduced_));
    return 1;
}

bool WindowAllreduce::copy_out() {
    if (wants(rank_)) {
        for (uint32_t q = 0; q < ranks_; q++)
            if (!has_published(q, &RankFlags::reduced, position(taken_ + 1))) return false;
        auto *recv = static_cast<uint8_t *>(call_.recv);
        auto copy =
            bytes_ > cache_bytes && call_.send != call_.recv ? device::copy_stream : device::copy;
        for (uint32_t i = 1; i < ranks_; i++) {
            uint32_t q = (rank_ + i) % ranks_;
            Piece p = piece(taken_, q);
            copy(recv + p.offset, slot(q, q, taken_), p.bytes);
        }
    }
    taken_++;
    call_.window->release(rank_, position(taken_));
    call_.window->ring();
    return true;
}

} // namespace dtrain::collectives
