// The table of launchers, and how their variables are read.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/launchers.h"

#include "cluster/environment/slurm.h"
#include "cluster/environment/source.h"
#include "cluster/exchange/exchange.h"
#include "cluster/host/names.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

struct Launcher {
    const char *name;
    const char *rank, *size; // a row without a size says only that there is more than one process
    const char *other_size;  // used if `size` is not set
    const char *local_rank, *local_size;
    bool (*applies)(const Variables &); // nullptr: whenever one of the variables is set
};

// In the order in which they are tried: a launcher before the one that may have started it.
constexpr Launcher launchers[] = {
    {"Horovod", "HOROVOD_RANK", "HOROVOD_SIZE", nullptr, "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
     nullptr},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr,
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", nullptr, "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"PMI", "PMI_RANK", "PMI_SIZE", nullptr, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
    {"IBM jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", nullptr, "JSM_NAMESPACE_LOCAL_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE", nullptr},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", nullptr, nullptr, nullptr, nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_LOCALID",
     "SLURM_NTASKS_PER_NODE", in_slurm_step},
    {"PMIx", "PMIX_RANK", nullptr, nullptr, nullptr, nullptr, nullptr},
    {"PMI", "PMI_ID", nullptr, nullptr, nullptr, nullptr, nullptr}, // hydra's -pmi-port
};

const char *size_variable(const Launcher &launcher, const Variables &env) {
    const bool other = launcher.other_size != nullptr && !env.has(launcher.size);
    return other ? launcher.other_size : launcher.size;
}

bool speaks(const Launcher &launcher, const Variables &env) {
    if (launcher.applies != nullptr) return launcher.applies(env);
    return env.has(launcher.rank) || (launcher.size != nullptr && env.has(launcher.size));
}

Status without_size(const Launcher &launcher, const Variables &env, Launched &out) {
    if (Status s = env.number(launcher.rank, 0, most - 1, out.rank); s != DTRAIN_OK) return s;
    out.evidence = text("%s=%d says that this is rank %d (%s)", launcher.rank, out.rank, out.rank,
                        launcher.name);
    Status s = size_from_dtrain(env, out.evidence, out.size);
    return s == DTRAIN_OK ? env.number(launcher.rank, 0, out.size - 1, out.rank) : s;
}

Status ask(const Launcher &launcher, const Variables &env, Launched &out) {
    if (launcher.size == nullptr) return without_size(launcher, env, out);
    const char *size = size_variable(launcher, env);
    Status s = env.number(size, 1, most, out.size);
    if (s == DTRAIN_OK) s = env.number(launcher.rank, 0, out.size - 1, out.rank);
    if (s != DTRAIN_OK) return fail_within(s, "%s's environment", launcher.name);
    out.evidence = evidence_of(size, out.rank, out.size, launcher.name);
    return DTRAIN_OK;
}

} // namespace

Status find_launched(const Variables &env, std::optional<Launched> &out) {
    for (const Launcher &launcher : launchers) {
        // A process counted by one launcher is not asked for DTRAIN_SIZE because of another
        // launcher.
        if (!speaks(launcher, env) || (out && launcher.size == nullptr)) continue;
        Launched found;
        if (Status s = ask(launcher, env, found); s != DTRAIN_OK) return s;
        if (!out || found.size > 1) out = std::move(found);
        if (out->size > 1) break;
    }
    return DTRAIN_OK;
}

LocalRank find_local_rank(const Getenv &getenv) {
    const Variables env(getenv);
    const auto ask_for = [&](const char *rank, const char *size, LocalRank &out) {
        LocalRank found;
        if (rank == nullptr || !env.has(rank) ||
            env.number(size, 1, most, found.size) != DTRAIN_OK ||
            env.number(rank, 0, found.size - 1, found.rank) != DTRAIN_OK)
            return false;
        return out = found, true;
    };
    LocalRank out;
    if (ask_for("DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE", out)) return out;
    if (ask_for("LOCAL_RANK", "LOCAL_WORLD_SIZE", out)) return out; // torchrun
    for (const Launcher &launcher : launchers)
        if (ask_for(launcher.local_rank, launcher.local_size, out)) return out;
    return out;
}

namespace {

bool applies(const Variables &env) {
    for (const Launcher &launcher : launchers)
        if (speaks(launcher, env)) return true;
    return false;
}

// What the user says comes first, then the launcher's own store, then Slurm's list of hosts.
Status meet(const Variables &env, const Launched &launched, Identity &out) {
    if (env.has("DTRAIN_RENDEZVOUS")) return DTRAIN_OK;
    if (env.has_any({"MASTER_ADDR", "MASTER_PORT"})) {
        Status s = meet_at_master(env, out);
        return s == DTRAIN_OK ? s : fail_within(s, "%s", launched.evidence.c_str());
    }
    if (const ExchangeKind *kind = exchange_offered(env, launched.rank, launched.size);
        kind != nullptr)
        out.rendezvous = kind->rendezvous;
    else
        (void)meet_in_slurm_step(env, launched.rank, out);
    return DTRAIN_OK;
}

Status read(const Surroundings &around, Role, Finding &finding) {
    std::optional<Launched> launched;
    if (Status s = find_launched(around.env, launched); s != DTRAIN_OK) return s;
    if (!launched || launched->size == 1) return DTRAIN_OK;
    finding.evidence = launched->evidence;
    if (Status s = split_roles(around.env, launched->rank, launched->size, launched->evidence,
                               finding.identity);
        s != DTRAIN_OK)
        return s;
    return finding.identity.members() > 1 ? meet(around.env, *launched, finding.identity)
                                          : DTRAIN_OK;
}

} // namespace

extern const Source mpi_launchers;
const Source mpi_launchers = {
    "mpirun, mpiexec, srun, jsrun, flux, horovodrun",
    "OMPI_COMM_WORLD_*, MV2_COMM_WORLD_*, PMI_*, PMIX_*, SLURM_*, JSM_NAMESPACE_*, FLUX_*, "
    "HOROVOD_*",
    "MASTER_ADDR and MASTER_PORT if set, else the launcher's PMI or PMIx, else the first host of "
    "Slurm's step",
    applies, read};

} // namespace dtrain::cluster
