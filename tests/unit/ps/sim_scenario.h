// What a simulated job is like, and random ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "history.h"
#include "ps/table/placement.h"
#include "sim_function.h"
#include "sim_narrow.h"
#include "sim_network.h"

#include <cstdlib>
#include <random>
#include <vector>

struct Scenario {
    uint64_t seed = 0;
    Definition mode;
    std::vector<Definition> later = {}; // what it is changed to, each after so many clocks
    uint32_t workers = 2, servers = 1, clocks = 4;
    uint64_t length = 32;
    uint64_t chunk = 64; // bytes
    bool sparse = false; // elements are rows of keys
    bool keeps = false;  // pushes of them keep room first
    AddedBy added_by = AddedBy::rule;
    uint32_t reproducible = 0;
    uint32_t storage = 0, wire = 0; // of a table of f32, as sim_narrow.h has it
    dtrain::ps::Placement placement = {};
    bool weights = false;      // a table of f64, as weight_history.h has it
    bool pushers = false;      // likewise, whose means are over them; sparse
    bool min_versions = false; // some pulls wait for a version, and pushes are of everything
    Faults faults;
    bool priorities = false;        // of their operations
    bool in_flight_together = true; // several operations of a worker at a time
    int32_t dies = -1;              // this worker crashes,
    int32_t server_dies = -1;       // this server crashes,
    int64_t when = 0;               // at this time
    int32_t leaves_early = -1;      // this worker makes only half of the clocks
    int64_t timeout = INT64_MAX;    // after which operations are abandoned
    uint64_t peer_limit = 0;        // of the servers

    bool narrow() const { return storage != 0 || wire != 0; }
    bool pinned() const { return storage == DTRAIN_I8; }
    // A table's numbers that are one element, and the clocks of a worker.
    uint32_t numbers() const { return narrow() ? numbers_of_narrow : 1; }
    uint32_t all_clocks() const { return clocks * uint32_t(later.size() + 1); }
    bool harmless() const { return dies < 0 && server_dies < 0 && timeout == INT64_MAX; }
    const Definition &mode_of(size_t epoch) const { return epoch == 0 ? mode : later[epoch - 1]; }
};

inline uint64_t first_seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : 20240817;
}

inline Scenario random_scenario(uint64_t seed, Definition mode) {
    std::mt19937_64 random(seed * 2654435761u + mode.consistency * 16 + mode.staleness);
    auto pick = [&](uint64_t below) { return random() % below; };
    Scenario s;
    s.seed = random();
    s.mode = mode;
    s.workers = 1 + uint32_t(pick(4));
    s.servers = 1 + uint32_t(pick(3));
    s.clocks = 2 + uint32_t(pick(6));
    s.length = 1 + pick(pick(2) == 0 ? 20 : 120);
    s.chunk = 8u << pick(6);
    s.faults.longest_delay = 1 + int64_t(pick(50));
    s.in_flight_together = pick(4) != 0;
    s.priorities = pick(3) == 0;
    if (pick(2) == 0) s.faults.lost = uint32_t(pick(20));
    if (pick(2) == 0) s.faults.repeated = uint32_t(pick(20));
    if (pick(3) == 0) s.faults.busy = uint32_t(pick(50));
    s.reproducible = mode.consistency == DTRAIN_BSP && pick(2) == 0;
    if (mode.quorum > 0) {
        s.mode.quorum = 1 + uint32_t(pick(s.workers));
        s.reproducible = s.mode.quorum == s.workers && pick(2) == 0;
        if (pick(2) == 0) s.chunk = 16 * s.length;
    }
    return s;
}
