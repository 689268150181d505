// Chooses the algorithm of a collective.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/cost/choose.h"

#include "collectives/call/topology.h"
#include "collectives/schedule/build.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

bool has_hosts(const CollectiveSpec &spec) {
    return spec.topology != nullptr && spec.topology->levels() > 0;
}

// Without hosts, the hierarchical algorithms equal other algorithms.
bool makes_sense(const CollectiveSpec &spec, Algorithm algorithm) {
    return has_hosts(spec) ||
           (algorithm != Algorithm::hierarchical && algorithm != Algorithm::hierarchical_tree);
}

bool cheaper(const Candidate &a, const Candidate &b) { return a.ns < b.ns; }

double cost(const CollectiveSpec &spec, Algorithm algorithm, uint64_t bytes,
            const NetworkModel &model) {
    if (has_hosts(spec) && !over_graph(spec.kind))
        return predict_on(*spec.topology, spec.kind, algorithm, spec.size, bytes, model,
                          spec.chunk_bytes);
    return predict(spec.kind, algorithm, spec.size, bytes, model, spec.chunk_bytes);
}

// Formulas are imprecise where some ranks are nearer than others. So algorithms that they do not
// rule out are simulated, with fewer chunks.
void simulate(const CollectiveSpec &spec, uint64_t bytes, const NetworkModel &model,
              std::vector<Candidate> &found) {
    constexpr int32_t most_ranks = 64; // takes a few milliseconds, once per shape of calls
    constexpr double doubt = 3;
    constexpr uint64_t most_chunks = 16;
    if (spec.size > most_ranks) return;
    CollectiveSpec one = spec;
    one.in_place = false;
    one.chunk_bytes = std::max(spec.chunk_bytes, bytes / most_chunks);
    std::vector<engine::Schedule> schedules(size_t(spec.size));
    const double best = std::min_element(found.begin(), found.end(), cheaper)->ns;
    for (Candidate &candidate : found) {
        if (candidate.ns > doubt * best) continue;
        Status s = DTRAIN_OK;
        for (one.rank = 0; s == DTRAIN_OK && one.rank < one.size; one.rank++)
            s = build(one, candidate.algorithm, schedules[size_t(one.rank)]);
        if (s == DTRAIN_OK) (void)price(schedules, model, candidate.ns, spec.topology);
    }
}

bool is_uniform(const CollectiveSpec &spec) {
    return spec.counts.empty() && spec.displs.empty() && spec.recv_counts.empty() &&
           spec.recv_displs.empty();
}

} // namespace

std::vector<Candidate> candidates(const CollectiveSpec &spec, const NetworkModel &model) {
    bool uniform = is_uniform(spec);
    // The counts of alltoall differ by rank; without equal counts only one algorithm is left
    // anyway.
    uint64_t bytes = spec.kind == Kind::alltoall && !uniform ? 0 : typical_bytes(spec);
    std::vector<Candidate> found;
    for (int i = 0; i < algorithm_count; i++)
        if (auto algorithm = Algorithm(i);
            supports(spec.kind, algorithm, spec.size, uniform) && makes_sense(spec, algorithm))
            found.push_back({algorithm, cost(spec, algorithm, bytes, model)});
    if (has_hosts(spec) && !over_graph(spec.kind) && uniform) simulate(spec, bytes, model, found);
    std::stable_sort(found.begin(), found.end(), cheaper);
    return found;
}

Status choose(const CollectiveSpec &spec, const NetworkModel &model,
              std::optional<Algorithm> forced, Algorithm &out) {
    if (!forced) {
        out = candidates(spec, model).front().algorithm; // "direct" supports everything
        return DTRAIN_OK;
    }
    if (!supports(spec.kind, *forced, spec.size, is_uniform(spec)))
        return fail(DTRAIN_ERR_UNSUPPORTED, "%s over %d ranks cannot use the algorithm \"%s\"",
                    kind_name(spec.kind), spec.size, algorithm_name(*forced));
    out = *forced;
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
