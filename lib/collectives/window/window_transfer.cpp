// Large collectives that move or sum pieces in shared memory: the direct way and the pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_transfer.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>

namespace dtrain::collectives {
namespace {

constexpr uint64_t largest_chunk = 128 << 10;
// Number of blocks of a short call, so that its stages overlap.
constexpr uint64_t pieces_overlap = 8;

bool adds_up(Kind kind) { return kind == Kind::reduce_scatter || kind == Kind::reduce; }

// Whether a giver has a different piece for each rank, rather than the same for all.
bool has_many(Kind kind) {
    return kind == Kind::reduce_scatter || kind == Kind::scatter || kind == Kind::alltoall;
}

bool gives(const CollectiveSpec &spec, uint32_t rank) {
    bool rooted = spec.kind == Kind::broadcast || spec.kind == Kind::scatter;
    return !rooted || rank == uint32_t(spec.root);
}

bool takes(const CollectiveSpec &spec, uint32_t rank) {
    if (spec.kind == Kind::broadcast) return rank != uint32_t(spec.root);
    bool rooted = spec.kind == Kind::reduce || spec.kind == Kind::gather;
    return !rooted || rank == uint32_t(spec.root);
}

bool gives_others(const CollectiveSpec &spec, uint32_t rank) {
    bool to_root = spec.kind == Kind::reduce || spec.kind == Kind::gather;
    return gives(spec, rank) && !(to_root && rank == uint32_t(spec.root));
}

// Of two ranks, one only gives and the other only takes, so much that both should copy: for less,
// waiting for each other costs more (docs/PERFORMANCE.md).
constexpr uint64_t least_together = 64 << 10, least_by_kernel_together = 128 << 10;
bool both_may_copy(const CollectiveSpec &spec) {
    const Kind kind = spec.kind;
    return spec.size == 2 && typical_bytes(spec) >= least_together &&
           (kind == Kind::broadcast || kind == Kind::scatter || kind == Kind::gather);
}

// The smallest piece, in bytes, for which copies by the kernel are faster (docs/PERFORMANCE.md).
// The kernel costs more per byte, but spares the copy into the ring: one of two copies or, if all
// ranks read the same data, one of as many as there are ranks. If only the root gives, it would be
// idle, while in the pipeline all cores copy; of two ranks, both copy. Where ranks share cores,
// none is idle, and a copy less is less to do for all.
struct LeastByKernel {
    static constexpr uint64_t never = UINT64_MAX;
    uint64_t near = never, far = never; // by the distance of the cores

    static LeastByKernel of(const CollectiveSpec &spec, bool ranks_share_cores) {
        // A rank that only takes does not know how far the cores are apart.
        if (both_may_copy(spec)) return always(least_by_kernel_together);
        switch (spec.kind) {
        case Kind::alltoall: return always(64 << 10);
        case Kind::allgather:
            if (ranks_share_cores) return always(256 << 10);
            return {.near = uint64_t(spec.size) * (256 << 10),
                    .far = uint64_t(spec.size) * (8 << 20)};
        case Kind::broadcast: return always(ranks_share_cores ? 128 << 10 : never);
        case Kind::gather:
        case Kind::scatter: return always(ranks_share_cores ? 256 << 10 : never);
        default: return {};
        }
    }

  private:
    static LeastByKernel always(uint64_t bytes) { return {.near = bytes, .far = bytes}; }
};

uint64_t largest_piece(const CollectiveSpec &spec) { return Layout(spec).largest(); }

uint64_t transfer_chunk(const CollectiveSpec &spec, const Window &window) {
    uint64_t part = std::bit_ceil(largest_piece(spec) / pieces_overlap + 1);
    return std::min({std::max(part, smallest_chunk), largest_chunk, window.chunk_bytes()});
}

} // namespace

bool WindowTransfer::suits(const CollectiveSpec &spec, bool ragged) {
    if (over_graph(spec.kind)) return false;
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::barrier: return false;
    case Kind::alltoall: return !ragged; // the number of blocks is unknown
    default: return true;
    }
}

uint64_t WindowTransfer::block_bytes(const CollectiveSpec &spec, const Window &window) {
    return transfer_chunk(spec, window) * (has_many(spec.kind) ? uint64_t(spec.size) : 1);
}

uint64_t WindowTransfer::blocks(const CollectiveSpec &spec, const Window &window) {
    uint64_t chunk = transfer_chunk(spec, window);
    return (largest_piece(spec) + chunk - 1) / chunk;
}

