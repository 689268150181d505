// The stages of large collectives in shared memory: announce, gather offers, map, work, end.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_bulk.h"

#include <algorithm>
#include <cstring>

namespace dtrain::collectives {
namespace {

constexpr uint64_t least_if_possible = 64 << 10;
constexpr uint32_t calls_between_rings = 64;

} // namespace

WindowBulk::WindowBulk(engine::Request *completed, const WindowCall &call,
                       const SharedBuffers &buffers, PeerMemory &peers,
                       engine::OperationListener &listener, bool on_stack)
    : WindowOperation(completed, call, listener, on_stack),
      peers_(peers), own_{buffers, Offer::nowhere} {
    static_assert(sizeof(Offer) <= Header::inline_bytes);
}

Offer Offer::on_device(const uint8_t *uuid) {
    Offer offer;
    std::memcpy(offer.shared.handle, uuid, sizeof offer.shared.handle);
    offer.shared.send = nowhere;
    return offer;
}

bool Offer::is_on_device(const uint8_t *uuid) const {
    return shared.bytes == 0 && shared.send == nowhere &&
           std::memcmp(shared.handle, uuid, sizeof shared.handle) == 0;
}

void WindowBulk::consider_device() {
    engine::Landing *const landing = request->landing;
    if (landing != nullptr && landing->undecided() != nullptr) [[unlikely]]
        device_ = std::make_unique<WindowDevice>(*landing, peers_.accelerators, call_.spec);
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
    case Stage::gather_devices: return gather_devices();
    case Stage::device: return run_device();
    case Stage::copies: return use_copies();
    case Stage::pipeline: break;
    }
    return pipeline();
}

bool WindowBulk::lacks(uint32_t rank) const {
    switch (stage_) {
    case Stage::announce: return lags(rank);
    case Stage::map: return rank == next_;
    case Stage::pipeline: return pipeline_lacks(rank);
    case Stage::copies: return false;
    case Stage::device: return rank_ != WindowDevice::leader && rank == WindowDevice::leader;
    case Stage::direct: return touches(rank_, rank) && has_given_up(rank);
    case Stage::end:
        return touches(rank, rank_) && !has_published(rank, &RankFlags::reduced, end());
    default: return look_at(rank) == Peer::missing;
    }
}

WindowOperation::Step WindowBulk::announce_buffers() {
    if (!may_announce()) return Step::idle;
    if (device_ != nullptr) return announce_device();
    offer_addresses(own_);
    announce(&own_, sizeof own_);
    by_kernel_ = own_.address != Offer::nowhere;
    bool can_be_direct = by_kernel_ || own_.shared.cover(touched_bytes(rank_));
    stage_ = can_be_direct ? Stage::gather : Stage::pipeline;
    return Step::moved;
}

bool WindowBulk::is_worth_kernel(uint64_t bytes, uint64_t least_near, uint64_t least_far) {
    if (!peers_.processes.are_in_reach()) return false;
    if (peers_.copies == KernelCopies::if_possible) return bytes >= least_if_possible;
    if (bytes < (call_.window->readers_are_far() ? least_far : least_near)) return false;
    // What is written to the ring measures the distance, so a few of these calls use it, too.
    return bytes >= least_far || ++peers_.by_kernel % calls_between_rings != 0;
}

