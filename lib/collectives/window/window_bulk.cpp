// The stages of large collectives in shared memory: announce, gather offers, map, work, end.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_bulk.h"

#include <cstring>

namespace dtrain::collectives {

WindowBulk::WindowBulk(engine::Request *completed, const WindowCall &call,
                       const SharedBuffers &buffers, PeerMemory &peers,
                       engine::OperationListener &listener, bool on_stack)
    : WindowOperation(completed, call, listener, on_stack),
      peers_(peers), own_{buffers, Offer::nowhere} {
    static_assert(sizeof(Offer) <= Header::inline_bytes);
}

Offer WindowBulk::offer_of(uint32_t rank) const {
    Offer offer;
    std::memcpy(&offer, header(rank).data, sizeof offer);
    return offer;
}

WindowOperation::Step WindowBulk::move() {
    switch (stage_) {
    case Stage::announce: return announce_buffers();
    case Stage::gather: return gather();
    case Stage::map: return map();
    case Stage::direct: return work();
    case Stage::end: return finish();
    case Stage::pipeline: break;
    }
    return pipeline();
}

bool WindowBulk::lacks(uint32_t rank) const {
    switch (stage_) {
    case Stage::announce: return lags(rank);
    case Stage::map: return rank == next_;
    case Stage::pipeline: return pipeline_lacks(rank);
    case Stage::end:
        return touches(rank, rank_) && !has_published(rank, &RankFlags::reduced, end());
    default: return look_at(rank) == Peer::missing;
    }
}

WindowOperation::Step WindowBulk::announce_buffers() {
    if (!may_announce()) return Step::idle;
    own_.address = offered_address();
    announce(&own_, sizeof own_);
    by_kernel_ = own_.address != Offer::nowhere;
    bool can_be_direct = by_kernel_ || own_.shared.cover(touched_bytes(rank_));
    stage_ = can_be_direct ? Stage::gather : Stage::pipeline;
    return Step::moved;
}

// All ranks see the same headers, so all choose the same way.
WindowOperation::Step WindowBulk::gather() {
    for (; next_ < ranks_; next_++) {
        uint64_t bytes = touched_bytes(next_);
        if (bytes == 0 && !by_kernel_) continue;
        Peer peer = look_at(next_);
        if (peer == Peer::missing) return Step::idle;
        if (peer == Peer::differs) return Step::mismatch;
        Offer offer = offer_of(next_);
        if (bytes > 0 && !offer.shared.cover(bytes)) all_shared_ = false;
        if (offer.address == Offer::nowhere) by_kernel_ = false;
        if (!all_shared_ && !by_kernel_) {
            stage_ = Stage::pipeline;
            return Step::moved;
        }
    }
    if (all_shared_) by_kernel_ = false;
    next_ = 0;
    stage_ = Stage::map;
    return map();
}

WindowOperation::Step WindowBulk::map() {
    for (; next_ < ranks_; next_++) {
        if (next_ == rank_) {
            sends_[next_] = static_cast<const uint8_t *>(call_.send);
            recvs_[next_] = static_cast<uint8_t *>(call_.recv);
            continue;
        }
        if (touched_bytes(next_) == 0 || !touches(rank_, next_)) continue;
        Offer offer = offer_of(next_);
        if (by_kernel_) {
            sends_[next_] = reinterpret_cast<const uint8_t *>(offer.address);
            continue;
        }
        const SharedBuffers &buffers = offer.shared;
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
    stage_ = Stage::direct;
    return work();
}

WindowOperation::Step WindowBulk::work() {
    if (Step s = direct(); s != Step::done) return s;
    publish(&RankFlags::reduced, end());
    next_ = 0;
    stage_ = Stage::end;
    return finish();
}

// Waits for all ranks, because the caller may overwrite its buffers only when no rank touches them.
WindowOperation::Step WindowBulk::finish() {
    for (; next_ < ranks_; next_++)
        if (touches(next_, rank_) && !has_published(next_, &RankFlags::reduced, end()))
            return Step::idle;
    call_.window->release(rank_, end());
    return Step::done;
}

} // namespace dtrain::collectives
