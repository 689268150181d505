// Predicts the cost of a collective with closed formulas for price()'s model.
// SPDX-License-Identifier: Apache-2.0
//
// A transfer of m bytes consists of k chunks of s = m / k. One chunk needs hop(s) from the sender's
// processor to the receiver's. The next one follows when the busiest resource is free again, after
// the gap. Rounds that overlap chunk by chunk therefore cost max(hop, k * gap) each.
#include "collectives/cost/price.h"
#include "collectives/schedule/build.h"
#include "engine/tag.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace dtrain::collectives {
namespace {

class Formula {
  public:
    Formula(Kind kind, int32_t size, uint64_t bytes, const NetworkModel &model, uint64_t chunk)
        : kind_(kind), size_(size), n_(size), m_(double(bytes)), chunk_(double(chunk)),
          o_(model.overhead_ns), latency_(model.latency_ns), wire_(model.ns_per_byte),
          sum_(model.reduce_ns_per_byte), copy_(model.copy_ns_per_byte),
          ranks_per_core_(model.ranks_per_core) {}

    double direct() const;
    double ring() const;
    double recursive_doubling() const;
    double halving_doubling() const;
    double binomial_tree() const;
    double barrier_in_tree() const;
    double double_tree() const;
    double bruck() const;

  private:
    struct Chunks {
        double count, bytes; // of each chunk, on average
        double largest = bytes;
    };
    // `transfers`: as in Plan::limit_messages().
    Chunks cut(double bytes, double transfers = 1) const {
        double most = std::max(1.0, std::floor(engine::max_messages / transfers));
        double count = std::clamp(std::ceil(bytes / chunk_), 1.0, most);
        return {count, bytes / count, std::max(bytes / count, std::min(bytes, chunk_))};
    }
    double hop(double bytes, double work = 0) const {
        return 2 * o_ + latency_ + bytes * (wire_ + work);
    }
    // Time between two chunks of a stream that a rank receives, works on and passes on.
    double gap(double bytes, double work = 0) const {
        return std::max(2 * o_ + bytes * work, bytes * wire_);
    }
    // Rounds in which every rank passes on what it received in the round before. A chunk that is
    // ready to be sent waits for the sum of another.
    double rounds(double count, Chunks chunks, double work = 0) const {
        double stream = chunks.count * gap(chunks.bytes, work);
        if (chunks.count > 1) stream += chunks.bytes * work;
        return count * std::max(hop(chunks.largest, work), stream);
    }
    // One round that does not overlap with others.
    double round(Chunks chunks, double work = 0) const {
        return hop(chunks.bytes, work) + (chunks.count - 1) * gap(chunks.bytes, work);
    }
    double exchange(bool sends, bool receives, double work = 0) const;
    double sums_at_end(double last, double overlapped) const;
    double sums_of_trees(double sum, double wire, double height) const;
    double doubling_blocks(double blocks, double block, bool tree) const;
    int32_t log2_up() const { return int32_t(std::bit_width(uint32_t(size_ - 1))); }
    int32_t log2_down() const { return int32_t(std::bit_width(uint32_t(size_))) - 1; }
    bool lonely_fold() const { return size_ == int32_t(std::bit_floor(uint32_t(size_))) + 1; }
    bool folded() const { return !std::has_single_bit(uint32_t(size_)); }

