// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment.h"

#include "cluster/socket.h"
#include "cluster/tf_config.h"
#include "wire/limits.h"

#include <charconv>
#include <set>

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

class Environment {
  public:
    explicit Environment(const Getenv &getenv) : getenv_(getenv) {}

    // "" counts as not set.
    std::string text(const char *name) const {
        const char *value = getenv_(name);
        return value == nullptr ? "" : value;
    }
    bool has(const char *name) const { return !text(name).empty(); }
    bool has_any(std::initializer_list<const char *> names) const {
        for (const char *name : names)
            if (has(name)) return true;
        return false;
    }
    // Required, in [least, limit].
    Status number(const char *name, int32_t least, int32_t limit, int32_t &out) const {
        std::string value = text(name);
        if (value.empty()) return fail(DTRAIN_ERR_CONFIG, "%s is not set", name);
        int32_t n = 0;
        auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
        if (error != std::errc{} || *end != 0 || n < least || n > limit)
            return fail(DTRAIN_ERR_CONFIG, "%s=%.40s is not a number from %d to %d", name,
                        value.c_str(), least, limit);
        out = n;
        return DTRAIN_OK;
    }

  private:
    const Getenv &getenv_;
};

Status from_dtrain(const Environment &env, Role wanted, Identity &out) {
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
    return out.role == Role::server
               ? env.number("DTRAIN_SERVER_INDEX", 0, out.servers - 1, out.index)
               : env.number("DTRAIN_RANK", 0, out.workers - 1, out.index);
}

Status from_torch(const Environment &env, Identity &out) {
    out.role = Role::worker;
    if (Status s = env.number("WORLD_SIZE", 1, most, out.workers); s != DTRAIN_OK) return s;
    if (Status s = env.number("RANK", 0, out.workers - 1, out.index); s != DTRAIN_OK) return s;
    if (out.workers == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    int32_t port = 0;
    std::string host = env.text("MASTER_ADDR");
    if (host.empty())
        return fail(DTRAIN_ERR_CONFIG, "MASTER_ADDR is not set, but RANK and WORLD_SIZE are");
    if (Status s = env.number("MASTER_PORT", 1, 65534, port); s != DTRAIN_OK) return s;
    out.rendezvous = "tcp://" + join_endpoint(host, std::to_string(port + 1));
    return DTRAIN_OK;
}

// Beside the first task's own port, where no task of TensorFlow is.
Status rendezvous_of(const TfConfig &tf, std::string &out) {
    const auto &first = tf.chief.empty() ? tf.workers : tf.chief;
    if (!first.contains(0))
        return fail(DTRAIN_ERR_CONFIG,
                    "TF_CONFIG does not tell where worker 0 is; set DTRAIN_RENDEZVOUS");
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
        return fail(DTRAIN_ERR_CONFIG, "TF_CONFIG: no port is left above %s", chief.port.c_str());
    out = "tcp://" + join_endpoint(chief.host, std::to_string(port));
    return DTRAIN_OK;
}

Status from_tensorflow(const Environment &env, Identity &out) {
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

Status from_environment(const Environment &env, Role wanted, Identity &out) {
    bool torch = env.has_any({"RANK", "WORLD_SIZE"}), tensorflow = env.has("TF_CONFIG");
    if (env.has_any({"DTRAIN_RANK", "DTRAIN_ROLE", "DTRAIN_SERVER_INDEX"}))
        return from_dtrain(env, wanted, out);
    if (torch) return from_torch(env, out);
    if (tensorflow) return from_tensorflow(env, out);
    if (env.has_any({"DTRAIN_SIZE", "DTRAIN_SERVERS", "DTRAIN_RENDEZVOUS"}))
        return from_dtrain(env, wanted, out);
    return DTRAIN_OK;
}

Status from_request(const IdentityRequest &request, Identity &out) {
    out = {request.role, request.index, request.size, request.servers, "", -1};
    int32_t limit = request.role == Role::worker ? request.size : request.servers;
    if (request.size > most || request.servers < 0 || request.servers > most - request.size)
        return fail(DTRAIN_ERR_INVALID, "a job of %d workers and %d servers; at most %d together",
                    request.size, request.servers, most);
    if (request.index < 0 || request.index >= limit)
        return fail(DTRAIN_ERR_INVALID, "%s %d is not one of 0 to %d",
                    request.role == Role::worker ? "rank" : "server", request.index, limit - 1);
    return DTRAIN_OK;
}

} // namespace

LocalRank find_local_rank(const Getenv &getenv) {
    static constexpr std::pair<const char *, const char *> names[] = {
        {"DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE"},
        {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}, // torchrun
        {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, // MPICH, Intel MPI
        {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};
    const Environment env(getenv);
    for (auto [rank, size] : names) {
        LocalRank found;
        if (env.has(rank) && env.number(size, 1, most, found.size) == DTRAIN_OK &&
            env.number(rank, 0, found.size - 1, found.rank) == DTRAIN_OK)
            return found;
    }
    return {};
}

Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out) {
    Environment env(getenv);
    Identity found, launched;
    bool ask = request.rendezvous.empty() || request.rendezvous == "env";
    if (request.size < 0) return fail(DTRAIN_ERR_INVALID, "a job of %d workers", request.size);
    Status s = request.size > 0 ? from_request(request, found)
                                : from_environment(env, request.role, found);
    if (s != DTRAIN_OK) return s;
    if (found.role != request.role)
        return fail(DTRAIN_ERR_STATE, "this process is a %s of the job, so it cannot join as a %s",
                    found.role == Role::server ? "server" : "worker",
                    request.role == Role::server ? "server" : "worker");
    if (!ask)
        found.rendezvous = request.rendezvous;
    else if (env.has("DTRAIN_RENDEZVOUS"))
        found.rendezvous = env.text("DTRAIN_RENDEZVOUS");
    if (found.members() > 1 && found.rendezvous.empty() && request.size > 0 &&
        from_environment(env, request.role, launched) == DTRAIN_OK)
        found.rendezvous = launched.rendezvous;
    if (found.members() > 1 && found.rendezvous.empty())
        return fail(DTRAIN_ERR_CONFIG,
                    "no rendezvous for a job of %d processes: DTRAIN_RENDEZVOUS is not set",
                    found.members());
    // A listener of the environment's job, not of another one that its rank 0 joins by itself.
    if (found.member() == 0 && env.has("DTRAIN_LISTEN_FD") &&
        found.rendezvous == env.text("DTRAIN_RENDEZVOUS"))
        s = env.number("DTRAIN_LISTEN_FD", 0, 1 << 20, found.listen_fd);
    if (s == DTRAIN_OK) out = std::move(found);
    return s;
}

} // namespace dtrain::cluster
