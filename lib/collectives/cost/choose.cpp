// Chooses the algorithm of a collective.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/cost/choose.h"

#include "collectives/algorithms/build.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtrain::collectives {
namespace {

bool has_hosts(const CollectiveSpec &spec) {
    return spec.topology != nullptr && spec.topology->levels() > 0;
}

bool cheaper(const Candidate &a, const Candidate &b) { return a.ns < b.ns; }

double cost(const CollectiveSpec &spec, Algorithm algorithm, uint64_t bytes,
            const NetworkModel &model) {
    if (has_hosts(spec) && !over_graph(spec.kind))
        return predict_on(*spec.topology, spec.kind, algorithm, spec.size, bytes, model,
                          spec.chunk_bytes);
    return predict(spec.kind, algorithm, spec.size, bytes, model, spec.chunk_bytes);
}

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Below this the work for each piece counts, and pieces would use one rail only
// (engine/executor.cpp).
constexpr uint64_t least_piece = 32 << 10;

constexpr int32_t most_ranks = 64; // that are simulated: it takes a few milliseconds

// Whole vectors that ranks pass on to each other.
bool passes_on(Kind kind) { return kind == Kind::broadcast || kind == Kind::reduce; }

CollectiveSpec in_pieces(const CollectiveSpec &spec, Algorithm algorithm,
                         const NetworkModel &model) {
    CollectiveSpec out = spec;
    out.chunk_bytes = piece_bytes(spec, algorithm, model);
    return out;
}

// Formulas are imprecise where some ranks are nearer than others, and where pieces of sums follow
// each other through a few ranks. So algorithms that they do not rule out are simulated.
bool is_simulated(const CollectiveSpec &spec, uint64_t bytes, const NetworkModel &model) {
    // For more, it takes longer than it wins.
    constexpr int32_t few_ranks = 16;
    constexpr uint64_t few_pieces = 2048; // of all ranks
    if (has_hosts(spec)) return !over_graph(spec.kind);
    if (spec.kind != Kind::reduce || spec.size < 3 || bytes <= least_piece ||
        model.ranks_per_core > 1)
        return false;
    return spec.size <= few_ranks ||
           (spec.size <= most_ranks && bytes / least_piece * uint64_t(spec.size) <= few_pieces);
}

void simulate_some(const CollectiveSpec &spec, const NetworkModel &model,
                   std::vector<Candidate> &found) {
    constexpr double doubt = 3;
    const double best = std::min_element(found.begin(), found.end(), cheaper)->ns;
    for (Candidate &candidate : found) {
        if (candidate.ns > doubt * best) continue;
        const double ns =
            simulated(in_pieces(spec, candidate.algorithm, model), candidate.algorithm, model);
        if (!std::isnan(ns)) candidate.ns = ns;
    }
}

bool is_uniform(const CollectiveSpec &spec) {
    return spec.counts.empty() && spec.displs.empty() && spec.recv_counts.empty() &&
           spec.recv_displs.empty();
}

} // namespace

uint64_t piece_bytes(const CollectiveSpec &spec, Algorithm algorithm, const NetworkModel &model) {
    constexpr uint64_t most_cuts = 8; // pieces are larger where they have to be announced
    constexpr double better = 0.97;
    const uint64_t least = std::max(least_piece, spec.chunk_bytes / most_cuts);
    uint64_t best = spec.chunk_bytes;
    if (!passes_on(spec.kind) || spec.size < 3 || model.ranks_per_core > 1) return best;
    const uint64_t bytes = typical_bytes(spec);
    CollectiveSpec tried = spec;
    double best_ns = cost(spec, algorithm, bytes, model);
    while (tried.chunk_bytes / 2 >= least) {
        tried.chunk_bytes /= 2;
        const double ns = cost(tried, algorithm, bytes, model);
        if (!(ns < better * best_ns)) continue;
        best = tried.chunk_bytes;
        best_ns = ns;
    }
    return best;
}

double simulated(const CollectiveSpec &spec, Algorithm algorithm, const NetworkModel &model) {
    const uint64_t most_chunks = passes_on(spec.kind) ? 128 : 16;
    if (spec.size > most_ranks || !is_uniform(spec)) return unknown;
    CollectiveSpec one = spec;
    one.in_place = false;
    one.chunk_bytes = std::max(spec.chunk_bytes, typical_bytes(spec) / most_chunks);
    std::vector<engine::Schedule> schedules(size_t(spec.size));
    for (one.rank = 0; one.rank < one.size; one.rank++)
        if (build(one, algorithm, schedules[size_t(one.rank)]) != DTRAIN_OK) return unknown;
    double ns = unknown;
    (void)price(schedules, model, ns, spec.topology);
    return ns;
}

std::vector<Candidate> candidates(const CollectiveSpec &spec, const NetworkModel &model) {
    bool uniform = is_uniform(spec);
    // The counts of alltoall differ by rank; without equal counts only one algorithm is left
    // anyway.
    uint64_t bytes = spec.kind == Kind::alltoall && !uniform ? 0 : typical_bytes(spec);
    std::vector<Candidate> found;
    for (Algorithm algorithm : all_algorithms()) {
        if (!supports(spec.kind, algorithm, spec.size, uniform)) continue;
        if (description(algorithm).needs_hosts && !has_hosts(spec)) continue;
        const double ns = cost(in_pieces(spec, algorithm, model), algorithm, bytes, model);
        if (std::isfinite(ns)) found.push_back({algorithm, ns});
    }
    if (is_simulated(spec, bytes, model)) simulate_some(spec, model, found);
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
