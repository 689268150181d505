// Builds one rank's schedule of a collective: finds the algorithm's method for the kind, and runs
// it.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/build.h"

#include "collectives/algorithms/shared.h"

namespace dtrain::collectives {

bool supports(Kind kind, Algorithm algorithm, int32_t size, bool uniform) {
    return find_method(kind, algorithm, size, uniform) != nullptr;
}

Status build(const CollectiveSpec &spec, Algorithm algorithm, engine::Schedule &out) {
    if (Status s = validate(spec); s < 0) return s;
    if (spec.adasum && spec.size > 1) { // adasum ignores the algorithm, which is for sums
        Plan plan(spec, out);
        adasum_allreduce(plan);
        return plan.status();
    }
    bool uniform = spec.counts.empty() && spec.displs.empty() && spec.recv_counts.empty() &&
                   spec.recv_displs.empty();
    const Method *method = find_method(spec.kind, algorithm, spec.size, uniform);
    if (method == nullptr)
        return fail(DTRAIN_ERR_UNSUPPORTED, "%s has no algorithm \"%s\" for %d ranks%s",
                    kind_name(spec.kind), algorithm_name(algorithm), spec.size,
                    uniform ? "" : " with counts that differ");
    // A single rank needs a copy at most.
    if (spec.size == 1) method = find_method(spec.kind, Algorithm::direct, 1, uniform);
    Plan plan(spec, out);
    method->build(plan);
    return plan.status();
}

} // namespace dtrain::collectives
