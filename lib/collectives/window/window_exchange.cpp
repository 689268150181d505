// Small collectives in shared memory: publish, then combine.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_exchange.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace dtrain::collectives {
namespace {

bool rooted(Kind kind) { return kind == Kind::broadcast || kind == Kind::scatter; }

// Number of elements of `rank`'s block, and of all blocks before it.
uint64_t block_count(const CollectiveSpec &spec, uint32_t rank) {
    return spec.counts.empty() ? spec.count : spec.counts[rank];
}
uint64_t block_start(const CollectiveSpec &spec, uint32_t rank) {
    if (spec.counts.empty()) return spec.count * rank;
    return std::accumulate(spec.counts.begin(), spec.counts.begin() + rank, uint64_t{0});
}
uint64_t displacement(const CollectiveSpec &spec, uint32_t rank) {
    return spec.displs.empty() ? block_start(spec, rank) : spec.displs[rank];
}

// Bytes that `rank` publishes. The blocks of a whole buffer lie packed in the slot.
uint64_t published_bytes(const CollectiveSpec &spec, uint32_t rank) {
    auto ranks = uint32_t(spec.size);
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::reduce: return spec.count * spec.element_bytes;
    case Kind::allgather:
    case Kind::gather: return block_count(spec, rank) * spec.element_bytes;
    case Kind::reduce_scatter:
    case Kind::alltoall: return block_start(spec, ranks) * spec.element_bytes;
    case Kind::broadcast: return rank == uint32_t(spec.root) ? spec.count * spec.element_bytes : 0;
    case Kind::scatter:
        return rank == uint32_t(spec.root) ? block_start(spec, ranks) * spec.element_bytes : 0;
    default: return 0;
    }
}

uint64_t most_published(const CollectiveSpec &spec) {
    if (spec.counts.empty())
        return published_bytes(spec, rooted(spec.kind) ? uint32_t(spec.root) : 0);
    uint64_t most = 0;
    for (uint32_t r = 0; r < uint32_t(spec.size); r++)
        most = std::max(most, published_bytes(spec, r));
    return most;
}

} // namespace

uint64_t WindowExchange::block_bytes(const CollectiveSpec &spec) {
    uint64_t most = most_published(spec);
    return most <= Header::inline_bytes ? 0 : std::bit_ceil(most);
}

bool WindowExchange::suits(const CollectiveSpec &spec, bool ragged, const Window &window,
                           uint64_t allreduce_bytes) {
    if (over_graph(spec.kind)) return false; // neighbors only
    // A rank does not know the others' layouts.
    if (spec.kind == Kind::alltoall && ragged) return false;
    uint64_t most = most_published(spec), limit = window.exchange_bytes();
    // For large data, the pipeline moves less than reading everything from all ranks, or nothing if
    // the buffers are shared.
    if (spec.kind == Kind::allreduce && most > allreduce_bytes) return false;
    bool reads_all = spec.kind == Kind::allreduce || spec.kind == Kind::reduce;
    return most <= limit && (!reads_all || most * (uint64_t(spec.size) - 1) <= 2 * limit);
}

const uint8_t *WindowExchange::contribution(uint32_t rank, uint64_t bytes) const {
    return bytes <= Header::inline_bytes ? header(rank).data
                                         : call_.window->at(rank, call_.position);
}

const uint8_t *WindowExchange::contribution(uint32_t rank) const {
    return contribution(rank, published_bytes(call_.spec, rank));
}

void WindowExchange::publish() {
    const CollectiveSpec &spec = call_.spec;
    const uint64_t bytes = published_bytes(spec, rank_);
    auto *slot = const_cast<uint8_t *>(contribution(rank_, bytes));
    auto *from =
        static_cast<const uint8_t *>(spec.kind == Kind::broadcast ? call_.recv : call_.send);
    if (spec.kind == Kind::scatter && bytes > 0) { // the root's blocks may lie apart
        for (uint32_t r = 0; r < ranks_; r++) {
            uint64_t length = block_count(spec, r) * spec.element_bytes;
            call_.window->write(slot, from + displacement(spec, r) * spec.element_bytes, length);
            slot += length;
        }
    } else if (bytes > 0) {
        call_.window->write(slot, from, bytes);
    }
    announce(nullptr, 0); // the data is already in place
    published_ = true;
}

WindowOperation::Step WindowExchange::move() {
    const CollectiveSpec &spec = call_.spec;
    bool moved = !published_;
    if (!published_) {
        if (!may_announce() || !call_.window->released(end_)) return Step::idle;
        publish();
    }
    uint32_t first = 0, last = ranks_;
    if (rooted(spec.kind)) {
        first = uint32_t(spec.root);
        last = first + 1;
    } else if ((spec.kind == Kind::reduce || spec.kind == Kind::gather) && spec.rank != spec.root) {
        last = 0;
    }
    for (seen_ = std::max(seen_, first); seen_ < last; seen_++) {
        Peer peer = look_at(seen_);
        if (peer == Peer::missing) return moved ? Step::moved : Step::idle;
        if (peer == Peer::differs) return Step::mismatch;
    }
    if (first == 0 && last == ranks_) call_.window->announced = call_.number;
    combine();
    if (end_ != call_.position) call_.window->release(rank_, end_);
    return Step::done;
}

void WindowExchange::combine() {
    const CollectiveSpec &spec = call_.spec;
    auto *recv = static_cast<uint8_t *>(call_.recv);
    uint64_t size = spec.element_bytes, own = block_start(spec, rank_) * size;
    const void *sources[max_window_ranks];
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter: {
        if (spec.kind == Kind::reduce && spec.rank != spec.root) return;
        const bool scatters = spec.kind == Kind::reduce_scatter;
        const uint64_t count = scatters ? block_count(spec, rank_) : spec.count;
        const uint64_t bytes = published_bytes(spec, rank_); // as much as every rank
        for (uint32_t r = 0; r < ranks_; r++)
            sources[r] =
                (r == rank_ ? static_cast<const uint8_t *>(call_.send) : contribution(r, bytes)) +
                (scatters ? own : 0);
        // In rank order on every rank, so that results are bitwise equal.
        device::reduce_many(recv, sources, ranks_, count, call_.dtype, call_.op);
        return;
    }
    case Kind::allgather:
    case Kind::gather:
        if (spec.kind == Kind::gather && spec.rank != spec.root) return;
        for (uint32_t r = 0; r < ranks_; r++)
            device::copy(recv + displacement(spec, r) * size, contribution(r),
                         block_count(spec, r) * size);
        return;
    case Kind::alltoall:
        for (uint32_t r = 0; r < ranks_; r++)
            device::copy(recv + r * spec.count * size, contribution(r) + own, spec.count * size);
        return;
    case Kind::broadcast:
        if (spec.rank != spec.root)
            device::copy(recv, contribution(uint32_t(spec.root)), spec.count * size);
        return;
    case Kind::scatter:
        device::copy(recv, contribution(uint32_t(spec.root)) + own,
                     block_count(spec, rank_) * size);
        return;
    default: return;
    }
}

} // namespace dtrain::collectives
