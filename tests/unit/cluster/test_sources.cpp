// Where processes meet that launchers, operators and clouds have started, by their variables.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/environment/environment.h"
#include "cluster/environment/slurm.h"

#include <cstring>
#include <map>
#include <string>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

using Values = std::map<std::string, std::string>;

std::string in_a_service(const std::string &host) { return host + ".svc.ns.svc.cluster.local"; }
std::string bare(const std::string &host) { return host; }

Status find(const Values &values, Identity &out, FullName *full_name = in_a_service,
            const IdentityRequest &request = {}) {
    return find_identity(
        request,
        [&](const char *name) -> const char * {
            auto at = values.find(name);
            return at == values.end() ? nullptr : at->second.c_str();
        },
        out, full_name);
}

Values operator+(Values a, const Values &b) {
    for (const auto &[name, value] : b) a.insert_or_assign(name, value);
    return a;
}

const Values hydra{{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
const Values open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"PMIX_NAMESPACE", "x"},
                      {"PMIX_RANK", "1"}};
const Values srun{{"SLURM_JOB_ID", "7"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_PROCID", "1"},
                  {"SLURM_STEP_NUM_TASKS", "3"},
                  {"SLURM_STEP_NODELIST", "gpu[03-04,9]"}};
const Values sagemaker{{"SM_HOSTS", R"(["algo-1", "algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}};
const Values batch{{"AWS_BATCH_JOB_NUM_NODES", "3"},
                   {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "1"},
                   {"AWS_BATCH_JOB_NODE_INDEX", "0"},
                   {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "10.0.0.7"}};
const Values pod{{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "digits-2"}};
const Values of_three{{"DTRAIN_SIZE", "3"}};
const Values trainer{{"PET_NNODES", "2"},
                     {"PET_NODE_RANK", "1"},
                     {"PET_NPROC_PER_NODE", "1"},
                     {"PET_MASTER_ADDR", "t-node-0-0.t"},
                     {"PET_MASTER_PORT", "29500"}};
const Values jax{{"NUM_PROCESSES", "2"},
                 {"PROCESS_ID", "1"},
                 {"COORDINATOR_ADDRESS", "jax-worker-0"},
                 {"COORDINATOR_PORT", "29500"}};

struct Meets {
    const char *what;
    Values values;
    int32_t rank, size;
    const char *rendezvous;
};
const Meets meets[] = {
    {"hydra", hydra, 0, 2, "pmi"},
    {"Open MPI", open_mpi, 1, 2, "pmix"},
    {"Open MPI started by a task of srun --mpi=pmi2: not that task's PMI", open_mpi + hydra, 1, 2,
     "pmix"},
    {"srun --mpi=pmi2", srun + Values{{"PMI_FD", "9"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, 1, 3,
     "pmi"},
    {"srun --mpi=pmix", srun + Values{{"PMIX_NAMESPACE", "x"}, {"PMIX_RANK", "1"}}, 1, 3, "pmix"},
    {"srun --mpi=none", srun, 1, 3, "tcp://gpu03:21510"},
    {"jsrun",
     {{"JSM_NAMESPACE_RANK", "1"},
      {"JSM_NAMESPACE_SIZE", "2"},
      {"PMIX_NAMESPACE", "x"},
      {"PMIX_RANK", "1"}},
     1,
     2,
     "pmix"},
    {"SageMaker", sagemaker, 1, 2, "tcp://algo-1:10854"},
    {"AWS Batch, before the main node", batch, 1, 3, "tcp://10.0.0.7:10854"},
    {"AWS Batch, after the main node", batch + Values{{"AWS_BATCH_JOB_NODE_INDEX", "2"}}, 2, 3,
     "tcp://10.0.0.7:10854"},
    {"AWS Batch, the main node, which is not told its address",
     {{"AWS_BATCH_JOB_NUM_NODES", "2"},
      {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "0"},
      {"AWS_BATCH_JOB_NODE_INDEX", "0"}},
     0,
     2,
     "tcp://*:10854"},
    {"an Indexed Job", pod + of_three, 2, 3, "tcp://digits-0.svc.ns.svc.cluster.local:10854"},
    {"a JobSet", of_three + Values{{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "set-workers-0-1"}},
     1, 3, "tcp://set-workers-0-0.svc.ns.svc.cluster.local:10854"},
    {"Kubeflow Trainer", trainer, 1, 2, "tcp://t-node-0-0.t:32577"},
    {"JAXJob", jax, 1, 2, "tcp://jax-worker-0:32577"},
    {"mpirun in a pod", pod + of_three + open_mpi + Values{{"DTRAIN_SIZE", "2"}}, 1, 2, "pmix"},
};

void processes_meet_without_configuration(void **) {
    for (const Meets &one : meets) {
        Identity id;
        const Status s = find(one.values, id);
        if (s != DTRAIN_OK || id.rendezvous != one.rendezvous)
            print_error("%s: %s: %s\n", one.what, id.rendezvous.c_str(), error_text());
        assert_int_equal(s, DTRAIN_OK);
        assert_int_equal(id.index, one.rank);
        assert_int_equal(id.workers, one.size);
        assert_string_equal(id.rendezvous.c_str(), one.rendezvous);
        // What the user says goes before.
        const Values own{{"DTRAIN_RENDEZVOUS", "tcp://h:1"}};
        assert_int_equal(find(one.values + own, id), DTRAIN_OK);
        assert_int_equal(id.index, one.rank);
        assert_string_equal(id.rendezvous.c_str(), "tcp://h:1");
        assert_int_equal(id.port_seed, 0);
        const Values alone{{"DTRAIN_SIZE", "1"}};
        assert_int_equal(find(one.values + alone, id), DTRAIN_OK);
        assert_int_equal(id.members(), 1);
    }
}

void two_steps_meet_apart(void **) {
    Identity one, other;
    assert_int_equal(find(srun, one), DTRAIN_OK);
    assert_int_equal(find(srun + Values{{"SLURM_STEP_ID", "1"}}, other), DTRAIN_OK);
    assert_true(one.port_seed != other.port_seed);
    assert_int_equal(find(srun + Values{{"SLURM_JOB_ID", "8"}}, other), DTRAIN_OK);
    assert_true(one.port_seed != other.port_seed);
}

struct Refused {
    Values values;
    FullName *full_name;
    const char *text;
};
const Refused refused[] = {
    {pod, in_a_service,
     "JOB_COMPLETION_INDEX=2 says that this is rank 2 (Kubernetes), but not of "},
    {pod + Values{{"DTRAIN_SIZE", "2"}}, in_a_service, "JOB_COMPLETION_INDEX=2 is not a number"},
    {pod + of_three, bare, "headless service"},
    {pod + of_three + Values{{"HOSTNAME", "digits"}}, in_a_service, "headless service"},
    {{{"SM_HOSTS", "algo-1"}}, bare, "SM_HOSTS=algo-1 is not a JSON list"},
    {{{"SM_HOSTS", "[]"}}, bare, "is not a JSON list"},
    {sagemaker + Values{{"SM_CURRENT_HOST", "algo-3"}}, bare, "SM_CURRENT_HOST=algo-3"},
    {{{"AWS_BATCH_JOB_NUM_NODES", "2"}}, bare, "AWS_BATCH_JOB_NODE_INDEX is not set"},
    {{{"AWS_BATCH_JOB_NUM_NODES", "2"}, {"AWS_BATCH_JOB_NODE_INDEX", "1"}},
     bare,
     "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS is not set"},
    {{{"PET_NNODES", "2"}}, bare, "PET_NODE_RANK is not set"},
    {trainer + Values{{"PET_NPROC_PER_NODE", "8"}}, bare, "was not started by torchrun"},
    {jax + Values{{"PROCESS_ID", "2"}}, bare, "PROCESS_ID=2 is not a number from 0 to 1"},
    {srun + Values{{"SLURM_STEP_NODELIST", ""}}, bare, "nothing says where they meet"},
};

void half_told_is_refused(void **) {
    for (const Refused &one : refused) {
        Identity id;
        assert_int_equal(find(one.values, id, one.full_name), DTRAIN_ERR_CONFIG);
        if (std::strstr(error_text(), one.text) == nullptr)
            print_error("wanted \"%s\": %s\n", one.text, error_text());
        assert_non_null(std::strstr(error_text(), one.text));
    }
}

void first_hosts(void **) {
    const std::pair<const char *, const char *> lists[] = {{"login", "login"},
                                                           {"a,b", "a"},
                                                           {"gpu[03-05,9],login", "gpu03"},
                                                           {"r[1,2]n[07-8]", "r1n07"},
                                                           {"n[4]-ib,m", "n4-ib"},
                                                           {"n[3", ""},
                                                           {"", ""}};
    for (const auto &[list, host] : lists) assert_string_equal(first_host(list).c_str(), host);
}

// A list of sources that a person reads: each says what it reads, and where its processes meet.
void sources_describe_themselves(void **) {
    for (const Source *source : sources()) {
        assert_true(std::strlen(source->name) > 0 && std::strlen(source->reads) > 0);
        assert_true(std::strlen(source->meets) > 0);
        const Getenv getenv = [](const char *) -> const char * { return nullptr; };
        assert_false(source->applies(dtrain::cluster::Variables(getenv)));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(processes_meet_without_configuration),
        cmocka_unit_test(two_steps_meet_apart),
        cmocka_unit_test(half_told_is_refused),
        cmocka_unit_test(first_hosts),
        cmocka_unit_test(sources_describe_themselves),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
