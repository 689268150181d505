// Proves that schedules of all ranks do together what the collective promises; no network needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

// Checks one schedule per rank, made for specs[rank] by whatever builder:
//   - every message is received with its size, none is left over, numbers and dependencies are
//   valid;
//   - no step leaves its memory, writes the input, reads what nobody wrote, or is concurrent with a
//     step that it conflicts with;
//   - in a random order of events (`seed`), with sends that complete at once and with sends that
//     wait for the receiver, all ranks finish, and every result holds each contribution exactly
//     once, averaged if asked for, in the same order of additions on all ranks;
//   - one message at a time per rank suffices for that;
//   - input and gaps between blocks stay untouched; nobody leaves a barrier before all have come.
// Data are symbols of 128 bits, so a wrong result passes with probability 2^-64.
// ERR_INVALID with a text that names rank and step. Small cases: memory is proportional to the sum
// of all buffers, and to the square of the steps of a rank.
Status check(std::span<const CollectiveSpec> specs, std::span<const engine::Schedule> schedules,
             uint64_t seed);

} // namespace dtrain::collectives
