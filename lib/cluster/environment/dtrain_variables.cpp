// dtrain's own variables, which dtrain-run and scripts set.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

bool names_a_place(const Variables &env) {
    return env.has_any({"DTRAIN_RANK", "DTRAIN_ROLE", "DTRAIN_SERVER_INDEX"}) ||
           env.text("DTRAIN_SIZE") == "1";
}

// A size or a rendezvous alone, where no framework's variables tell more.
bool names_a_job(const Variables &env) {
    return !env.has_any({"RANK", "WORLD_SIZE", "TF_CONFIG"}) &&
           env.has_any({"DTRAIN_SIZE", "DTRAIN_SERVERS", "DTRAIN_RENDEZVOUS"});
}

Status read(const Surroundings &around, Role wanted, Finding &finding) {
    const Variables &env = around.env;
    Identity &out = finding.identity;
    const std::string role = env.text("DTRAIN_ROLE");
    if (!role.empty() && role != "worker" && role != "server" && role != "evaluator")
        return fail(DTRAIN_ERR_CONFIG, "DTRAIN_ROLE=%.40s is not worker, server or evaluator",
                    role.c_str());
    finding.evaluates = role == "evaluator";
    if (finding.evaluates) return finding.evidence = "DTRAIN_ROLE", DTRAIN_OK;
    out.role = role.empty() ? wanted : role == "server" ? Role::server : Role::worker;
    // A newcomer to a running job, whose size it does not know.
    out.newcomer = env.text("DTRAIN_RANK") == "new";
    if (out.newcomer) return DTRAIN_OK;
    if (Status s = env.number("DTRAIN_SIZE", 1, most, out.workers); s != DTRAIN_OK) return s;
    if (env.has("DTRAIN_SERVERS"))
        if (Status s = env.number("DTRAIN_SERVERS", 0, most - out.workers, out.servers);
            s != DTRAIN_OK)
            return s;
    if (out.role == Role::server && out.servers == 0)
        return fail(DTRAIN_ERR_CONFIG, "this is a server, but DTRAIN_SERVERS is not set or 0");
    if (out.role == Role::server)
        return env.number("DTRAIN_SERVER_INDEX", 0, out.servers - 1, out.index);
    const bool only_one = out.workers == 1 && !env.has("DTRAIN_RANK");
    return only_one ? DTRAIN_OK : env.number("DTRAIN_RANK", 0, out.workers - 1, out.index);
}

} // namespace

extern const Source dtrain_place;
extern const Source dtrain_job;
const Source dtrain_place = {"dtrain-run",
                             "DTRAIN_RANK, DTRAIN_SIZE, DTRAIN_SERVERS, DTRAIN_ROLE, "
                             "DTRAIN_SERVER_INDEX",
                             "DTRAIN_RENDEZVOUS",
                             names_a_place,
                             read,
                             true};
const Source dtrain_job = {"DTRAIN_SIZE alone",
                           "DTRAIN_SIZE, DTRAIN_RENDEZVOUS",
                           "not at all: DTRAIN_RANK is missing",
                           names_a_job,
                           read,
                           true};

} // namespace dtrain::cluster
