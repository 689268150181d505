// Which of the pending changes a crash keeps: all choices, or the most telling ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace crash {

struct Extent {
    size_t all_up_to; // of so many changes each subset is taken
    size_t samples;   // of more changes so many random subsets, besides the ones listed below
};

// Calls f(kept) for each subset of `count` changes. If there are more of these than
// extent.all_up_to: for the first n changes of each n, for all but one of each of these, for each
// one alone, and for random subsets, of which each has a density of its own.
template <class F>
void for_each_subset(size_t count, const Extent &extent, std::mt19937_64 &random, F &&f) {
    std::vector<bool> kept(count);
    if (count <= extent.all_up_to) {
        for (uint64_t bits = 0; bits < uint64_t{1} << count; bits++) {
            for (size_t i = 0; i < count; i++) kept[i] = (bits >> i & 1) != 0;
            f(kept);
        }
        return;
    }
    f(kept);
    for (size_t i = 0; i < count; i++) { // one alone
        kept[i] = true;
        f(kept);
        kept[i] = false;
    }
    for (size_t n = 0; n < count; n++) { // the first ones, and those without one
        kept[n] = true;
        f(kept);
        for (size_t i = 0; i < n; i++) {
            kept[i] = false;
            f(kept);
            kept[i] = true;
        }
    }
    for (size_t s = 0; s < extent.samples; s++) {
        const uint64_t density = random();
        for (size_t i = 0; i < count; i++) kept[i] = random() < density;
        f(kept);
    }
}

} // namespace crash