// All ranks see the same headers, so all choose the same way.
WindowOperation::Step WindowBulk::gather() {
    for (; next_ < ranks_; next_++) {
        uint64_t bytes = touched_bytes(next_);
        if (bytes == 0 && !by_kernel_ && !needs_all_offers()) continue;
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
    have_offers();
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
        if (!touches(rank_, next_)) continue;
        Offer offer = offer_of(next_);
        if (by_kernel_) {
            sends_[next_] = recvs_[next_] = reinterpret_cast<uint8_t *>(offer.address);
            continue;
        }
        if (touched_bytes(next_) == 0) continue;
        const SharedBuffers &buffers = offer.shared;
        if (!buffers.cover(touched_bytes(next_))) // as it did when all chose this way
            return broken(dtrain::fail(DTRAIN_ERR_PEER, "it has changed where its buffers are"),
                          int32_t(next_));
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

// What was read from a rank that then gave up may be anything. It has told the others, whose news
// of it ends this operation.
WindowOperation::Step WindowBulk::work() {
    if (some_owner_has_given_up()) return Step::idle;
    if (Step s = direct(); s != Step::done) return s;
    if (some_owner_has_given_up()) return Step::idle;
    publish(&RankFlags::reduced, end());
    next_ = 0;
    stage_ = Stage::end;
    return finish();
}

template <class Matters> bool WindowBulk::any_has_given_up(Matters &&matters) const {
    // What this rank has read, or an accelerator for it, was read before it looks here. (Thread
    // sanitizers do not know atomic_thread_fence().)
    __sync_synchronize();
    for (uint32_t q = 0; q < ranks_; q++)
        if (matters(q) && has_given_up(q)) return true;
    return false;
}

bool WindowBulk::some_owner_has_given_up() const {
    return any_has_given_up([this](uint32_t q) { return touches(rank_, q); });
}

bool WindowBulk::some_rank_has_given_up() const {
    return any_has_given_up([this](uint32_t q) { return q != rank_; });
}

// Waits for all ranks, because the caller may overwrite its buffers only when no rank touches them.
WindowOperation::Step WindowBulk::finish() {
    for (; next_ < ranks_; next_++)
        if (touches(next_, rank_) && !has_published(next_, &RankFlags::reduced, end()))
            return Step::idle;
    call_.window->release(rank_, end());
    return Step::done;
}

// ---- buffers on an accelerator ----

WindowOperation::Step WindowBulk::announce_device() {
    const bool offers = device_->can_serve();
    if (offers) {
        device_->describe(call_.window->flags(rank_).on_device[call_.number & 1]);
        own_ = Offer::on_device(device_->device());
    }
    announce(&own_, sizeof own_);
    if (!offers) return use_copies();
    stage_ = Stage::gather_devices;
    return Step::moved;
}

// All ranks see the same headers, so all choose the same way.
WindowOperation::Step WindowBulk::gather_devices() {
    for (; next_ < ranks_; next_++) {
        const Peer peer = look_at(next_);
        if (peer == Peer::missing) return Step::idle;
        if (peer == Peer::differs) return Step::mismatch;
        if (!offer_of(next_).is_on_device(device_->device())) return use_copies();
    }
    stage_ = Stage::device;
    return run_device();
}

WindowOperation::Step WindowBulk::run_device() {
    const uint32_t leader = WindowDevice::leader;
    if (rank_ == leader) {
        if (const Step s = lead_device(); s != Step::done) return s;
    } else {
        // A leader that declined may have published a later operation, but declines none before all
        // ranks have announced it.
        const bool is_over = has_published(leader, &RankFlags::reduced, end());
        if (has_published(leader, &RankFlags::declined, call_.number)) return use_copies();
        if (!is_over) return Step::idle;
    }
    device_->landing().use_direct();
    call_.window->release(rank_, end());
    return Step::done;
}

WindowOperation::Step WindowBulk::lead_device() {
    // Copies: the other rank may write there while this one checks what it has read.
    const auto offers = [this](uint32_t rank) -> DeviceOffer { return device_offer(rank); };
    if (!device_->is_begun()) {
        if (some_rank_has_given_up()) return Step::idle;
        if (!device_->reaches_all(offers)) {
            if (!under_lock()) return Step::needs_lock;
            if (const Status s = device_->import_all(offers); s != DTRAIN_OK)
                return decline_device(s != DTRAIN_ERR_BUSY);
        }
        const Status s = device_->submit(device_job(), call_.dtype, call_.op);
        if (!device_->is_begun()) return decline_device(true);
        if (s == DTRAIN_OK) return Step::moved;
    }
    const Status s = device_->look();
    if (s == DTRAIN_IN_PROGRESS) return Step::idle;
    if (s != DTRAIN_OK && !device_->is_begun()) return decline_device(true);
    if (s != DTRAIN_OK) return broken(s, int32_t(rank_));
    if (some_rank_has_given_up()) return Step::idle;
    publish(&RankFlags::reduced, end());
    return Step::done;
}

// The other ranks wait to hear that this one cannot do it.
WindowOperation::Step WindowBulk::decline_device(bool for_good) {
    if (for_good) device_->give_up();
    publish(&RankFlags::declined, call_.number);
    return use_copies();
}

// The gate keeps the work from beginning before the input is there. Ranks with buffers of the host
// choose between direct and pipeline by the buffers of those that give, so this rank does so, too.
WindowOperation::Step WindowBulk::use_copies() {
    stage_ = Stage::copies;
    if (!under_lock()) return Step::needs_lock;
    engine::Landing &landing = device_->landing();
    if (const Status s = landing.use_copies(); s != DTRAIN_OK) return broken(s, int32_t(rank_));
    gate = &landing;
    next_ = 0;
    stage_ = Stage::gather;
    return Step::moved;
}

} // namespace dtrain::collectives
