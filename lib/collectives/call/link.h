// Joins all ranks' schedules into one graph, for the checker and the cost simulation.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "engine/schedule.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::collectives {

inline constexpr uint32_t no_step = UINT32_MAX;

// Steps are numbered across all ranks. Refers to the schedules.
struct Linked {
    std::span<const engine::Schedule> schedules;
    std::vector<uint32_t> first; // first step of each rank; one more at the end
    std::vector<int32_t> owner;  // the rank of each step
    std::vector<uint32_t> match; // of a send its receive, of a receive its send; else no_step
    // The steps that depend on step s: dependents[first_dependent[s] .. first_dependent[s + 1]).
    std::vector<uint32_t> first_dependent, dependents;

    uint32_t size() const { return first.back(); }
    const engine::Step &step(uint32_t id) const {
        size_t rank = size_t(owner[id]);
        return schedules[rank].steps[id - first[rank]];
    }
    std::span<const uint32_t> waiting_for(uint32_t id) const {
        return std::span(dependents)
            .subspan(first_dependent[id], first_dependent[id + 1] - first_dependent[id]);
    }
};

constexpr bool receives(engine::StepKind kind) {
    return kind == engine::StepKind::recv || kind == engine::StepKind::recv_reduce;
}

// ERR_INVALID, naming rank and step, when a dependency or a peer is out of range, or a message has
// a wrong number or no counterpart of the same size.
Status link(std::span<const engine::Schedule> schedules, Linked &out);

// "rank 3, step 7 (recv_reduce from rank 2, message 4)"
std::string describe(int32_t rank, uint32_t index, const engine::Step &step);
std::string describe(const Linked &linked, uint32_t id);

} // namespace dtrain::collectives
