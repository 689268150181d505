// Which algorithm a collective should use.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/choose.h"

#include "collectives/build.h"
#include "collectives/topology.h"

#include <limits>

namespace dtrain::collectives {
namespace {

double cost(const CollectiveSpec &spec, Algorithm algorithm, uint64_t bytes,
            const NetworkModel &model) {
    bool has_hosts = spec.topology != nullptr && spec.topology->levels() > 0;
    if (has_hosts && spec.kind == Kind::allreduce)
        return predict_on(*spec.topology, algorithm, spec.size, bytes, model, spec.chunk_bytes);
    return predict(spec.kind, algorithm, spec.size, bytes, model, spec.chunk_bytes);
}

} // namespace

Status choose(const CollectiveSpec &spec, const NetworkModel &model,
              std::optional<Algorithm> forced, Algorithm &out) {
    bool uniform = spec.counts.empty() && spec.displs.empty() && spec.recv_counts.empty() &&
                   spec.recv_displs.empty();
    if (forced) {
        if (!supports(spec.kind, *forced, spec.size, uniform))
            return fail(DTRAIN_ERR_UNSUPPORTED, "%s over %d ranks cannot use the algorithm \"%s\"",
                        kind_name(spec.kind), spec.size, algorithm_name(*forced));
        out = *forced;
        return DTRAIN_OK;
    }
    // The counts of alltoall differ by rank; there is no choice without equal ones anyway.
    uint64_t bytes = spec.kind == Kind::alltoall && !uniform ? 0 : typical_bytes(spec);
    out = Algorithm::direct;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < algorithm_count; i++) {
        auto algorithm = Algorithm(i);
        if (!supports(spec.kind, algorithm, spec.size, uniform)) continue;
        double ns = cost(spec, algorithm, bytes, model);
        if (ns >= least) continue;
        least = ns;
        out = algorithm;
    }
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
