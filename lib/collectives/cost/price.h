// Computes what a collective costs on a network, without using the network.
// SPDX-License-Identifier: Apache-2.0
//
// The model is LogGP's (Alexandrov, Ionescu, Schauser, Scheiman: LogGP: incorporating long messages
// into the LogP model, SPAA 1995) plus the work per byte. Each rank has one processor, one outgoing
// and one incoming link. The processor serves overheads, sums and copies in the order in which they
// become ready. A message takes overhead + latency + bytes * ns_per_byte + overhead; messages wait
// for each other at the links; a send ends when the last byte has left. With a topology the ranks
// of a host share one outgoing and one incoming link, and have links of their own among themselves.
#pragma once
#include "collectives/call/collective.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

struct NetworkModel {
    double latency_ns = 0;
    double overhead_ns = 0; // of the processor, per message, on either side
    double ns_per_byte = 0;
    double reduce_ns_per_byte = 0;
    double copy_ns_per_byte = 0;
    // Between ranks of one group of the topology's innermost level (a host).
    double host_latency_ns = 0, host_overhead_ns = 0, host_ns_per_byte = 0;
    // overhead_ns is that of a rank that shares a core with this many ranks, all of them working.
    double ranks_per_core = 1;
};

// Simulates every step: when the last rank finishes if all begin at 0. ERR_INVALID if the schedules
// do not fit together. Takes O(n log n) time for n steps of all ranks.
Status price(std::span<const engine::Schedule> schedules, const NetworkModel &model,
             double &total_ns, const Topology *topology = nullptr);

// The same by a closed formula, in O(log(size)^2) time. `bytes`: of the vector (allreduce, reduce,
// broadcast) or of each rank's block. The result is between 0.85 and 1.2 of price() up to 16 KiB in
// all, and between 0.6 and 1.7 above (checked by tests/unit/collectives/test_price.cpp); for direct
// and ring within 1 % and 18 %. Infinite where supports() is false, and for the hierarchical
// algorithms of kinds other than all-reduce, which need a topology.
double predict(Kind kind, Algorithm algorithm, int32_t size, uint64_t bytes,
               const NetworkModel &model, uint64_t chunk_bytes);
// For ranks with a topology, roughly: between 0.5 and 2 of price().
double predict_on(const Topology &topology, Kind kind, Algorithm algorithm, int32_t size,
                  uint64_t bytes, const NetworkModel &model, uint64_t chunk_bytes);

} // namespace dtrain::collectives
