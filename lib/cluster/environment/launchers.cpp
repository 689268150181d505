// The table of launchers, and how their variables are read.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/launchers.h"

#include "cluster/host/names.h"
#include "wire/limits.h"

#include <charconv>

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

// Batch scripts and the shells of allocations have the variables of the whole allocation, but are
// one process. Some versions give them the numbers of special steps, from this one on.
constexpr uint64_t first_special_step = 0xfffffff0;

bool in_slurm_step(const Variables &env) {
    const std::string step = env.text("SLURM_STEP_ID");
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
    return error == std::errc{} && *end == 0 && number < first_special_step;
}

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

// The job's size must come from DTRAIN_SIZE, as with TF_CONFIG's sparse form.
Status without_size(const Launcher &launcher, const Variables &env, Launched &out) {
    if (Status s = env.number(launcher.rank, 0, most - 1, out.rank); s != DTRAIN_OK) return s;
    out.evidence = text("%s=%d says that this is rank %d (%s)", launcher.rank, out.rank, out.rank,
                        launcher.name);
    if (!env.has("DTRAIN_SIZE"))
        return fail(DTRAIN_ERR_CONFIG,
                    "%s, but not of how many processes: set DTRAIN_SIZE to the number of workers "
                    "(DTRAIN_SIZE=1: each is a job of its own), or start them by dtrain-run",
                    out.evidence.c_str());
    int32_t servers = 0;
    Status s = env.number("DTRAIN_SIZE", 1, most, out.size);
    if (s == DTRAIN_OK && env.has("DTRAIN_SERVERS"))
        s = env.number("DTRAIN_SERVERS", 0, most - out.size, servers);
    out.size += servers;
    return s == DTRAIN_OK ? env.number(launcher.rank, 0, out.size - 1, out.rank) : s;
}

Status ask(const Launcher &launcher, const Variables &env, Launched &out) {
    if (launcher.size == nullptr) return without_size(launcher, env, out);
    const char *size = size_variable(launcher, env);
    Status s = env.number(size, 1, most, out.size);
    if (s == DTRAIN_OK) s = env.number(launcher.rank, 0, out.size - 1, out.rank);
    if (s != DTRAIN_OK) return fail_within(s, "%s's environment", launcher.name);
    out.evidence = text("%s=%d says that this is rank %d of %d (%s)", size, out.size, out.rank,
                        out.size, launcher.name);
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

} // namespace dtrain::cluster