    const Kind kind_;
    const int32_t size_;
    const double n_, m_, chunk_, o_, latency_, wire_, sum_, copy_, ranks_per_core_;
};

// A rank sends to, receives from, or does both with all others, while its processor has other work.
double Formula::exchange(bool sends, bool receives, double work) const {
    Chunks chunks = cut(kind_ == Kind::barrier ? 1 : m_);
    double messages = (n_ - 1) * chunks.count, wire = chunks.bytes * wire_;
    double links = 2 * o_ + latency_ + messages * wire;
    double last_out = sends * messages * o_ + wire + latency_ + o_;
    double processor = messages * o_ * (sends + receives) + work;
    if (!sends) processor += o_ + latency_;
    return std::max({links, last_out, processor});
}

// The sums in rank order that remain when the last chunk arrives: at least `last` sums of it, and
// those that did not fit into the time in which the last `overlapped` chunks arrived.
double Formula::sums_at_end(double last, double overlapped) const {
    Chunks chunks = cut(m_);
    return std::max(last * chunks.bytes * sum_,
                    (n_ - 1) * m_ * sum_ - overlapped * chunks.bytes * wire_);
}

double Formula::direct() const {
    double chunks = cut(m_).count;
    double copied = m_ * copy_, summed = (n_ - 1) * m_ * sum_ + copied;
    switch (kind_) {
    case Kind::allreduce:
    case Kind::reduce_scatter:
        return std::max(exchange(true, true) + sums_at_end(n_ - 1, chunks - 1),
                        exchange(true, true, summed));
    case Kind::reduce:
        return std::max(exchange(false, true) + sums_at_end(1, (n_ - 1) * chunks - 1),
                        exchange(false, true, summed));
    case Kind::allgather:
    case Kind::alltoall: return exchange(true, true, copied);
    case Kind::barrier: return exchange(true, true);
    case Kind::broadcast: return exchange(true, false);
    case Kind::scatter: return exchange(true, false, copied);
    case Kind::gather: return exchange(false, true, copied);
    case Kind::neighbor_average: // only one algorithm
    case Kind::neighbor_allgather:
    case Kind::neighbor_alltoall: break;
    }
    return 0;
}

double Formula::ring() const {
    double steps = n_ - 1;
    switch (kind_) {
    case Kind::allreduce: {
        Chunks chunks = cut(m_ / n_, 2 * steps);
        return rounds(steps, chunks, sum_) + rounds(steps, chunks);
    }
    case Kind::reduce_scatter: return rounds(steps, cut(m_, steps), sum_);
    case Kind::allgather: return rounds(steps, cut(m_, steps));
    default: break; // broadcast
    }
    Chunks chunks = cut(m_);
    return steps * hop(chunks.bytes) + (chunks.count - 1) * gap(chunks.bytes);
}

double Formula::recursive_doubling() const {
    if (kind_ == Kind::barrier) return log2_up() * hop(1);
    if (kind_ == Kind::allgather) return doubling_blocks(n_, m_, false) + m_ * copy_;
    Chunks chunks = cut(m_, 2);
    if (!folded()) return rounds(log2_down(), chunks, sum_);
    // A rank that folds receives once more. Its mate gets the result a hop later, unless it is the
    // only mate.
    return rounds(log2_down() + 1, chunks, sum_) + (lonely_fold() ? 2 * o_ : hop(chunks.bytes));
}

// Collects `blocks` blocks in rounds that double the number of blocks held; the last set is smaller
// unless `blocks` is a power of two. It waits only for the rounds that collect it: in a tree, those
// of a smaller tree.
double Formula::doubling_blocks(double blocks, double block, bool tree) const {
    if (blocks <= 1) return 0;
    double held = 1, before = 0, time = 0;
    double last = blocks - double(std::bit_ceil(uint32_t(blocks)) >> 1);
    for (; 2 * held < blocks; held *= 2) {
        time += round(cut(held * block));
        if (held < last) before = time;
    }
    if (tree && last < held) before = doubling_blocks(last, block, true);
    Chunks chunks = cut(last * block);
    double own = before + round(chunks), after = chunks.count * std::max(o_, chunks.bytes * wire_);
    // The root of a gather may receive it while the largest set is in transit.
    if (kind_ == Kind::gather && own < time) after = std::max(0.0, after - o_ - latency_);
    return std::max(own, time + after);
}

double Formula::halving_doubling() const {
    bool scatters = kind_ == Kind::reduce_scatter;
    double total = scatters ? m_ * n_ : m_, time = 0;
    for (double parts = 2; parts <= n_; parts *= 2) {
        time += round(cut(total / parts, 2), sum_);
        if (!scatters) time += round(cut(total / parts, 2));
    }
    if (scatters) time += m_ * copy_;
    if (!folded()) return time;
    Chunks chunks = cut(total, 2);
    time += round(chunks, sum_); // the first round's chunks use the same link
    if (!lonely_fold() && chunks.count > 1) time += total / 2 * wire_;
    if (kind_ == Kind::allreduce) time += hop(chunks.bytes);
    // Chunks of the folds and of the rounds delay each other; the factors were measured in the
    // simulation.
    if (chunks.count > 1) {
        if (kind_ == Kind::allreduce) time += total * wire_ * (lonely_fold() ? 0.8 : 0.35);
        if (kind_ == Kind::reduce && lonely_fold()) time += 2.5 * chunks.bytes * wire_;
        bool short_path = kind_ == Kind::reduce && !lonely_fold();
        time += total * std::max(0.0, sum_ - wire_) * (short_path ? 0.4 : 1);
    }
    if (scatters) time += lonely_fold() ? 2 * o_ + m_ * wire_ : round(cut(m_, 2));
    return time;
}

double Formula::binomial_tree() const {
    if (kind_ == Kind::gather || kind_ == Kind::scatter) return doubling_blocks(n_, m_, true);
    if (kind_ == Kind::barrier) return barrier_in_tree();
    // The longest path has one hop per bit. The root serves one more child before or after it.
    Chunks chunks = cut(m_);
    double depth = log2_down(), children = log2_up(), wire = chunks.bytes * wire_;
    double up = std::max(o_ + chunks.bytes * sum_, wire), down = std::max(o_, wire);
    double first_up = depth * hop(chunks.bytes, sum_) + (children - depth) * up;
    double first_down = depth * hop(chunks.bytes) + (children - depth) * down;
    double more = (chunks.count - 1) * children;
    if (kind_ == Kind::reduce) return first_up + more * up;
    if (kind_ == Kind::broadcast) return first_down + more * down;
    return first_up + first_down + more * std::max(2 * o_ + chunks.bytes * sum_, wire);
}

// Twice the longest path of the tree, on which few ranks work at the same time. But a core handles
// four messages, two of them sends, for each of its ranks.
double Formula::barrier_in_tree() const {
    const double own = o_ / ranks_per_core_, wire = wire_, depth = log2_down(),
                 children = log2_up(), between = std::max(own, wire);
    const double path = depth * (2 * own + latency_ + wire) + (children - depth) * between;
    return std::max(2 * path + copy_, 4 * o_);
}

// Time of the sums between two pairs of chunks. If summing is slower than the link, the first
// children's chunks queue ahead of the second children's (first come, first served), so each level
// lags; the size of the lag was measured in the simulation.
double Formula::sums_of_trees(double sum, double wire, double height) const {
    if (sum <= wire) return 2 * sum;
    double lag = wire > 0 ? 2 + 2 * sum / (3 * wire) : height + 1;
    return sum * std::clamp(lag, 2.0, std::max(2.5, height + 1));
}

double Formula::double_tree() const {
    Chunks chunks = cut(m_ / 2, 4); // of each half
    double wire = chunks.bytes * wire_, sum = chunks.bytes * sum_, more = chunks.count - 1;
    double up = hop(chunks.bytes, sum_), down = hop(chunks.bytes);
    // On each level the second child comes later; the topmost rank may have only one. If summing is
    // the bottleneck, the first child's next chunk comes between.
    double later_up = std::max(o_ + sum, wire), later_down = std::max(o_, wire);
    if (sum >= wire) later_up += sum * std::min(more, 1.5);
    // Between two pairs of chunks: a transfer over the busiest link for each child and parent, and
    // the transfers that wait behind chunks that leaves have ready from the start.
    if (kind_ == Kind::allreduce) {
        double height = log2_down(), slots = height - !folded(), peers = std::min(n_, 4.0);
        double links = peers * wire + (n_ > 3 ? std::max(wire, sum) : 0);
        return height * (up + down) + slots * (later_up + later_down) +
               more * std::max(2 * peers * o_ + sums_of_trees(sum, wire, height), links);
    }
    double height = log2_up(), slots = height - lonely_fold();
    if (kind_ == Kind::broadcast)
        return height * down + slots * later_down + more * std::max(4 * o_, 2 * wire);
    double behind = n_ == 2 ? 0 : n_ == 3 ? wire : std::max(wire, 2 * sum);
    double busy = 4 * o_ + sums_of_trees(sum, wire, height);
    return height * up + slots * later_up + more * std::max(busy, 2 * wire + behind);
}

double Formula::bruck() const {
    double rounds = log2_up();
    if (kind_ == Kind::barrier) return rounds * hop(1);
    if (kind_ == Kind::alltoall) {
        double time = 2 * n_ * m_ * copy_;
        for (double distance = 1; distance < n_; distance *= 2) {
            double whole = std::floor(n_ / (2 * distance)) * distance;
            double blocks = whole + std::max(0.0, std::fmod(n_, 2 * distance) - distance);
            time += round(cut(blocks * m_)) + 2 * blocks * m_ * copy_;
        }
        // The last set may not have to wait for the round before.
        double held = std::bit_ceil(uint32_t(size_)) >> 1;
        return folded() && n_ - held <= held / 2 ? time - latency_ - o_ : time;
    }
    double gather = m_ * copy_ + doubling_blocks(n_, m_, false);
    if (kind_ == Kind::allgather) return gather + n_ * m_ * copy_;
    return gather + (n_ - 1) * m_ * sum_ + m_ * copy_;
}

} // namespace

double predict(Kind kind, Algorithm algorithm, int32_t size, uint64_t bytes,
               const NetworkModel &model, uint64_t chunk_bytes) {
    const bool needs_hosts = kind != Kind::allreduce && (algorithm == Algorithm::hierarchical ||
                                                         algorithm == Algorithm::hierarchical_tree);
    if (needs_hosts || !supports(kind, algorithm, size))
        return std::numeric_limits<double>::infinity();
    if (size == 1 || (bytes == 0 && kind != Kind::barrier)) return 0;
    Formula formula(kind, size, bytes, model, chunk_bytes);
    switch (algorithm) {
    case Algorithm::direct: return formula.direct();
    case Algorithm::ring: return formula.ring();
    case Algorithm::recursive_doubling: return formula.recursive_doubling();
    case Algorithm::halving_doubling: return formula.halving_doubling();
    case Algorithm::binomial_tree: return formula.binomial_tree();
    case Algorithm::double_tree: return formula.double_tree();
    case Algorithm::bruck: break;
    case Algorithm::hierarchical: return formula.ring(); // equal without hosts
    case Algorithm::hierarchical_tree: return formula.recursive_doubling();
    }
    return formula.bruck();
}

} // namespace dtrain::collectives
