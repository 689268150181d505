// What a collective costs: closed formulas for price()'s model.
// SPDX-License-Identifier: Apache-2.0
//
// A transfer of m bytes is k chunks of s = m / k. One chunk needs hop(s) from the sender's
// processor to the receiver's; the next one follows after the busiest resource is free again, the
// gap. Rounds that overlap chunk by chunk therefore cost max(hop, k * gap) each.
#include "collectives/build.h"
#include "collectives/price.h"
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
          sum_(model.reduce_ns_per_byte), copy_(model.copy_ns_per_byte) {}

    double direct() const;
    double ring() const;
    double recursive_doubling() const;
    double halving_doubling() const;
    double binomial_tree() const;
    double double_tree() const;
    double bruck() const;

  private:
    struct Chunks {
        double count, bytes; // each
    };
    // `transfers`: as for Plan::limit_messages().
    Chunks cut(double bytes, double transfers = 1) const {
        double most = std::max(1.0, std::floor(engine::max_messages / transfers));
        double count = std::clamp(std::ceil(bytes / chunk_), 1.0, most);
        return {count, bytes / count};
    }
    double hop(double bytes, double work = 0) const {
        return 2 * o_ + latency_ + bytes * (wire_ + work);
    }
    // Between two chunks of a stream that a rank receives, works on and passes on.
    double gap(double bytes, double work = 0) const {
        return std::max(2 * o_ + bytes * work, bytes * wire_);
    }
    // `rounds` rounds in which every rank passes on what it received in the round before.
    double rounds(double count, Chunks chunks, double work = 0) const {
        return count * std::max(hop(chunks.bytes, work), chunks.count * gap(chunks.bytes, work));
    }
    // One round that does not overlap with others.
    double round(Chunks chunks, double work = 0) const {
        return hop(chunks.bytes, work) + (chunks.count - 1) * gap(chunks.bytes, work);
    }
    double exchange(bool sends, bool receives, double copied = 0) const;
    double sums_at_end(double overlapped_messages) const;
    double doubling_blocks(double block) const;
    int32_t log2_up() const { return std::bit_width(uint32_t(size_ - 1)); }
    int32_t log2_down() const { return std::bit_width(uint32_t(size_)) - 1; }
    bool lonely_fold() const { return size_ == (1 << log2_down()) + 1; }
    bool folded() const { return !std::has_single_bit(uint32_t(size_)); }

    const Kind kind_;
    const int32_t size_;
    const double n_, m_, chunk_, o_, latency_, wire_, sum_, copy_;
};

// A rank sends to and (or) receives from all others, and copies some bytes meanwhile.
double Formula::exchange(bool sends, bool receives, double copied) const {
    Chunks chunks = cut(kind_ == Kind::barrier ? 1 : m_);
    double messages = (n_ - 1) * chunks.count, wire = chunks.bytes * wire_;
    double links = 2 * o_ + latency_ + messages * wire;
    double last_out = sends * messages * o_ + wire + latency_ + o_;
    double processor = messages * o_ * (sends + receives) + copied * copy_;
    if (!sends) processor += o_ + latency_;
    return std::max({links, last_out, processor});
}

// What is left of the sums in rank order, chunk by chunk, when the last chunk arrives, if they
// could begin together with the last `overlapped_messages` messages.
double Formula::sums_at_end(double overlapped_messages) const {
    Chunks chunks = cut(m_);
    double overlapped = (overlapped_messages * chunks.count - 1) * chunks.bytes * wire_;
    return (n_ - 1) * std::max(chunks.bytes * sum_, m_ * sum_ - overlapped / (n_ - 1));
}

double Formula::direct() const {
    switch (kind_) {
    case Kind::allreduce:
    case Kind::reduce_scatter: return exchange(true, true) + sums_at_end(1);
    case Kind::reduce: return exchange(false, true) + sums_at_end(cut(m_).count > 1 ? n_ - 1 : 1);
    case Kind::allgather:
    case Kind::alltoall: return exchange(true, true, m_);
    case Kind::barrier: return exchange(true, true);
    case Kind::broadcast: return exchange(true, false);
    case Kind::scatter: return exchange(true, false, m_);
    case Kind::gather: return exchange(false, true, m_);
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
    if (kind_ == Kind::allgather) return doubling_blocks(m_) + m_ * copy_;
    Chunks chunks = cut(m_, 2);
    if (!folded()) return rounds(log2_down(), chunks, sum_);
    // Who folds receives once more; its mate gets the result a hop later, unless it is the only
    // one.
    return rounds(log2_down() + 1, chunks, sum_) + (lonely_fold() ? 0 : hop(chunks.bytes));
}

// Blocks so far to (from) a rank at distance 1, 2, 4, ...: for numbers that are no power of two,
// the last and smaller lot waits only for those rounds that collect it.
double Formula::doubling_blocks(double block) const {
    double before = 0, time = 0; // of the rounds that collect the last lot; of all
    double held = 1, last = n_ - std::bit_ceil(uint32_t(size_)) / 2;
    for (; 2 * held < n_; held *= 2) {
        time += round(cut(held * block));
        if (held < last) before = time;
    }
    Chunks chunks = cut(last * block);
    return std::max(before + round(chunks),
                    time + chunks.count * std::max(o_, chunks.bytes * wire_));
}

double Formula::halving_doubling() const {
    bool scatters = kind_ == Kind::reduce_scatter;
    double total = scatters ? m_ * n_ : m_, time = 0;
    for (double parts = 2; parts <= n_; parts *= 2) {
        time += round(cut(total / parts, 2), sum_);
        if (!scatters) time += round(cut(total / parts, 2));
    }
    if (scatters) time += cut(m_).bytes * copy_;
    if (!folded()) return time;
    Chunks chunks = cut(total, 2);
    time += round(chunks, sum_);
    if (kind_ == Kind::allreduce) time += hop(chunks.bytes);
    if (scatters && !lonely_fold()) time += round(cut(m_, 2));
    return time;
}

double Formula::binomial_tree() const {
    if (kind_ == Kind::gather || kind_ == Kind::scatter) return doubling_blocks(m_);
    // The longest path has a hop per bit; the root serves one more child before it, or after it.
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

double Formula::double_tree() const {
    Chunks chunks = cut(m_ / 2, 4); // of each half; an inner rank has two children in one tree
    double wire = chunks.bytes * wire_, sum = chunks.bytes * sum_;
    double first_up = hop(chunks.bytes, sum_) + std::max(o_ + sum, wire);
    double first_down = hop(chunks.bytes) + std::max(o_, wire);
    if (kind_ == Kind::allreduce)
        return log2_down() * (first_up + first_down) +
               (chunks.count - 1) * std::max(8 * o_ + 2 * sum, 4 * wire);
    double height = std::bit_width(uint32_t(size_ - 1));
    if (kind_ == Kind::reduce)
        return height * first_up + (chunks.count - 1) * std::max(4 * o_ + 2 * sum, 2 * wire);
    return height * first_down + (chunks.count - 1) * std::max(4 * o_, 2 * wire);
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
        return time;
    }
    double gather = m_ * copy_ + doubling_blocks(m_);
    if (kind_ == Kind::allgather) return gather + n_ * m_ * copy_;
    return gather + (n_ - 1) * m_ * sum_ + m_ * copy_;
}

} // namespace

double predict(Kind kind, Algorithm algorithm, int32_t size, uint64_t bytes,
               const NetworkModel &model, uint64_t chunk_bytes) {
    if (!supports(kind, algorithm, size)) return std::numeric_limits<double>::infinity();
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
    }
    return formula.bruck();
}

} // namespace dtrain::collectives
