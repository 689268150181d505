// Measures how long a cache line takes between neighbors.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/distance.h"

#include "engine/idle.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// Of round trips. The best batch counts: in another one a core may have done something else.
constexpr uint64_t batch = 10, batches = 4, rounds = batch * batches;
constexpr int64_t patience_ns = 100'000;

} // namespace

// First the even ranks with the next one, then the odd ones.
void Distance::measure() {
    double longest = 0;
    for (uint32_t parity = 0; parity < 2; parity++) {
        const bool begins = rank_ % 2 == parity;
        const uint64_t first = (measured_ * 2 + parity) * rounds + 1;
        if (begins ? rank_ + 1 == lines_.size() : rank_ == 0) continue;
        const std::optional<double> ns = to(begins ? rank_ + 1 : rank_ - 1, begins, first);
        if (ns) longest = std::max(longest, *ns);
    }
    measured_++;
    if (longest > 0) line_ns_ = longest;
}

// The numbers grow over all measurements, so a late neighbor finds no old ones to wait for.
std::optional<double> Distance::to(uint32_t peer, bool begins, uint64_t first) {
    const int64_t deadline_ns = clock_.now_ns() + patience_ns;
    int64_t best_ns = INT64_MAX, begun_ns = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        if (begins) send(first + i);
        if (!has_come(peer, first + i, deadline_ns)) return std::nullopt;
        if (!begins) send(first + i);
        if ((i + 1) % batch != 0) continue;
        const int64_t now_ns = clock_.now_ns();
        if (begun_ns != 0) best_ns = std::min(best_ns, now_ns - begun_ns);
        begun_ns = now_ns;
    }
    return double(best_ns) / (2 * batch);
}

bool Distance::has_come(uint32_t peer, uint64_t number, int64_t deadline_ns) {
    const std::atomic<uint64_t> &line = lines_[peer]->value;
    for (uint32_t spins = 1; line.load(std::memory_order_acquire) < number; spins++) {
        if (spins % 64 == 0 && clock_.now_ns() > deadline_ns) return false;
        engine::cpu_pause();
    }
    return true;
}

void Distance::send(uint64_t number) {
    lines_[rank_]->value.store(number, std::memory_order_release);
}

} // namespace dtrain::collectives