SharedBuffers WindowTransfer::find_shared(memory::Registry &registry,
                                          const transport::Device &device,
                                          const CollectiveSpec &spec, const void *send, void *recv,
                                          engine::Request &request) {
    auto rank = uint32_t(spec.rank);
    if (both_may_copy(spec) && !gives_others(spec, rank))
        return SharedBuffers::find(registry, device, recv, recv, output_bytes(spec), request);
    // All-to-all in place overwrites data that the others have not read yet.
    if (!gives_others(spec, rank) || (spec.kind == Kind::alltoall && spec.in_place)) return {};
    bool is_broadcast = spec.kind == Kind::broadcast;
    const void *from = is_broadcast ? recv : send;
    uint64_t bytes = is_broadcast ? output_bytes(spec) : input_bytes(spec);
    return SharedBuffers::find(registry, device, from, from, bytes, request);
}

WindowTransfer::WindowTransfer(engine::Request *completed, const WindowCall &call,
                               const SharedBuffers &buffers, PeerMemory &peers,
                               engine::OperationListener &listener, bool on_stack)
    : WindowBulk(completed, call, buffers, peers, listener, on_stack), layout_(call_.spec),
      chunk_(transfer_chunk(call_.spec, *call.window)),
      block_bytes_(block_bytes(call_.spec, *call.window)),
      blocks_(blocks(call_.spec, *call.window)), gives_(gives_others(call_.spec, rank_)),
      takes_(takes(call_.spec, rank_)) {
    if (WindowDevice::serves(call_.spec)) consider_device();
}

// ---- which bytes go where ----

const uint8_t *WindowTransfer::source() const {
    return static_cast<const uint8_t *>(call_.spec.kind == Kind::broadcast ? call_.recv
                                                                           : call_.send);
}

uint64_t WindowTransfer::piece_bytes(uint32_t from, uint32_t to) const {
    return layout_.bytes(int32_t(has_many(call_.spec.kind) ? to : from));
}

uint64_t WindowTransfer::taken_bytes() const {
    return target_offset(1 - taker()) + piece_bytes(1 - taker(), taker());
}

uint64_t WindowTransfer::source_offset(uint32_t to) const {
    return has_many(call_.spec.kind) ? layout_.offset(int32_t(to)) : 0;
}

uint64_t WindowTransfer::target_offset(uint32_t from) const {
    switch (call_.spec.kind) {
    case Kind::allgather:
    case Kind::gather:
    case Kind::alltoall: return layout_.offset(int32_t(from));
    default: return 0;
    }
}

uint64_t WindowTransfer::part_of(uint64_t block, uint64_t bytes) const {
    uint64_t begin = block * chunk_;
    return begin < bytes ? std::min(chunk_, bytes - begin) : 0;
}

uint8_t *WindowTransfer::slot(uint32_t from, uint32_t to, uint64_t block) const {
    uint64_t offset = has_many(call_.spec.kind) ? to * chunk_ : 0;
    return call_.window->at(from, position(block) + offset);
}

template <class F> void WindowTransfer::add_up(uint64_t begin, uint64_t bytes, F &&address) {
    const void *sources[max_window_ranks];
    // In rank order on every rank, so that every way gives the same result.
    for (uint32_t q = 0; q < ranks_; q++) sources[q] = address(q);
    sources[rank_] = source() + source_offset(rank_) + begin;
    uint8_t *to = static_cast<uint8_t *>(call_.recv) + begin;
    uint64_t count = bytes / call_.spec.element_bytes;
    device::reduce_many(to, sources, ranks_, count, call_.dtype, call_.op);
}

void WindowTransfer::copy_piece(uint32_t from, uint64_t begin, const uint8_t *address,
                                uint64_t bytes) {
    uint8_t *to = static_cast<uint8_t *>(call_.recv) + target_offset(from) + begin;
    if (to == address || bytes == 0) return;
    auto copy = call_.result_bytes > cache_bytes ? device::copy_stream : device::copy;
    copy(to, address, bytes);
}

// ---- direct ----

bool WindowTransfer::takes_from(uint32_t rank, uint32_t owner) const {
    return rank != owner && gives_others(call_.spec, owner) && takes(call_.spec, rank);
}

bool WindowTransfer::touches(uint32_t rank, uint32_t owner) const {
    return takes_from(rank, owner) || (together_ && takes_from(owner, rank));
}

