// AWS Batch: multi-node parallel jobs.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

bool applies(const Variables &env) { return env.has("AWS_BATCH_JOB_NUM_NODES"); }

// Rank 0 is on the main node, whose address the other nodes are told; the rest keep their order.
Status read(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    int32_t size = 0, node = 0, main = 0;
    Status s = env.number("AWS_BATCH_JOB_NUM_NODES", 1, int32_t(wire::max_members), size);
    if (s == DTRAIN_OK) s = env.number("AWS_BATCH_JOB_NODE_INDEX", 0, size - 1, node);
    if (s == DTRAIN_OK && env.has("AWS_BATCH_JOB_MAIN_NODE_INDEX"))
        s = env.number("AWS_BATCH_JOB_MAIN_NODE_INDEX", 0, size - 1, main);
    if (s != DTRAIN_OK) return s;
    const int32_t rank = node == main ? 0 : node < main ? node + 1 : node;
    finding.evidence = evidence_of("AWS_BATCH_JOB_NUM_NODES", rank, size, "AWS Batch");
    if (s = split_roles(env, rank, size, finding.evidence, finding.identity); s != DTRAIN_OK)
        return s;
    if (size == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    const std::string address = env.text("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS");
    if (address.empty() && rank != 0)
        return fail(DTRAIN_ERR_CONFIG,
                    "%s, but AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS is not set",
                    finding.evidence.c_str());
    // The main node is not told its own address.
    meet_at(address.empty() ? any_host : address, lone_seed, "AWS Batch names no port",
            finding.identity);
    return DTRAIN_OK;
}

} // namespace

extern const Source aws_batch;
const Source aws_batch = {
    "AWS Batch, a process per node", "AWS_BATCH_JOB_NUM_NODES, AWS_BATCH_JOB_NODE_INDEX",
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS, at a fixed port", applies, read};

} // namespace dtrain::cluster
