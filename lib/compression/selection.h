// Finds the k elements of greatest magnitude, a slice of the vector at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::compression {

// Exact, by a radix selection on the 31 bits of the magnitude: count() twice over the whole vector,
// rank() after each, then take() over the whole vector. NaNs are the greatest, then infinities;
// among equals the first ones are taken.
class Selection {
  public:
    Selection() : counts_(size_t{1} << low_bits) {}
    void begin(uint64_t k);
    // The first pass counts the high bits, the second the low bits of those at the threshold.
    void count(const float *x, uint64_t n);
    void rank(); // narrows the threshold down by what was counted
    // Calls f(i) for each chosen element of x, in order.
    template <class F> void take(const float *x, uint64_t n, F f) {
        for (uint64_t i = 0; i < n; i++)
            if (chosen(x[i])) f(i);
    }

  private:
    static constexpr uint32_t low_bits = 16;
    bool chosen(float x);

    std::vector<uint32_t> counts_; // by the bits of this pass
    uint32_t threshold_ = 0;       // the bits found so far
    bool second_ = false;
    uint64_t left_ = 0; // to be taken of those at the threshold
};

} // namespace dtrain::compression