uint64_t WindowTransfer::touched_bytes(uint32_t rank) const {
    if (!gives_others(call_.spec, rank)) return together_ ? taken_bytes() : 0;
    return has_many(call_.spec.kind) ? layout_.end() : layout_.bytes(int32_t(rank));
}

void WindowTransfer::offer_addresses(Offer &offer) {
    if (call_.spec.kind == Kind::alltoall && call_.spec.in_place) return; // find_shared()
    if (adds_up(call_.spec.kind)) return;                                 // it would be a copy more
    is_offered_ = both_may_copy(call_.spec) && rank_ == taker();
    if (is_offered_) call_.window->flags(rank_).incoming.parts.open();
    const LeastByKernel least = LeastByKernel::of(call_.spec, peers_.ranks_share_cores);
    if (is_worth_kernel(typical_bytes(call_.spec), least.near, least.far))
        offer.address = reinterpret_cast<uintptr_t>(is_offered_ ? call_.recv : source());
}

bool WindowTransfer::needs_all_offers() const { return both_may_copy(call_.spec); }

void WindowTransfer::have_offers() {
    if (!both_may_copy(call_.spec)) return;
    together_ = by_kernel_ || offer_of(taker()).shared.cover(taken_bytes());
}

bool WindowTransfer::is_left_alone() {
    if (!is_offered_) return true;
    tp::Parts &parts = call_.window->flags(rank_).incoming.parts;
    parts.close();
    return !parts.is_being_written();
}

// Copies directly from the giver's buffer.
Status WindowTransfer::take_piece(uint32_t from, uint64_t begin, uint64_t bytes) {
    const uint8_t *buffer = from == rank_ ? source() : sends_[from];
    const uint64_t offset = source_offset(rank_) + begin;
    if (from == rank_ || !by_kernel_) {
        copy_piece(from, begin, buffer + offset, bytes);
        return DTRAIN_OK;
    }
    uint8_t *to = static_cast<uint8_t *>(call_.recv) + target_offset(from) + begin;
    return peers_.processes.read(from, to, buffer + offset, bytes);
}

// A part of the piece that one of two ranks takes from the other, by whichever is free.
WindowOperation::Step WindowTransfer::copy_together() {
    const uint32_t giver = 1 - taker();
    tp::Parts &parts = call_.window->flags(taker()).incoming.parts;
    if (rank_ == giver) parts.begin_write();
    const tp::Part part = parts.take(piece_bytes(giver, taker()));
    Status s = DTRAIN_OK;
    if (part.bytes == 0)
        are_parts_taken_ = true;
    else if (rank_ == giver)
        s = give_part(part.begin, part.bytes);
    else
        s = take_piece(giver, part.begin, part.bytes);
    if (rank_ == giver) parts.end_write();
    return s == DTRAIN_OK ? Step::moved : broken(s, int32_t(1 - rank_));
}

// Into the taker's buffer.
Status WindowTransfer::give_part(uint64_t begin, uint64_t bytes) {
    const uint8_t *from = source() + source_offset(taker()) + begin;
    uint8_t *const to = recvs_[taker()] + target_offset(rank_) + begin;
    if (by_kernel_) return peers_.processes.write(taker(), to, from, bytes);
    auto copy = call_.result_bytes > cache_bytes ? device::copy_stream : device::copy;
    copy(to, from, bytes);
    return DTRAIN_OK;
}

WindowOperation::Step WindowTransfer::direct() {
    if (together_ && !are_parts_taken_) return copy_together();
    if (!takes_) return Step::done;
    if (adds_up(call_.spec.kind)) {
        uint64_t bytes = std::min(piece_bytes(rank_, rank_) - begin_, bytes_per_step);
        add_up(begin_, bytes,
               [&](uint32_t q) { return sends_[q] + source_offset(rank_) + begin_; });
        begin_ += bytes;
        return begin_ == piece_bytes(rank_, rank_) ? Step::done : Step::moved;
    }
    // The own piece comes last, and each rank begins with the piece of another one.
    uint32_t q = (rank_ + turn_) % ranks_;
    const bool has_it = together_ && q != rank_;
    if (gives(call_.spec, q) && piece_bytes(q, rank_) > 0 && !has_it) {
        uint64_t bytes = std::min(piece_bytes(q, rank_) - begin_, bytes_per_step);
        if (Status s = take_piece(q, begin_, bytes); s != DTRAIN_OK) return broken(s, int32_t(q));
        begin_ += bytes;
        if (begin_ < piece_bytes(q, rank_)) return Step::moved;
        begin_ = 0;
    }
    return ++turn_ > ranks_ ? Step::done : Step::moved;
}

