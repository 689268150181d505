// Kubernetes: Indexed Jobs, and JobSets of one.
// SPDX-License-Identifier: Apache-2.0
//
// A pod's host name ends in its index, and with a headless service (the pod's `subdomain`) every
// pod has a name in DNS: worker 0 is "<job>-0.<service>.<namespace>.svc.cluster.local". The number
// of pods is in no variable.
#include "cluster/environment/source.h"
#include "cluster/host/names.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

bool applies(const Variables &env) { return env.has("JOB_COMPLETION_INDEX"); }

// The full name of pod 0. DTRAIN_ERR_CONFIG if pods have no names.
Status first_pod(const Surroundings &around, int32_t index, std::string &out) {
    const std::string own = around.env.text("HOSTNAME");
    const std::string ending = "-" + std::to_string(index);
    const std::string full = own.empty() ? own : around.full_name(own);
    if (!own.ends_with(ending) || !full.starts_with(own + "."))
        return fail(DTRAIN_ERR_CONFIG,
                    "JOB_COMPLETION_INDEX=%d, but this pod (HOSTNAME=%.100s) has no name that "
                    "leads to pod 0: give the job's pods a headless service (`subdomain` in their "
                    "template), or set DTRAIN_RENDEZVOUS",
                    index, own.c_str());
    out = own.substr(0, own.size() - ending.size()) + "-0" + full.substr(own.size());
    return DTRAIN_OK;
}

Status read(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    int32_t index = 0, size = 0;
    if (Status s = env.number("JOB_COMPLETION_INDEX", 0, int32_t(wire::max_members) - 1, index);
        s != DTRAIN_OK)
        return s;
    finding.evidence =
        text("JOB_COMPLETION_INDEX=%d says that this is rank %d (Kubernetes)", index, index);
    if (Status s = size_from_dtrain(env, finding.evidence, size); s != DTRAIN_OK) return s;
    if (Status s = env.number("JOB_COMPLETION_INDEX", 0, size - 1, index); s != DTRAIN_OK)
        return fail_within(s, "DTRAIN_SIZE and DTRAIN_SERVERS count %d processes", size);
    if (Status s = split_roles(env, index, size, finding.evidence, finding.identity);
        s != DTRAIN_OK)
        return s;
    if (size == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    std::string first;
    if (Status s = first_pod(around, index, first); s != DTRAIN_OK) return s;
    meet_at(first, lone_seed, "Kubernetes names no port", finding.identity);
    return DTRAIN_OK;
}

} // namespace

extern const Source kubernetes;
const Source kubernetes = {
    "Kubernetes' Indexed Jobs and JobSets", "JOB_COMPLETION_INDEX; the size from DTRAIN_SIZE",
    "pod 0, by its name in the headless service, at a fixed port", applies, read};

} // namespace dtrain::cluster
