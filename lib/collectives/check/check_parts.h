// The parts of check(), each of which finds one kind of error.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/link.h"
#include "collectives/check/symbols.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

// Steps must stay inside their memory, be aligned to elements and never write the input.
Status check_bounds(const CollectiveSpec &spec, const engine::Schedule &schedule);

// Steps that touch the same element must be ordered by dependencies if one of them writes.
Status check_races(const CollectiveSpec &spec, const engine::Schedule &schedule);

// A rank's last step must not be able to come before every rank has begun.
Status check_barrier(const Linked &linked);

// All ranks must finish even if each has only one send and one receive in flight, in the order of
// its steps, and no send completes before its receive has begun. The executor relies on it.
Status check_order(const Linked &linked);

// Runs all ranks in a random order and compares the results.
Status check_run(std::span<const CollectiveSpec> specs, const Linked &linked, uint64_t seed,
                 bool rendezvous);

// Whether a step reads src, reads dst or writes dst (0 to 2 of the three), besides reading its
// terms.
constexpr bool reads_src(engine::StepKind kind) {
    return kind != engine::StepKind::recv && kind != engine::StepKind::scale &&
           kind != engine::StepKind::weigh; // reads only its terms
}
constexpr bool reads_dst(engine::StepKind kind) {
    return kind == engine::StepKind::reduce || kind == engine::StepKind::scale;
}
constexpr bool writes_dst(engine::StepKind kind) { return kind != engine::StepKind::send; }

// Calls f(place) for each place that the step reads.
template <class F> void each_read(const engine::Schedule &schedule, const engine::Step &step, F f) {
    if (reads_src(step.kind)) f(step.src);
    for (uint32_t t = 0; t < step.terms_count; t++) f(schedule.terms[step.first_term + t].src);
    if (reads_dst(step.kind)) f(step.dst);
}

} // namespace dtrain::collectives
