// Computes where blocks lie in a buffer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::collectives {

// Where part `index` begins when `count` elements are cut into `parts` nearly equal parts. No
// overflow for count < 2^62 and parts < 2^31.
constexpr uint64_t part_begin(uint64_t count, uint64_t parts, uint64_t index) {
    return count / parts * index + count % parts * index / parts;
}

// One block per rank, in bytes. Refers to the caller's arrays.
class Layout {
  public:
    Layout(const CollectiveSpec &spec, std::span<const uint64_t> counts,
           std::span<const uint64_t> displs);
    // The layout of the buffer that holds all blocks (see CollectiveSpec).
    explicit Layout(const CollectiveSpec &spec) : Layout(spec, spec.counts, spec.displs) {}
    static Layout of_output(const CollectiveSpec &spec); // of alltoall

    uint64_t bytes(int32_t rank) const {
        return element_ * (counts_.empty() ? count_ : counts_[size_t(rank)]);
    }
    uint64_t offset(int32_t rank) const;
    uint64_t end() const;     // end of the last block
    uint64_t largest() const; // size of the largest block
    bool packed() const { return displs_.empty(); }

    // Calls f(first byte of the run in the buffer, its bytes) for each contiguous run of the
    // `count` blocks from `first` on, wrapping around after the last rank. Skips empty blocks.
    template <class F> void each_run(int32_t first, int32_t count, F f) const {
        uint64_t begin = 0, length = 0;
        for (int32_t i = 0; i < count; i++) {
            int32_t rank = (first + i) % size_;
            if (bytes(rank) == 0) continue;
            if (length && begin + length == offset(rank)) {
                length += bytes(rank);
                continue;
            }
            if (length) f(begin, length);
            begin = offset(rank);
            length = bytes(rank);
        }
        if (length) f(begin, length);
    }

  private:
    int32_t size_;
    uint64_t element_, count_;
    std::span<const uint64_t> counts_, displs_;
    std::vector<uint64_t> packed_; // offsets of packed blocks of different sizes
};

} // namespace dtrain::collectives
