// What the sources have in common.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"

#include "base/clock.h"
#include "cluster/host/names.h"
#include "cluster/host/ports.h"
#include "cluster/host/socket.h"
#include "wire/limits.h"

#include <utility>

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

} // namespace

std::string full_name_of(const std::string &host) {
    return canonical_name(host, monotonic_clock().now_ns() + second);
}

Status meet_at_master(const Variables &env, Identity &out) {
    return meet_beside(env, "MASTER_ADDR", "MASTER_PORT", "torch", out);
}

Status meet_beside(const Variables &env, const char *host, const char *port, const char *whose,
                   Identity &out) {
    if (!env.has(host)) return fail(DTRAIN_ERR_CONFIG, "%s is not set", host);
    int32_t number = 0;
    if (Status s = env.number(port, 1, 65535, number); s != DTRAIN_OK) return s;
    meet_at(env.text(host), uint32_t(number), text("%s=%d is %s's own port", port, number, whose),
            out);
    return DTRAIN_OK;
}

void meet_at(const std::string &host, uint32_t seed, std::string why, Identity &out) {
    out.rendezvous = "tcp://" + join_endpoint(host, std::to_string(ports_from(seed)[0]));
    out.port_seed = seed;
    out.port_reason = std::move(why);
}

std::string evidence_of(const char *name, int32_t rank, int32_t size, const char *who) {
    return text("%s=%d says that this is rank %d of %d (%s)", name, size, rank, size, who);
}

Status split_roles(const Variables &env, int32_t rank, int32_t size, const std::string &evidence,
                   Identity &out) {
    if (env.has("DTRAIN_SERVERS"))
        if (Status s = env.number("DTRAIN_SERVERS", 0, size - 1, out.servers); s != DTRAIN_OK)
            return fail_within(s, "%s", evidence.c_str());
    out.workers = size - out.servers;
    const bool serves = rank >= out.workers;
    out.role = serves ? Role::server : Role::worker;
    out.index = serves ? rank - out.workers : rank;
    int32_t workers = out.workers;
    if (env.has("DTRAIN_SIZE"))
        if (Status s = env.number("DTRAIN_SIZE", 1, most, workers); s != DTRAIN_OK) return s;
    if (workers == out.workers) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG,
                "%s, so with %d servers there are %d workers, but DTRAIN_SIZE=%d; unset it, or set "
                "DTRAIN_RANK, too",
                evidence.c_str(), out.servers, out.workers, workers);
}

Status size_from_dtrain(const Variables &env, const std::string &evidence, int32_t &out) {
    if (!env.has("DTRAIN_SIZE"))
        return fail(DTRAIN_ERR_CONFIG,
                    "%s, but not of how many processes: set DTRAIN_SIZE to the number of workers "
                    "(DTRAIN_SIZE=1: each is a job of its own), or start them by dtrain-run",
                    evidence.c_str());
    int32_t servers = 0;
    Status s = env.number("DTRAIN_SIZE", 1, most, out);
    if (s == DTRAIN_OK && env.has("DTRAIN_SERVERS"))
        s = env.number("DTRAIN_SERVERS", 0, most - out, servers);
    out += servers;
    return s;
}

} // namespace dtrain::cluster
