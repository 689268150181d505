// SPDX-License-Identifier: Apache-2.0
#include "collectives/window_direct.h"

#include "device/kernels.h"

#include <algorithm>
#include <cstring>

namespace dtrain::collectives {
namespace {

constexpr uint64_t bytes_per_step = 1 << 20; // the agent has other work, too

} // namespace

WindowDirect::WindowDirect(engine::Request *completed, const WindowCall &call,
                           const SharedBuffers &buffers, PeerMemory &peers,
                           engine::OperationListener &listener, bool on_stack)
    : WindowPipeline(completed, call, listener, on_stack), own_(buffers), peers_(peers),
      end_(position(blocks_)) {
    static_assert(sizeof(SharedBuffers) <= Header::inline_bytes);
    uint64_t share = (bytes_ / ranks_ + 63) / 64 * 64; // whole cache lines
    begin_ = std::min(bytes_, share * rank_);
    piece_end_ = rank_ + 1 == ranks_ ? bytes_ : std::min(bytes_, begin_ + share);
}

SharedBuffers WindowDirect::buffers_of(uint32_t rank) const {
    SharedBuffers buffers;
    std::memcpy(&buffers, header(rank).data, sizeof buffers);
    return buffers;
}

WindowOperation::Step WindowDirect::move() {
    switch (stage_) {
    case Stage::announce: return announce();
    case Stage::gather: return gather();
    case Stage::map: return map();
    case Stage::sum: return sum();
    case Stage::end: return end();
    case Stage::pipeline: break;
    }
    return WindowPipeline::move();
}

bool WindowDirect::lacks(uint32_t rank) const {
    if (stage_ == Stage::pipeline) return WindowPipeline::lacks(rank);
    if (stage_ == Stage::end)
        return call_.window->flags(rank).reduced.value.load(std::memory_order_acquire) < end_;
    return look_at(rank) == Peer::missing;
}

WindowOperation::Step WindowDirect::announce() {
    if (!may_announce()) return Step::idle;
    WindowPipeline::announce(&own_, sizeof own_);
    stage_ = own_.bytes == 0 ? Stage::pipeline : Stage::gather;
    return Step::moved;
}

// All ranks see the same headers, so all take the same way.
WindowOperation::Step WindowDirect::gather() {
    for (; next_ < ranks_; next_++) {
        Peer peer = look_at(next_);
        if (peer == Peer::missing) return Step::idle;
        if (peer == Peer::differs) return Step::mismatch;
        if (!buffers_of(next_).cover(bytes_)) {
            stage_ = Stage::pipeline;
            return Step::moved;
        }
    }
    next_ = 0;
    stage_ = Stage::map;
    return map();
}

WindowOperation::Step WindowDirect::map() {
    for (; next_ < ranks_; next_++) {
        if (next_ == rank_) {
            sends_[next_] = call_.send;
            recvs_[next_] = call_.recv;
            continue;
        }
        SharedBuffers buffers = buffers_of(next_);
        uint8_t *base = peers_.find(next_, buffers);
        if (base == nullptr) {
            if (!under_lock()) return Step::needs_lock;
            Status s = peers_.attach(next_, buffers);
            if (s == DTRAIN_ERR_BUSY) return Step::idle;
            if (s != DTRAIN_OK) return broken(s, int32_t(next_));
            base = peers_.find(next_, buffers);
        }
        sends_[next_] = base + buffers.send;
        recvs_[next_] = base + buffers.recv;
    }
    stage_ = Stage::sum;
    return sum();
}

// Nobody else touches this piece in any of the buffers.
WindowOperation::Step WindowDirect::sum() {
    uint64_t bytes = std::min(piece_end_ - begin_, bytes_per_step);
    uint64_t count = bytes / call_.spec.element_bytes;
    const void *from[max_window_ranks];
    void *to[max_window_ranks];
    for (uint32_t q = 0; q < ranks_; q++) {
        from[q] = static_cast<const uint8_t *>(sends_[q]) + begin_;
        to[q] = static_cast<uint8_t *>(recvs_[q]) + begin_;
    }
    if (count > 0 && !call_.spec.average) {
        device::reduce_to(to, ranks_, from, ranks_, count, call_.dtype, call_.op);
    } else if (count > 0) {
        device::reduce_to(&to[rank_], 1, from, ranks_, count, call_.dtype, call_.op);
        device::scale(to[rank_], count, call_.dtype, ranks_);
        for (uint32_t q = 0; q < ranks_; q++)
            if (q != rank_) device::copy(to[q], to[rank_], bytes);
    }
    begin_ += bytes;
    if (begin_ < piece_end_) return Step::moved;
    call_.window->flags(rank_).reduced.value.store(end_, std::memory_order_release);
    call_.window->ring();
    next_ = 0;
    stage_ = Stage::end;
    return end();
}

WindowOperation::Step WindowDirect::end() {
    for (; next_ < ranks_; next_++)
        if (call_.window->flags(next_).reduced.value.load(std::memory_order_acquire) < end_)
            return Step::idle;
    call_.window->release(rank_, end_);
    return Step::done;
}

} // namespace dtrain::collectives
