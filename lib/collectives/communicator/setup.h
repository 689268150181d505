// What rank 0 decides for all ranks when a communicator is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/session/session.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/call/topology.h"
#include "collectives/communicator/membership.h"
#include "collectives/cost/tuning.h"
#include "collectives/model/network_model.h"
#include "transport/device.h"

#include <cstdint>
#include <optional>

namespace dtrain::collectives {

inline constexpr size_t max_algorithm_name = 32; // with its NUL

// Broadcast as it is.
struct Setup {
    uint64_t window_bytes; // per rank; 0: no window
    uint64_t chunk_bytes, exchange_bytes;
    uint64_t eager_bytes; // 0: the transports' defaults
    NetworkModel model;
    // Forced for all-reduce over messages; "": none. A name, since another version of the library
    // may number algorithms differently.
    char algorithm[max_algorithm_name];
    int32_t adapts;        // 1: option tuning.adapt
    uint32_t choice_rules; // of rank 0's library
    uint8_t handle[transport::Device::max_blob];
};

// All but the window.
Setup offer(cluster::Session &session, const Membership &ranks, const Topology &topology);

// Describes the job, not the communicator, so that a tuning file serves parts of the job, too; the
// transports are those between these ranks.
Machine machine_of(cluster::Session &session, const Membership &ranks);

// VERSION: this library makes other choices of the same figures.
Status check_rules(const Setup &setup);

// Finds the forced algorithm, if there is one. VERSION: this library does not have it.
Status find_forced(const Setup &setup, std::optional<Algorithm> &out);

} // namespace dtrain::collectives
