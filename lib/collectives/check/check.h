// Proves that the schedules of all ranks together do what the collective promises; needs no
// network.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

// Checks one schedule per rank, made for specs[rank] by any builder:
//   - every message is received with its size and no message is left over; message numbers and
//     dependencies are valid;
//   - no step leaves its memory, writes the input, reads memory that was never written, or may run
//     at the same time as a step that it conflicts with;
//   - in a random order of events (`seed`), both with sends that complete at once and with sends
//     that wait for the receiver, all ranks finish, and every result holds each contribution
//     exactly once, averaged if asked for, added in the same order on all ranks;
//   - one message at a time per rank suffices for that;
//   - input and gaps between blocks stay untouched; no rank leaves a barrier before all arrived.
// Data are symbols of 128 bits, so a wrong result passes with probability 2^-64. Errors are
// ERR_INVALID with a text that names rank and step. For small cases only: memory grows with the sum
// of all buffers and with the square of the steps of a rank.
Status check(std::span<const CollectiveSpec> specs, std::span<const engine::Schedule> schedules,
             uint64_t seed);

} // namespace dtrain::collectives
