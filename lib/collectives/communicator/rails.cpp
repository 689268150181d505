// Finds out which rails work. A network card that does not reach the other hosts would be noticed
// only when large data is sent, and would end the job; so each rank tries all rails to one other
// host at the start.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/rails.h"

#include <algorithm>
#include <array>
#include <span>

namespace dtrain::collectives {
namespace {

constexpr int64_t patience_ns = 10'000'000'000;
constexpr size_t most_rails = 64; // the rails beyond are not tried

// The next rank on another host, or the next rank if there is none.
uint32_t far_neighbor(Communicator &comm) {
    const auto rank = uint32_t(comm.rank()), size = uint32_t(comm.size());
    const auto host = [&](uint32_t r) {
        return comm.session().members()[comm.member(r % size)].host;
    };
    for (uint32_t r = rank + 1; r < rank + size; r++)
        if (host(r) != host(rank)) return r % size;
    return (rank + 1) % size;
}

// Rail 0 is not tested: a rank that cannot use it fails with its own error.
void try_rails(Communicator &comm, std::span<uint8_t> works, int64_t deadline_ns) {
    engine::Agent &agent = comm.session().agent();
    engine::Mesh &mesh = comm.session().mesh();
    const uint32_t rank = far_neighbor(comm), member = comm.member(rank);
    const auto rails = uint32_t(std::min<size_t>(mesh.rails(member), works.size()));
    const auto all_up = [&] {
        bool all = true;
        agent.locked([&] {
            for (uint32_t i = 1; i < rails; i++) all = mesh.is_up(member, i) && all;
        });
        return all || comm.is_broken();
    };
    agent.wait_until(all_up, std::min(deadline_ns, agent.clock().now_ns() + patience_ns));
    agent.locked([&] {
        for (uint32_t i = 1; i < rails; i++) {
            works[i] = mesh.is_up(member, i);
            if (!works[i])
                agent.log().write(DTRAIN_LOG_WARN,
                                  "rail %u is left out on all ranks; it does not reach rank %u: %s",
                                  i, rank, mesh.trouble(member, i).c_str());
        }
    });
}

} // namespace

Status check_rails(Communicator &comm, int64_t deadline_ns) {
    std::array<uint8_t, most_rails> mine, all{};
    mine.fill(1);
    try_rails(comm, mine, deadline_ns);
    // Small messages use only the first rail.
    Status s = comm.run_until({.kind = Kind::reduce,
                               .send = mine.data(),
                               .recv = all.data(),
                               .count = most_rails,
                               .op = DTRAIN_MIN,
                               .root = 0},
                              deadline_ns);
    if (s == DTRAIN_OK)
        s = comm.run_until(
            {.kind = Kind::broadcast, .recv = all.data(), .count = most_rails, .root = 0},
            deadline_ns);
    if (s != DTRAIN_OK) return fail_within(s, "making a communicator of %d ranks", comm.size());
    comm.session().agent().locked([&] {
        for (uint32_t i = 1; i < most_rails; i++)
            if (!all[i]) comm.session().mesh().leave_out(i);
    });
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
