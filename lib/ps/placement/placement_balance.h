// How much each server is to hold, and where the next table goes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/placement.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::ps {

// By server, the dedicated ones first, then the workers that serve, too: weights by which the
// busiest network link of the job carries least, with one process per link and all links equal.
// Empty: equal.
//
// Per byte of parameters, pushed and pulled once by all n workers, let each of the k dedicated
// servers hold y, and each of the c serving workers x: k y + c x = 1. A dedicated server sends
// (and receives) n y, a worker that serves 1 - x for itself and (n - 1) x for the others. Equal
// loads, 1 + (n - 2) x = n y, give x : y = n - k : n + c - 2, and x = 0 from k = n on. This is
// Jiang et al., OSDI 2020, section 4.1 (c = n there), derived for any c.
std::vector<uint32_t> server_weights(uint32_t workers, uint32_t dedicated, uint32_t serving);

// ROUND_ROBIN and GREEDY: the server of the next table. load: bytes by server so far; turn: where
// the last one went, plus 1. Servers without weight get none; GREEDY takes the one that will be the
// least full next to its weight, the first of several.
uint32_t choose_server(const Placement &placement, std::span<const uint64_t> load, uint64_t bytes,
                       uint32_t &turn);

} // namespace dtrain::ps
