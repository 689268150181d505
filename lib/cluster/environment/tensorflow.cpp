// TF_CONFIG: the roles of TensorFlow's clusters, and where they meet.
// SPDX-License-Identifier: Apache-2.0
//
// The chief (or master, or else worker 0) is rank 0, the (other) workers follow, a ps is a server,
// an evaluator is no member. The ports belong to TensorFlow: rank 0
// listens at the next port above its own that no task on that host has. The sparse form does not
// tell the number of workers: DTRAIN_SIZE must.
#include "cluster/environment/source.h"
#include "cluster/environment/tf_config.h"
#include "cluster/host/socket.h"
#include "wire/limits.h"

#include <cstdlib>
#include <set>

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

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

bool applies(const Variables &env) { return env.has("TF_CONFIG"); }

Status read(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    Identity &out = finding.identity;
    TfConfig tf;
    if (Status s = parse_tf_config(env.text("TF_CONFIG"), tf); s != DTRAIN_OK) return s;
    finding.evaluates = tf.task == TfConfig::Task::evaluator;
    if (finding.evaluates) return finding.evidence = "TF_CONFIG's task", DTRAIN_OK;
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

} // namespace

extern const Source tensorflow;
const Source tensorflow = {"TensorFlow's operators", "TF_CONFIG",
                           "the port next to the chief's, or worker 0's", applies, read};

} // namespace dtrain::cluster
