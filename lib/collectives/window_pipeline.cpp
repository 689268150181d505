// SPDX-License-Identifier: Apache-2.0
#include "collectives/window_pipeline.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>

namespace dtrain::collectives {
namespace {

constexpr uint64_t smallest_chunk = 16 << 10;
constexpr uint64_t cache_bytes = 32 << 20; // results of larger calls do not stay in the cache

uint64_t total(const CollectiveSpec &spec) { return spec.count * spec.element_bytes; }

// Small calls are cut into two blocks, so that the stages overlap.
uint64_t chunk_of(const CollectiveSpec &spec, const Window &window) {
    uint64_t half = std::bit_ceil(total(spec) / uint64_t(spec.size) / 2);
    return std::min(std::max(half, smallest_chunk), window.chunk_bytes());
}

} // namespace

bool WindowPipeline::suits(const CollectiveSpec &spec, bool ragged) {
    return spec.kind == Kind::allreduce && !ragged && total(spec) > 0;
}

uint64_t WindowPipeline::block_bytes(const CollectiveSpec &spec, const Window &window) {
    return chunk_of(spec, window) * uint64_t(spec.size);
}

uint64_t WindowPipeline::blocks(const CollectiveSpec &spec, const Window &window) {
    uint64_t block = block_bytes(spec, window);
    return (total(spec) + block - 1) / block;
}

WindowPipeline::WindowPipeline(engine::Request *completed, const WindowCall &call,
                               engine::OperationListener &listener, bool on_stack)
    : WindowOperation(completed, call, listener, on_stack), bytes_(total(call.spec)),
      chunk_(chunk_of(call.spec, *call.window)), blocks_(blocks(call.spec, *call.window)) {}

WindowPipeline::Piece WindowPipeline::piece(uint64_t block, uint32_t owner) const {
    // The last block is shared out evenly, on whole cache lines.
    uint64_t begin = block * chunk_ * ranks_;
    uint64_t length = std::min(chunk_ * ranks_, bytes_ - begin);
    uint64_t share = (length / ranks_ + 63) / 64 * 64;
    uint64_t offset = std::min(length, share * owner);
    uint64_t bytes = owner + 1 == ranks_ ? length - offset : std::min(share, length - offset);
    return {begin + offset, bytes};
}

WindowOperation::Step WindowPipeline::move() {
    bool moved = false;
    for (bool again = true; again;) {
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

bool WindowPipeline::lacks(uint32_t rank) const {
    const RankFlags &flags = call_.window->flags(rank);
    uint64_t copied = flags.copied.value.load(std::memory_order_acquire);
    uint64_t reduced = flags.reduced.value.load(std::memory_order_acquire);
    return (reduced_ < blocks_ && copied < position(reduced_ + 1)) ||
           reduced < position(taken_ + 1);
}

// What this rank contributes to the others' pieces.
bool WindowPipeline::copy_in() {
    Window &window = *call_.window;
    if (!window.released(position(copied_ + 1))) return false;
    auto *send = static_cast<const uint8_t *>(call_.send);
    for (uint32_t i = 1; i < ranks_; i++) {
        uint32_t q = (rank_ + i) % ranks_;
        Piece p = piece(copied_, q);
        device::copy(slot(rank_, q, copied_), send + p.offset, p.bytes);
    }
    copied_++;
    window.flags(rank_).copied.value.store(position(copied_), std::memory_order_release);
    window.ring();
    return true;
}

int WindowPipeline::reduce_own() {
    const Window &window = *call_.window;
    for (uint32_t q = 0; q < ranks_; q++) {
        if (Peer peer = reduced_ == 0 ? look_at(q) : Peer::there; peer != Peer::there)
            return peer == Peer::differs ? -1 : 0;
        if (window.flags(q).copied.value.load(std::memory_order_acquire) < position(reduced_ + 1))
            return 0;
    }
    Piece p = piece(reduced_, rank_);
    uint64_t count = p.bytes / call_.spec.element_bytes;
    const void *sources[max_window_ranks];
    for (uint32_t q = 0; q < ranks_; q++) sources[q] = slot(q, rank_, reduced_);
    sources[rank_] = static_cast<const uint8_t *>(call_.send) + p.offset;
    uint8_t *result = slot(rank_, rank_, reduced_),
            *own = static_cast<uint8_t *>(call_.recv) + p.offset;
    void *const to[] = {result, own};
    device::reduce_to(to, 2, sources, ranks_, count, call_.dtype, call_.op);
    if (call_.spec.average)
        for (uint8_t *sum : {result, own}) device::scale(sum, count, call_.dtype, ranks_);
    reduced_++;
    window.flags(rank_).reduced.value.store(position(reduced_), std::memory_order_release);
    window.ring();
    return 1;
}

bool WindowPipeline::copy_out() {
    Window &window = *call_.window;
    for (uint32_t q = 0; q < ranks_; q++)
        if (window.flags(q).reduced.value.load(std::memory_order_acquire) < position(taken_ + 1))
            return false;
    auto *recv = static_cast<uint8_t *>(call_.recv);
    auto copy =
        bytes_ > cache_bytes && call_.send != call_.recv ? device::copy_stream : device::copy;
    for (uint32_t i = 1; i < ranks_; i++) {
        uint32_t q = (rank_ + i) % ranks_;
        Piece p = piece(taken_, q);
        copy(recv + p.offset, slot(q, q, taken_), p.bytes);
    }
    taken_++;
    window.release(rank_, position(taken_));
    window.ring();
    return true;
}

} // namespace dtrain::collectives
