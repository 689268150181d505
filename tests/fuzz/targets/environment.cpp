// The variables of launchers, operators and clouds, from which a process learns its place.
// SPDX-License-Identifier: Apache-2.0
//
// Input: what the program asks for, then numbers of variables (below) with values, each up to a
// line's end.
#include "tests/fuzz/fuzz.h"

#include "cluster/environment/environment.h"
#include "cluster/environment/launchers.h"
#include "cluster/environment/stray_variables.h"
#include "wire/limits.h"

#include <map>

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

namespace {

constexpr const char *variables[] = {"AWS_BATCH_JOB_MAIN_NODE_INDEX",
                                     "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS",
                                     "AWS_BATCH_JOB_NODE_INDEX",
                                     "AWS_BATCH_JOB_NUM_NODES",
                                     "COORDINATOR_ADDRESS",
                                     "COORDINATOR_PORT",
                                     "DTRAIN_LISTEN_FD",
                                     "DTRAIN_LOCAL_RANK",
                                     "DTRAIN_LOCAL_SIZE",
                                     "DTRAIN_RANK",
                                     "DTRAIN_RENDEZVOUS",
                                     "DTRAIN_ROLE",
                                     "DTRAIN_SERVERS",
                                     "DTRAIN_SERVER_INDEX",
                                     "DTRAIN_SIZE",
                                     "FLUX_JOB_SIZE",
                                     "FLUX_TASK_RANK",
                                     "HOROVOD_LOCAL_RANK",
                                     "HOROVOD_LOCAL_SIZE",
                                     "HOROVOD_RANK",
                                     "HOROVOD_SIZE",
                                     "HOSTNAME",
                                     "JOB_COMPLETION_INDEX",
                                     "JSM_NAMESPACE_LOCAL_RANK",
                                     "JSM_NAMESPACE_LOCAL_SIZE",
                                     "JSM_NAMESPACE_RANK",
                                     "JSM_NAMESPACE_SIZE",
                                     "LOCAL_RANK",
                                     "LOCAL_WORLD_SIZE",
                                     "MASTER_ADDR",
                                     "MASTER_PORT",
                                     "MPI_LOCALNRANKS",
                                     "MPI_LOCALRANKID",
                                     "MV2_COMM_WORLD_LOCAL_RANK",
                                     "MV2_COMM_WORLD_LOCAL_SIZE",
                                     "MV2_COMM_WORLD_RANK",
                                     "MV2_COMM_WORLD_SIZE",
                                     "NUM_PROCESSES",
                                     "OMPI_COMM_WORLD_LOCAL_RANK",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "OMPI_COMM_WORLD_RANK",
                                     "OMPI_COMM_WORLD_SIZE",
                                     "PET_MASTER_ADDR",
                                     "PET_MASTER_PORT",
                                     "PET_NNODES",
                                     "PET_NODE_RANK",
                                     "PET_NPROC_PER_NODE",
                                     "PMIX_NAMESPACE",
                                     "PMIX_RANK",
                                     "PMI_FD",
                                     "PMI_ID",
                                     "PMI_RANK",
                                     "PMI_SIZE",
                                     "PROCESS_ID",
                                     "RANK",
                                     "SLURM_JOB_ID",
                                     "SLURM_LOCALID",
                                     "SLURM_NTASKS",
                                     "SLURM_NTASKS_PER_NODE",
                                     "SLURM_PROCID",
                                     "SLURM_STEP_ID",
                                     "SLURM_STEP_NODELIST",
                                     "SLURM_STEP_NUM_TASKS",
                                     "SM_CURRENT_HOST",
                                     "SM_HOSTS",
                                     "TF_CONFIG",
                                     "WORLD_SIZE"};

std::string in_a_service(const std::string &host) { return host + ".svc.cluster.local"; }

uint8_t number_of(const char *name) {
    const auto *found = std::find_if(std::begin(variables), std::end(variables),
                                     [&](const char *one) { return !std::strcmp(one, name); });
    FUZZ_REQUIRE(found != std::end(variables));
    return uint8_t(found - variables);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    std::map<std::string, std::string> values;
    const uint8_t role = in.byte();
    IdentityRequest request;
    request.role = role % 2 ? Role::server : Role::worker;
    request.elastic = role / 2 % 2 != 0;
    request.newcomer = role / 4 % 4 == 3;
    if (role & 16) { // the program says itself how many there are
        request.size = int32_t(in.take<int16_t>());
        request.servers = int8_t(in.byte());
        request.index = int8_t(in.byte());
    }
    if (role & 32) request.rendezvous = role & 64 ? "env" : "tcp://a:1";
    while (!in.empty()) {
        const char *name = variables[in.byte() % std::size(variables)];
        values[name] = in.line();
    }
    const Getenv getenv = [&](const char *name) -> const char * {
        const auto at = values.find(name);
        return at == values.end() ? nullptr : at->second.c_str();
    };
    Identity identity;
    std::string evidence;
    if (find_identity(request, getenv, identity, in_a_service, &evidence) == DTRAIN_OK &&
        !request.newcomer) {
        FUZZ_REQUIRE(identity.workers >= 1 && identity.servers >= 0);
        FUZZ_REQUIRE(identity.workers + identity.servers <= int32_t(wire::max_members));
        FUZZ_REQUIRE(identity.index >= 0 &&
                     identity.index <
                         (identity.role == Role::server ? identity.servers : identity.workers));
    }
    Task task;
    (void)find_task(getenv, task);
    (void)report_sources(getenv, request.role, in_a_service);
    const LocalRank local = find_local_rank(getenv);
    FUZZ_REQUIRE(local.rank >= 0 && local.rank < local.size);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    using Values = std::vector<std::pair<const char *, const char *>>;
    const Values all[] = {
        {{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
        {{"OMPI_COMM_WORLD_RANK", "1"},
         {"OMPI_COMM_WORLD_SIZE", "2"},
         {"DTRAIN_SERVERS", "1"},
         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
        {{"SLURM_JOB_ID", "7"},
         {"SLURM_STEP_ID", "0"},
         {"SLURM_PROCID", "1"},
         {"SLURM_STEP_NUM_TASKS", "3"},
         {"SLURM_STEP_NODELIST", "gpu[03-04,9]"}},
        {{"SM_HOSTS", R"(["algo-1", "algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}},
        {{"AWS_BATCH_JOB_NUM_NODES", "3"},
         {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "1"},
         {"AWS_BATCH_JOB_NODE_INDEX", "0"},
         {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "10.0.0.7"}},
        {{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "digits-2"}, {"DTRAIN_SIZE", "3"}},
        {{"PET_NNODES", "2"},
         {"PET_NODE_RANK", "1"},
         {"PET_NPROC_PER_NODE", "1"},
         {"PET_MASTER_ADDR", "t-node-0-0.t"},
         {"PET_MASTER_PORT", "29500"}},
        {{"NUM_PROCESSES", "2"}, {"PROCESS_ID", "1"}, {"COORDINATOR_ADDRESS", "a:1234"}},
        {{"RANK", "1"},
         {"WORLD_SIZE", "4"},
         {"MASTER_ADDR", "a"},
         {"MASTER_PORT", "29400"},
         {"LOCAL_RANK", "1"},
         {"LOCAL_WORLD_SIZE", "2"}},
        {{"TF_CONFIG",
          R"({"cluster":{"worker":["a:1","b:2"]},"task":{"type":"worker","index":1}})"}},
        {{"DTRAIN_RANK", "0"},
         {"DTRAIN_SIZE", "2"},
         {"DTRAIN_RENDEZVOUS", "tcp://a:1"},
         {"DTRAIN_SERVERS", "1"},
         {"DTRAIN_LISTEN_FD", "3"},
         {"DTRAIN_ROLE", "worker"}},
        {{"DTRAIN_ROLE", "server"},
         {"DTRAIN_SERVER_INDEX", "1"},
         {"DTRAIN_SIZE", "2"},
         {"DTRAIN_SERVERS", "2"},
         {"DTRAIN_RENDEZVOUS", "file:///tmp/x"}},
        {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}, {"FLUX_TASK_RANK", "0"}},
    };
    const auto tensorflow = [](const char *config) -> Values { return {{"TF_CONFIG", config}}; };
    const Values bad[] = {
        // and special cases
        {{"RANK", "1"}, {"WORLD_SIZE", "1"}},
        {{"RANK", "1"}},
        {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
        {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}},
        {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "1"}},
        {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"DTRAIN_SERVERS", "1"}, {"DTRAIN_SIZE", "3"}},
        {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"DTRAIN_SERVERS", "3"}},
        {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "a"}},
        {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "a"}, {"DTRAIN_SIZE", "2"}},
        {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"DTRAIN_SIZE", "2"}},
        {{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "2"}},
        {{"SM_HOSTS", "[\"a\"]"}, {"SM_CURRENT_HOST", "b"}},
        {{"SM_HOSTS", "[1]"}, {"SM_CURRENT_HOST", "b"}},
        {{"SM_HOSTS", "{}"}, {"SM_CURRENT_HOST", "b"}},
        {{"AWS_BATCH_JOB_NUM_NODES", "3"},
         {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "1"},
         {"AWS_BATCH_JOB_NODE_INDEX", "1"}},
        {{"AWS_BATCH_JOB_NUM_NODES", "3"}, {"AWS_BATCH_JOB_NODE_INDEX", "5"}},
        {{"AWS_BATCH_JOB_NUM_NODES", "3"},
         {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "1"},
         {"AWS_BATCH_JOB_NODE_INDEX", "0"}},
        {{"JOB_COMPLETION_INDEX", "2"}},
        {{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "other"}, {"DTRAIN_SIZE", "3"}},
        {{"JOB_COMPLETION_INDEX", "7"}, {"HOSTNAME", "digits-7"}, {"DTRAIN_SIZE", "3"}},
        {{"PET_NNODES", "2:4"}, {"PET_NODE_RANK", "1"}},
        {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_NPROC_PER_NODE", "gpu"}},
        {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_NPROC_PER_NODE", "2"}},
        {{"NUM_PROCESSES", "2"}, {"PROCESS_ID", "3"}},
        {{"NUM_PROCESSES", "2"}, {"PROCESS_ID", "1"}},
        {{"DTRAIN_RANK", "new"}},
        {{"DTRAIN_RANK", "0"}, {"DTRAIN_SIZE", "2"}},
        {{"DTRAIN_RANK", "0"}},
        {{"DTRAIN_ROLE", "boss"}, {"DTRAIN_RANK", "0"}, {"DTRAIN_SIZE", "1"}},
        {{"DTRAIN_RANK", "9"}, {"DTRAIN_SIZE", "2"}, {"DTRAIN_RENDEZVOUS", "oob"}},
        {{"DTRAIN_RANK", "1"}, {"DTRAIN_SIZE", "99999999"}},
        tensorflow("{"),
        tensorflow("[]"),
        tensorflow(R"({"cluster":{"worker":["a:1"]},"task":{"type":"evaluator","index":0}})"),
        tensorflow(R"({"cluster":{"chief":["a:1"],"worker":["b:2"],"ps":["c:3"]},)"
                   R"("task":{"type":"ps","index":0}})"),
        tensorflow(R"({"cluster":{"worker":{"0":"a:1","x":"b:2"}},)"
                   R"("task":{"type":"worker","index":"0"}})"),
        tensorflow(R"({"cluster":{"worker":["a:1",7]},"task":{"type":"worker","index":9}})"),
        tensorflow(R"({"cluster":{"worker":["a"]},"task":{"type":"boss"}})"),
        tensorflow(R"({"task":{"type":"worker","index":0}})"),
    };
    std::vector<Bytes> out;
    const Values given = {
        {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
    for (const uint8_t role : {16, 17, 16 | 32, 16 | 32 | 64, 32, 4 | 8, 2 | 4 | 8 | 32}) {
        for (const auto &[workers, servers, index] :
             {std::tuple{2, 0, 1}, {2, 0, 2}, {-1, 0, 0}, {5000, 0, 0}, {1, 1, 0}, {2, -1, 0}}) {
            Made made;
            made.byte(role);
            if (role & 16) made.put(int16_t(workers)).byte(uint8_t(servers)).byte(uint8_t(index));
            for (const auto &[name, value] : given)
                made.byte(number_of(name)).all(std::string_view(value)).byte('\n');
            out.push_back(made);
            if (!(role & 16)) break;
        }
    }
    for (const Values &values : bad) {
        Made made;
        made.byte(0);
        for (const auto &[name, value] : values)
            made.byte(number_of(name)).all(std::string_view(value)).byte('\n');
        out.push_back(made);
    }
    for (const Values &values : all) {
        Made made;
        made.byte(std::strstr(values[0].second, "server") ? 1 : 0);
        for (const auto &[name, value] : values)
            made.byte(number_of(name)).all(std::string_view(value)).byte('\n');
        out.push_back(made);
    }
    return out;
}
