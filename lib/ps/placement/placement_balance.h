// Balances servers: their weights, and the server for the next table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/placement.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::ps {

// Weights by server, the dedicated servers first, then the serving workers. They minimize the load
// of the busiest network link of the job, for one process per link and equal links. Empty: equal
// weights.
//
// Per byte of parameters that all n workers push and pull once, let each of the k dedicated servers
// hold y, and each of the c serving workers x: k y + c x = 1. A dedicated server sends (and
// receives) n y; a serving worker sends 1 - x for itself and (n - 1) x for the others. Equal loads,
// 1 + (n - 2) x = n y, give x : y = n - k : n + c - 2, and x = 0 for k >= n. This is Jiang et al.,
// OSDI 2020, section 4.1 (with c = n), derived for any c.
std::vector<uint32_t> server_weights(uint32_t workers, uint32_t dedicated, uint32_t serving);

// ROUND_ROBIN and GREEDY: the server for the next table. load: current bytes by server; turn: the
// last table's server + 1. Servers with weight 0 get no table. GREEDY takes the server that will be
// the least full relative to its weight, and the first one of several.
uint32_t choose_server(const Placement &placement, std::span<const uint64_t> load, uint64_t bytes,
                       uint32_t &turn);

} // namespace dtrain::ps
