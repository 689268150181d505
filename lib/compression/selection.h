// Finds the k elements of greatest magnitude, one slice of the vector at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::compression {

// Exact, by a radix selection on the 31 bits of the magnitude. Call count() for the whole vector,
// then rank(), and both once more, then take() for the whole vector. NaNs count as the greatest,
// then infinities; among equal magnitudes the first elements are taken.
class Selection {
  public:
    Selection() : counts_(size_t{1} << low_bits) {}
    void begin(uint64_t k);
    // The first pass counts the high bits, the second the low bits of elements at the threshold.
    void count(const float *x, uint64_t n);
    void rank(); // refines the threshold with the counts of this pass
    // Calls f(i) for each selected element of x, in order.
    template <class F> void take(const float *x, uint64_t n, F f) {
        for (uint64_t i = 0; i < n; i++)
            if (chosen(x[i])) f(i);
    }

  private:
    static constexpr uint32_t low_bits = 16;
    bool chosen(float x);

    std::vector<uint32_t> counts_; // indexed by the bits of this pass
    uint32_t threshold_ = 0;       // the bits found so far
    bool second_ = false;
    uint64_t left_ = 0; // elements at the threshold that are still to be taken
};

} // namespace dtrain::compression
