// Computes what a collective costs on a network, without using the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/algorithm.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

// Simulates every step: when the last rank finishes if all begin at 0. ERR_INVALID if the schedules
// do not fit together. Takes O(n log n) time for n steps of all ranks.
Status price(std::span<const engine::Schedule> schedules, const NetworkModel &model,
             double &total_ns, const Topology *topology = nullptr);

// The same by the algorithm's closed formula, in O(log(size)^2) time. `bytes`: of the vector
// (allreduce, reduce, broadcast) or of each rank's block. The result is between 0.85 and 1.2 of
// price() up to 16 KiB in all, and between 0.6 and 1.7 above (checked by
// tests/unit/collectives/test_price.cpp); for direct and ring within 1 % and 18 %. Infinite where
// supports() is false, and where there is no formula: for the hierarchical algorithms of kinds
// other than all-reduce, which need a topology, and for what is only used when it is forced.
double predict(Kind kind, Algorithm algorithm, int32_t size, uint64_t bytes,
               const NetworkModel &model, uint64_t chunk_bytes);
// For ranks with a topology, roughly: between 0.5 and 2 of price().
double predict_on(const Topology &topology, Kind kind, Algorithm algorithm, int32_t size,
                  uint64_t bytes, const NetworkModel &model, uint64_t chunk_bytes);

} // namespace dtrain::collectives