// ---- by the leader, on an accelerator ----

DeviceJob WindowTransfer::device_job() const {
    const Kind kind = call_.spec.kind;
    DeviceJob job;
    // A new step for a piece from this rank to that one.
    const auto begin = [&](uint32_t from, uint32_t to) {
        job.push_back({.from = {}, .to = {}, .bytes = piece_bytes(from, to)});
    };
    const auto add_source = [&](uint32_t from, uint32_t to) {
        job.back().from.push_back({from, kind == Kind::broadcast, source_offset(to)});
    };
    const auto add_target = [&](uint32_t from, uint32_t to) {
        job.back().to.push_back({to, true, target_offset(from)});
    };
    for (uint32_t to = 0; adds_up(kind) && to < ranks_; to++) {
        if (!takes(call_.spec, to)) continue;
        begin(to, to);
        for (uint32_t from = 0; from < ranks_; from++) add_source(from, to);
        add_target(to, to);
    }
    for (uint32_t from = 0; !adds_up(kind) && from < ranks_; from++) {
        if (!gives(call_.spec, from)) continue;
        bool is_new = true; // the same piece for all is one step
        for (uint32_t to = 0; to < ranks_; to++) {
            if (!takes(call_.spec, to)) continue;
            if (is_new) {
                begin(from, to);
                add_source(from, to);
            }
            add_target(from, to);
            is_new = has_many(kind);
        }
    }
    return job;
}

// ---- pipeline ----

WindowOperation::Step WindowTransfer::pipeline() {
    bool moved = false;
    bool again = true;
    for (uint32_t round = 0; again && round < rounds_per_step; round++) {
        again = false;
        // A rank that also takes gives at most two blocks ahead, so that they are still in the
        // cache.
        if (given_ < blocks_ && (!takes_ || given_ < taken_ + 2)) again = give_block();
        if (taken_ < given_) {
            int r = take_block();
            if (r < 0) return Step::mismatch;
            again = again || r > 0;
        }
        moved = moved || again;
    }
    if (taken_ == blocks_) return Step::done;
    return moved ? Step::moved : Step::idle;
}

bool WindowTransfer::pipeline_lacks(uint32_t rank) const {
    return (taken_ < blocks_ && touches(rank_, rank) &&
            !has_published(rank, &RankFlags::copied, position(taken_ + 1))) ||
           (gives_ && given_ < blocks_ && call_.window->holds(rank, position(given_ + 1)));
}

bool WindowTransfer::give_block() {
    if (gives_) {
        if (!call_.window->released(position(given_ + 1))) return false;
        for (uint32_t i = 1; i < ranks_; i++) {
            uint32_t q = (rank_ + i) % ranks_;
            if (!touches(q, rank_)) continue;
            call_.window->write(slot(rank_, q, given_),
                                source() + source_offset(q) + given_ * chunk_,
                                part_of(given_, piece_bytes(rank_, q)));
            if (!has_many(call_.spec.kind)) break; // the others read the same piece
        }
    }
    given_++;
    publish(&RankFlags::copied, position(given_));
    return true;
}

int WindowTransfer::take_block() {
    for (uint32_t q = 0; q < ranks_; q++) {
        if (!touches(rank_, q)) continue;
        if (Peer peer = taken_ == 0 ? look_at(q) : Peer::there; peer != Peer::there)
            return peer == Peer::differs ? -1 : 0;
        if (!has_published(q, &RankFlags::copied, position(taken_ + 1))) return 0;
    }
    uint64_t begin = taken_ * chunk_;
    if (takes_ && adds_up(call_.spec.kind)) {
        add_up(begin, part_of(taken_, piece_bytes(rank_, rank_)),
               [&](uint32_t q) { return slot(q, rank_, taken_); });
    } else if (takes_) {
        for (uint32_t i = 1; i <= ranks_; i++) {
            uint32_t q = (rank_ + i) % ranks_;
            if (!gives(call_.spec, q)) continue;
            const uint8_t *from =
                q == rank_ ? source() + source_offset(rank_) + begin : slot(q, rank_, taken_);
            copy_piece(q, begin, from, part_of(taken_, piece_bytes(q, rank_)));
        }
    }
    taken_++;
    call_.window->release(rank_, position(taken_));
    call_.window->ring();
    return 1;
}

} // namespace dtrain::collectives
