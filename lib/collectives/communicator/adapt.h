// Tries the algorithms that are predicted to be nearly as good as the best, and keeps the fastest
// (option tuning.adapt).
// SPDX-License-Identifier: Apache-2.0
//
// The number of a call among those of its shape determines the algorithm that it tries, and the
// decision uses times that all ranks have agreed on; so every rank always takes the same algorithm.
#pragma once
#include "collectives/cost/choose.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace dtrain::collectives {

class Adaptation {
  public:
    static constexpr size_t most_candidates = 3;
    static constexpr double most_ratio = 2;   // algorithms predicted to be slower are not tried
    static constexpr uint64_t tries = 6;      // of each candidate
    static constexpr size_t most_shapes = 32; // the first ones; other shapes follow the prediction
    using Times = std::array<double, most_candidates>; // of the fastest try, in ns; 0: unknown

    explicit Adaptation(const NetworkModel &model) : model_(model) {}

    // Called by the thread that makes the calls, in their order. due() is true when, before this
    // call of the shape, the ranks must agree on the maximum of measured(), which decide() then
    // takes.
    bool due(const CollectiveSpec &spec);
    Times measured(const CollectiveSpec &spec);
    Algorithm decide(const CollectiveSpec &spec, const Times &agreed);
    // The algorithm of the next call, whose number is `sequence`; none: the prediction decides.
    std::optional<Algorithm> next(const CollectiveSpec &spec, uint64_t sequence);

    // Any thread. The call has ended successfully.
    void ended(uint64_t sequence, int64_t elapsed_ns);

  private:
    struct Shape {
        CollectiveSpec spec;
        std::vector<Candidate> candidates; // in the order of the prediction
        Times fastest{};
        uint64_t calls = 0;
        std::optional<Algorithm> decided;
    };
    struct Try {
        uint64_t sequence;
        size_t shape, candidate;
    };
    Shape *find(const CollectiveSpec &spec, bool make); // mutex_ must be held

    const NetworkModel model_;
    std::mutex mutex_;
    std::vector<Shape> shapes_;
    std::vector<Try> running_;
};

} // namespace dtrain::collectives
