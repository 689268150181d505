// JAXJob of the Kubeflow training operator.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

bool applies(const Variables &env) {
    return env.has("NUM_PROCESSES") && env.has("COORDINATOR_ADDRESS");
}

Status read(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    int32_t size = 0, rank = 0;
    if (Status s = env.number("NUM_PROCESSES", 1, int32_t(wire::max_members), size); s != DTRAIN_OK)
        return s;
    if (Status s = env.number("PROCESS_ID", 0, size - 1, rank); s != DTRAIN_OK) return s;
    finding.evidence = evidence_of("NUM_PROCESSES", rank, size, "JAXJob");
    if (Status s = split_roles(env, rank, size, finding.evidence, finding.identity); s != DTRAIN_OK)
        return s;
    if (size == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    return meet_beside(env, "COORDINATOR_ADDRESS", "COORDINATOR_PORT", "JAX", finding.identity);
}

} // namespace

extern const Source jax_job;
const Source jax_job = {"JAXJob", "NUM_PROCESSES, PROCESS_ID",
                        "COORDINATOR_ADDRESS, at a port computed from COORDINATOR_PORT", applies,
                        read};

} // namespace dtrain::cluster
