// What an algorithm is: how it does each kind of collective, and what that costs.
// SPDX-License-Identifier: Apache-2.0
//
// Each algorithm of DTRAIN_EACH_ALGORITHM is described in a file of its own, <name>.cpp, which
// defines algorithms::<name>. All else follows from the description: the choices of option
// allreduce.algorithm, the prediction, what explain logs, and the tests.
#pragma once
#include "base/collective_algorithms.h"
#include "collectives/call/topology.h"
#include "collectives/model/formula.h"
#include "collectives/schedule/plan.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain::collectives {

// How an algorithm does one kind of collective.
struct Method {
    static constexpr int32_t no_limit = INT32_MAX;

    Kind kind;
    // Writes the steps of one rank, for size > 1 (over a graph: for any size) and a valid spec.
    void (*build)(Plan &plan);
    // Closed formula for price()'s model. nullptr, without Description::cost_on_hosts: this method
    // is used only when it is forced.
    double (*cost)(const Formula &call) = nullptr;
    int32_t max_size = no_limit;
    bool any_counts = true;     // supports the v-variant, too
    bool powers_of_two = false; // only for a power of two ranks
};

// Which messages leave their host, if ranks are numbered host by host.
enum class Crossing : uint8_t {
    some_rounds, // those of log2(hosts) out of log2(ranks) rounds, of all ranks at a time
    all_rounds,  // those of all ranks in all rounds; with a root only the root's
    one_rank,    // around a ring, those of one rank per host
    few_ranks    // in a tree, those of a few ranks
};

// The cost on a network with hosts, of more than 0 bytes.
using CostOnHosts = double (*)(const Topology &topology, Kind kind, uint64_t bytes,
                               const NetworkModel &model, uint64_t chunk_bytes);

struct Description {
    const char *about;  // one line
    const char *source; // author and year of the paper, which the file cites; "": none
    std::span<const Method> methods;
    Crossing crossing = Crossing::some_rounds;
    CostOnHosts cost_on_hosts = nullptr; // nullptr: the methods' formulas, adapted by `crossing`
    bool needs_hosts = false; // without hosts it equals another algorithm, which is taken then
};

namespace algorithms {
#define DTRAIN_DECLARE(name) extern const Description name;
DTRAIN_EACH_ALGORITHM(DTRAIN_DECLARE)
#undef DTRAIN_DECLARE
} // namespace algorithms

// Numbers are this library's own: other processes are told the name.
enum class Algorithm : uint8_t {
#define DTRAIN_ENUMERATE(name) name,
    DTRAIN_EACH_ALGORITHM(DTRAIN_ENUMERATE)
#undef DTRAIN_ENUMERATE
};

// The registry. Everything but it iterates all_algorithms().
std::span<const Algorithm> all_algorithms();
const Description &description(Algorithm algorithm);
// As spelled in the option "allreduce.algorithm".
const char *algorithm_name(Algorithm algorithm);
bool parse_algorithm(std::string_view name, Algorithm &out);
// nullptr if the algorithm does not support this kind, this number of ranks or, unless `uniform`,
// counts that differ.
const Method *find_method(Kind kind, Algorithm algorithm, int32_t size, bool uniform);

} // namespace dtrain::collectives
