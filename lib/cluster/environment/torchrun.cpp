// torchrun and what sets its variables (PyTorchJob, XGBoostJob, Ray Train), and Kubeflow Trainer's
// variables for torchrun where a program runs without it.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

bool is_torchrun(const Variables &env) { return env.has_any({"RANK", "WORLD_SIZE"}); }

Status read_torchrun(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    Identity &out = finding.identity;
    if (Status s = env.number("WORLD_SIZE", 1, most, out.workers); s != DTRAIN_OK) return s;
    if (Status s = env.number("RANK", 0, out.workers - 1, out.index); s != DTRAIN_OK) return s;
    if (out.workers == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    Status s = meet_at_master(env, out);
    return s == DTRAIN_OK ? s : fail_within(s, "RANK and WORLD_SIZE are set");
}

bool is_trainer(const Variables &env) { return env.has_any({"PET_NNODES", "PET_NODE_RANK"}); }

// The variables count nodes, so they name processes only where each node has one.
Status read_trainer(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    Identity &out = finding.identity;
    if (Status s = env.number("PET_NNODES", 1, most, out.workers); s != DTRAIN_OK) return s;
    if (Status s = env.number("PET_NODE_RANK", 0, out.workers - 1, out.index); s != DTRAIN_OK)
        return s;
    const std::string per_node = env.text("PET_NPROC_PER_NODE");
    if (!per_node.empty() && per_node != "1" && per_node != "auto" && per_node != "cpu")
        return fail(DTRAIN_ERR_CONFIG,
                    "PET_NPROC_PER_NODE=%.40s asks for several processes on each node, which "
                    "torchrun starts, but this one was not started by torchrun",
                    per_node.c_str());
    if (out.workers == 1 || env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    return meet_beside(env, "PET_MASTER_ADDR", "PET_MASTER_PORT", "torch", out);
}

} // namespace

extern const Source torchrun;
extern const Source kubeflow_trainer;
const Source torchrun = {"torchrun, PyTorchJob, XGBoostJob, Ray Train", "RANK, WORLD_SIZE",
                         "MASTER_ADDR, at a port computed from MASTER_PORT", is_torchrun,
                         read_torchrun};
const Source kubeflow_trainer = {
    "Kubeflow Trainer, a process per node", "PET_NNODES, PET_NODE_RANK",
    "PET_MASTER_ADDR, at a port computed from PET_MASTER_PORT", is_trainer, read_trainer};

} // namespace dtrain::cluster
