// Tries the sources of a process's identity in their order, and checks that they agree.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/environment.h"

#include "cluster/environment/launchers.h"
#include "cluster/environment/tf_config.h"
#include "cluster/host/socket.h"
#include "wire/limits.h"

#include <set>

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

Status from_dtrain(const Variables &env, Role wanted, Identity &out) {
    std::string role = env.text("DTRAIN_ROLE");
    if (!role.empty() && role != "worker" && role != "server")
        return fail(DTRAIN_ERR_CONFIG, "DTRAIN_ROLE=%.40s is not worker or server", role.c_str());
    out.role = role.empty() ? wanted : role == "server" ? Role::server : Role::worker;
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

// The address at which torch's processes meet; worker 0 of this job listens beside it.
Status master_address(const Variables &env, Identity &out) {
    std::string host = env.text("MASTER_ADDR");
    if (host.empty()) return fail(DTRAIN_ERR_CONFIG, "MASTER_ADDR is not set");
    if (Status s = env.number("MASTER_PORT", 1, 65535, out.master_port); s != DTRAIN_OK) return s;
    out.rendezvous = "tcp://" + join_endpoint(host, std::to_string(out.master_port));
    return DTRAIN_OK;
}

Status from_torch(const Variables &env, Identity &out) {
    out.role = Role::worker;
    if (Status s = env.number("WORLD_SIZE", 1, most, out.workers); s != DTRAIN_OK) return s;
    if (Status s = env.number("RANK", 0, out.workers - 1, out.index); s != DTRAIN_OK) return s;
    if (out.workers == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    Status s = master_address(env, out);
    return s == DTRAIN_OK ? s : fail_within(s, "RANK and WORLD_SIZE are set");
}

// A port beside the first task's own port that no task of TensorFlow uses.
Status rendezvous_of(const TfConfig &tf, std::string &out) {
    const auto &first = tf.chief.empty() ? tf.workers : tf.chief;
    if (!first.contains(0))
        return fail(DTRAIN_ERR_CONFIG,
                    "TF_CONFIG has no address of worker 0; set DTRAIN_RENDEZVOUS");
    Endpoint chief;
    Status s = parse_endpoint(first.at(0), "TF_CONFIG", chief);
    if (s != DTRAIN_OK) return fail(DTRAIN_ERR_CONFIG, "%s", std::string(error_text()).c_str());
    std::set<int32_t> taken;
    for (const auto *job : {&tf.chief, &tf.workers, &tf.ps})
        for (const auto &[index, address] : *job) {
            Endpoint e;
            if (parse_endpoint(address, "TF_CONFIG", e) == DTRAIN_OK && e.host == chief.host)
                taken.insert(std::atoi(e.port.c_str()));
        }
    int32_t port = std::atoi(chief.port.c_str()) + 1;
    while (taken.contains(port)) port++;
    if (port > 65535)
        return fail(DTRAIN_ERR_CONFIG, "TF_CONFIG: there is no free port above %s",
                    chief.port.c_str());
    out = "tcp://" + join_endpoint(chief.host, std::to_string(port));
    return DTRAIN_OK;
}

Status from_tensorflow(const Variables &env, Identity &out) {
    TfConfig tf;
    if (Status s = parse_tf_config(env.text("TF_CONFIG"), tf); s != DTRAIN_OK) return s;
    if (tf.task == TfConfig::Task::evaluator)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "TF_CONFIG: this is an evaluator, which does not join the job; let it work "
                    "without a communicator");
    auto chiefs = int32_t(tf.chief.size());
    out.workers = chiefs + int32_t(tf.workers.size());
    out.servers = int32_t(tf.ps.size());
    out.role = tf.task == TfConfig::Task::ps ? Role::server : Role::worker;
    out.index = tf.task == TfConfig::Task::worker ? chiefs + tf.index : tf.index;
    if (out.workers == 0 && out.servers == 0) return out = Identity{}, DTRAIN_OK;
    if (tf.sparse)
        if (Status s = env.number("DTRAIN_SIZE", out.index + 1, most - out.servers, out.workers);
            s != DTRAIN_OK)
            return fail_within(s, "TF_CONFIG names only some of the workers");
    if (out.workers == 0) return fail(DTRAIN_ERR_CONFIG, "TF_CONFIG: the cluster has no worker");
    if (out.members() == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    return rendezvous_of(tf, out.rendezvous);
}

// The last DTRAIN_SERVERS processes are the servers.
Status from_launcher(const Variables &env, const Launched &launched, Identity &out) {
    if (env.has("DTRAIN_SERVERS"))
        if (Status s = env.number("DTRAIN_SERVERS", 0, launched.size - 1, out.servers);
            s != DTRAIN_OK)
            return fail_within(s, "%s", launched.evidence.c_str());
    out.workers = launched.size - out.servers;
    const bool serves = launched.rank >= out.workers;
    out.role = serves ? Role::server : Role::worker;
    out.index = serves ? launched.rank - out.workers : launched.rank;
    int32_t size = out.workers;
    if (env.has("DTRAIN_SIZE"))
        if (Status s = env.number("DTRAIN_SIZE", 1, most, size); s != DTRAIN_OK) return s;
    if (size != out.workers)
        return fail(DTRAIN_ERR_CONFIG,
                    "%s, so with %d servers there are %d workers, but DTRAIN_SIZE=%d; unset it, or "
                    "set DTRAIN_RANK, too",
                    launched.evidence.c_str(), out.servers, out.workers, size);
    if (env.has("DTRAIN_RENDEZVOUS") || !env.has_any({"MASTER_ADDR", "MASTER_PORT"}))
        return DTRAIN_OK;
    Status s = master_address(env, out);
    return s == DTRAIN_OK ? s : fail_within(s, "%s", launched.evidence.c_str());
}

struct Told {
    bool anything = false; // otherwise this process is alone because no variable says more
    std::string evidence;  // which launcher says that there is more than one process
};

Status from_environment(const Variables &env, Role wanted, Identity &out, Told &told) {
    told.anything = env.has_any({"DTRAIN_RANK", "DTRAIN_ROLE", "DTRAIN_SERVER_INDEX", "DTRAIN_SIZE",
                                 "RANK", "WORLD_SIZE", "TF_CONFIG"});
    if (env.has_any({"DTRAIN_RANK", "DTRAIN_ROLE", "DTRAIN_SERVER_INDEX"}) ||
        env.text("DTRAIN_SIZE") == "1")
        return from_dtrain(env, wanted, out);
    Status s = DTRAIN_OK;
    if (env.has_any({"RANK", "WORLD_SIZE"})) s = from_torch(env, out);
    if (s == DTRAIN_OK && out.members() == 1 && env.has("TF_CONFIG"))
        s = from_tensorflow(env, out = {});
    if (s != DTRAIN_OK || out.members() > 1) return s;
    std::optional<Launched> launched;
    if (s = find_launched(env, launched); s != DTRAIN_OK) return s;
    if (launched && launched->size > 1) {
        told = {true, launched->evidence};
        return from_launcher(env, *launched, out);
    }
    if (!env.has_any({"RANK", "WORLD_SIZE", "TF_CONFIG"}) &&
        env.has_any({"DTRAIN_SIZE", "DTRAIN_SERVERS", "DTRAIN_RENDEZVOUS"}))
        return from_dtrain(env, wanted, out);
    told.anything |= launched.has_value();
    return DTRAIN_OK;
}

Status from_request(const IdentityRequest &request, Identity &out) {
    out.role = request.role;
    out.index = request.index;
    out.workers = request.size;
    out.servers = request.servers;
    int32_t limit = request.role == Role::worker ? request.size : request.servers;
    if (request.size > most || request.servers < 0 || request.servers > most - request.size)
        return fail(DTRAIN_ERR_INVALID,
                    "a job of %d workers and %d servers is too large; at most "
                    "%d members together",
                    request.size, request.servers, most);
    if (request.index < 0 || request.index >= limit)
        return fail(DTRAIN_ERR_INVALID, "%s %d is not one of 0 to %d",
                    request.role == Role::worker ? "rank" : "server", request.index, limit - 1);
    return DTRAIN_OK;
}

// A process that is to meet others must know where; a process that is told where must know how many
// there are.
Status check_meeting(const IdentityRequest &request, const Identity &found, const Told &told) {
    if (found.members() == 1) {
        if (request.rendezvous.empty() || request.rendezvous == "env" || told.anything)
            return DTRAIN_OK;
        return fail(DTRAIN_ERR_CONFIG,
                    "rendezvous \"%.200s\", but the number of processes is unknown: give size and "
                    "rank, or set DTRAIN_SIZE and DTRAIN_RANK (DTRAIN_SIZE=1: this process alone)",
                    request.rendezvous.c_str());
    }
    if (!found.rendezvous.empty()) return DTRAIN_OK;
    if (told.evidence.empty())
        return fail(DTRAIN_ERR_CONFIG,
                    "no rendezvous for a job of %d processes: DTRAIN_RENDEZVOUS is not set",
                    found.members());
    return fail(DTRAIN_ERR_CONFIG,
                "%s, but nothing says where they meet: set DTRAIN_RENDEZVOUS to tcp://HOST:PORT of "
                "rank 0 (or MASTER_ADDR and MASTER_PORT) for all, or start them by dtrain-run; "
                "DTRAIN_SIZE=1 makes each a job of its own",
                told.evidence.c_str());
}

} // namespace

Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out) {
    Variables env(getenv);
    Identity found, launched;
    Told told;
    bool ask = request.rendezvous.empty() || request.rendezvous == "env";
    if (request.size < 0)
        return fail(DTRAIN_ERR_INVALID, "a job cannot have %d workers", request.size);
    Status s = request.size > 0 ? from_request(request, found)
                                : from_environment(env, request.role, found, told);
    if (s != DTRAIN_OK) return s;
    if (found.role != request.role)
        return fail(DTRAIN_ERR_STATE, "this process is a %s of the job, so it cannot join as a %s",
                    found.role == Role::server ? "server" : "worker",
                    request.role == Role::server ? "server" : "worker");
    if (found.members() > 1 && found.rendezvous.empty() && request.size > 0 &&
        from_environment(env, request.role, launched, told) == DTRAIN_OK) {
        found.rendezvous = launched.rendezvous;
        found.master_port = launched.master_port;
    }
    if (!ask || env.has("DTRAIN_RENDEZVOUS")) {
        found.rendezvous = ask ? env.text("DTRAIN_RENDEZVOUS") : request.rendezvous;
        found.master_port = 0;
    }
    told.anything |= request.size > 0;
    if (s = check_meeting(request, found, told); s != DTRAIN_OK) return s;
    // The listener belongs to the environment's job, not to another job that its rank 0 joins
    // itself.
    if (found.member() == 0 && env.has("DTRAIN_LISTEN_FD") &&
        found.rendezvous == env.text("DTRAIN_RENDEZVOUS"))
        s = env.number("DTRAIN_LISTEN_FD", 0, 1 << 20, found.listen_fd);
    if (s == DTRAIN_OK) out = std::move(found);
    return s;
}

} // namespace dtrain::cluster
