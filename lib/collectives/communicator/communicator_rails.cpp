// Finds out which rails work. A network card that does not reach the other hosts would be noticed
// only when large data is sent, and would end the job; so each rank tries all rails to one other
// host at the start.
// large data is sent, and end the job; so each rank tries all rails to one other host at the start.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

constexpr int64_t patience_ns = 10'000'000'000;
constexpr size_t most_rails = 64; // the rails beyond are not tried

} // namespace

// The next rank on another host, or the next rank if there is none.
uint32_t Communicator::far_neighbor() const {
    const auto host = [this](uint32_t r) {
        return session_->members()[members_[r % members_.size()]].host;
    };
    for (uint32_t r = rank_ + 1; r < rank_ + members_.size(); r++)
        if (host(r) != host(rank_)) return r % uint32_t(members_.size());
    return (rank_ + 1) % uint32_t(members_.size());
}

// Rail 0 is not tested: a rank that cannot use it fails with its own error.
void Communicator::try_rails(std::span<uint8_t> works, int64_t deadline_ns) {
    engine::Mesh &mesh = session_->mesh();
    const uint32_t rank = far_neighbor(), member = members_[rank];
    const auto rails = uint32_t(std::min<size_t>(mesh.rails(member), works.size()));
    const auto all_up = [&] {
        bool all = true;
        agent_.locked([&] {
            for (uint32_t i = 1; i < rails; i++) all = mesh.is_up(member, i) && all;
        });
        return all || is_broken();
    };
    agent_.wait_until(all_up, std::min(deadline_ns, agent_.clock().now_ns() + patience_ns));
    agent_.locked([&] {
        for (uint32_t i = 1; i < rails; i++) {
            works[i] = mesh.is_up(member, i);
            if (!works[i])
                agent_.log().write(
                    DTRAIN_LOG_WARN,
                    "rail %u is left out on all ranks; it does not reach rank %u: %s", i, rank,
                    mesh.trouble(member, i).c_str());
        }
    });
}

Status Communicator::check_rails(int64_t deadline_ns) {
    std::array<uint8_t, most_rails> mine, all{};
    mine.fill(1);
    try_rails(mine, deadline_ns);
    // Small messages use only the first rail.
    Status s = run_until({.kind = Kind::reduce,
                          .send = mine.data(),
                          .recv = all.data(),
                          .count = most_rails,
                          .op = DTRAIN_MIN,
                          .root = 0},
                         deadline_ns);
    if (s == DTRAIN_OK)
        s = run_until({.kind = Kind::broadcast, .recv = all.data(), .count = most_rails, .root = 0},
                      deadline_ns);
    if (s != DTRAIN_OK) return fail_within(s, "making a communicator of %d ranks", size());
    agent_.locked([&] {
        for (uint32_t i = 1; i < most_rails; i++)
            if (!all[i]) session_->mesh().leave_out(i);
    });
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
