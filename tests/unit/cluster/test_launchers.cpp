// A process that is one of several joins them or is refused, whatever has started it.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/environment/environment.h"
#include "cluster/environment/launchers.h"

#include <cstring>
#include <map>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

using Values = std::map<std::string, std::string>;

Getenv from(const Values &values) {
    return [&values](const char *name) -> const char * {
        auto at = values.find(name);
        return at == values.end() ? nullptr : at->second.c_str();
    };
}

Status find(const Values &values, Identity &out, const IdentityRequest &request = {}) {
    return find_identity(request, from(values), out);
}

Values operator+(Values a, const Values &b) {
    for (const auto &[name, value] : b) a.insert_or_assign(name, value);
    return a;
}

const Values meeting{{"DTRAIN_RENDEZVOUS", "tcp://h:1"}};
// srun -n 2, and what a batch script or the shell of an allocation of four tasks has.
const Values srun{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "1"},
                  {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}};
const Values batch{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
const Values torch_alone{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
const Values open_mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};

struct Several {
    const char *what;
    Values values;
    int32_t rank, size;
    const char *evidence; // in the refusal without a rendezvous
};
const Several several[] = {
    {"Open MPI", open_mpi + Values{{"PMIX_RANK", "1"}}, 1, 2,
     "OMPI_COMM_WORLD_SIZE=2 says that this is rank 1 of 2 (Open MPI)"},
    {"Open MPI in a Slurm step of daemons",
     {{"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", "1"},
      {"SLURM_NTASKS", "2"}},
     3,
     4,
     "OMPI_COMM_WORLD_SIZE=4"},
    {"MVAPICH",
     {{"MV2_COMM_WORLD_RANK", "2"}, {"MV2_COMM_WORLD_SIZE", "3"}},
     2,
     3,
     "MV2_COMM_WORLD_SIZE=3 says that this is rank 2 of 3"},
    {"hydra",
     {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
     0,
     2,
     "PMI_SIZE=2 says that this is rank 0 of 2 (PMI)"},
    {"srun", srun, 1, 2, "SLURM_STEP_NUM_TASKS=2 says that this is rank 1 of 2 (Slurm)"},
    {"srun of a Slurm without the step's own number",
     {{"SLURM_STEP_ID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}},
     0,
     2,
     "SLURM_NTASKS=2 says that this is rank 0 of 2 (Slurm)"},
    {"srun --mpi=pmix", srun + Values{{"PMIX_RANK", "1"}}, 1, 2, "SLURM_STEP_NUM_TASKS=2"},
    {"jsrun",
     {{"JSM_NAMESPACE_RANK", "5"}, {"JSM_NAMESPACE_SIZE", "6"}},
     5,
     6,
     "JSM_NAMESPACE_SIZE=6"},
    {"Flux", {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}}, 1, 2, "FLUX_JOB_SIZE=2"},
    {"Horovod", {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}}, 1, 2, "HOROVOD_SIZE=2"},
    {"PMIx, its size given",
     {{"PMIX_RANK", "1"}, {"DTRAIN_SIZE", "2"}},
     1,
     2,
     "PMIX_RANK=1 says that this is rank 1"},
    {"two torchruns of one process each, under mpirun", open_mpi + torch_alone, 1, 2,
     "OMPI_COMM_WORLD_SIZE=2"},
    {"an empty TF_CONFIG under mpirun", open_mpi + Values{{"TF_CONFIG", "{}"}}, 1, 2,
     "OMPI_COMM_WORLD_SIZE=2"},
    {"mpirun -np 1 in each of two tasks",
     srun + Values{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, 1, 2,
     "SLURM_STEP_NUM_TASKS=2"},
};

void several_join_or_are_refused(void **) {
    for (const Several &one : several) {
        Identity id;
        Status s = find(one.values, id);
        if (s != DTRAIN_ERR_CONFIG || std::strstr(error_text(), one.evidence) == nullptr)
            print_error("%s: %s: %s\n", one.what, status_name(s), error_text());
        assert_int_equal(s, DTRAIN_ERR_CONFIG);
        assert_non_null(std::strstr(error_text(), one.evidence));
        assert_non_null(std::strstr(error_text(), "DTRAIN_RENDEZVOUS"));
        assert_non_null(std::strstr(error_text(), "dtrain-run"));

        s = find(one.values + meeting, id);
        if (s != DTRAIN_OK) print_error("%s: %s\n", one.what, error_text());
        assert_int_equal(s, DTRAIN_OK);
        assert_int_equal(id.role, Role::worker);
        assert_int_equal(id.index, one.rank);
        assert_int_equal(id.workers, one.size);
        assert_string_equal(id.rendezvous.c_str(), "tcp://h:1");
        // The program may say where, too; what it says of the number goes before all.
        assert_int_equal(find(one.values, id, {"file:///f", Role::worker, 0, 0, 0}), DTRAIN_OK);
        assert_int_equal(id.workers, one.size);
        assert_int_equal(find(one.values, id, {"", Role::worker, 1, 0, 0}), DTRAIN_OK);
        assert_int_equal(id.members(), 1);
        assert_int_equal(find(one.values + Values{{"DTRAIN_SIZE", "1"}}, id), DTRAIN_OK);
        assert_int_equal(id.members(), 1);
    }
}

const Values alone[] = {
    batch,
    batch + Values{{"SLURM_STEP_ID", "4294967291"}}, // the batch script's own step
    batch + Values{{"SLURM_STEP_ID", "4294967290"}}, // salloc's interactive step
    {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}},  // salloc's shell on the login node
    {{"SLURM_STEP_ID", "0"},
     {"SLURM_PROCID", "0"},
     {"SLURM_STEP_NUM_TASKS", "1"},
     {"SLURM_NTASKS", "4"}}, // srun -n 1 --pty in an allocation of four
    {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}},
    {{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
    torch_alone,
    {{"DTRAIN_SIZE", "1"}},
};

void one_process_is_alone(void **) {
    for (const Values &values : alone) {
        Identity id;
        assert_int_equal(find(values, id), DTRAIN_OK);
        assert_int_equal(id.members(), 1);
    }
}

struct Refused {
    Values values;
    const char *text;
};
const Refused refused[] = {
    {{{"OMPI_COMM_WORLD_RANK", "1"}}, "Open MPI's environment: OMPI_COMM_WORLD_SIZE is not set"},
    {{{"PMI_SIZE", "2"}}, "PMI_RANK is not set"},
    {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}, "PMI_RANK=2 is not a number from 0 to 1"},
    {{{"PMIX_RANK", "0"}}, "PMIX_RANK=0 says that this is rank 0 (PMIx), but not of how many"},
    {{{"PMIX_RANK", "3"}, {"DTRAIN_SIZE", "3"}}, "PMIX_RANK=3 is not a number from 0 to 2"},
    {open_mpi + meeting + Values{{"DTRAIN_SIZE", "4"}}, "DTRAIN_SIZE=4"},
    {open_mpi + Values{{"MASTER_ADDR", "h"}}, "MASTER_PORT is not set"},
};

void half_told_is_refused(void **) {
    for (const Refused &one : refused) {
        Identity id;
        assert_int_equal(find(one.values, id), DTRAIN_ERR_CONFIG);
        if (std::strstr(error_text(), one.text) == nullptr)
            print_error("wanted \"%s\": %s\n", one.text, error_text());
        assert_non_null(std::strstr(error_text(), one.text));
    }
}

void torchs_meeting_place_serves_launchers(void **) {
    Identity id;
    const Values values = srun + Values{{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
    assert_int_equal(find(values, id), DTRAIN_OK);
    assert_int_equal(id.index, 1);
    assert_string_equal(id.rendezvous.c_str(), "tcp://n0:32577");
    assert_int_equal(id.port_seed, 29500);
}

// mpirun -np 1 ./train : -np 1 dtrain-server
void last_processes_serve(void **) {
    Identity id;
    const Values values = open_mpi + meeting + Values{{"DTRAIN_SERVERS", "1"}};
    assert_int_equal(find(values, id, {"", Role::server, 0, 0, 0}), DTRAIN_OK);
    assert_int_equal(id.index, 0);
    assert_int_equal(id.workers, 1);
    assert_int_equal(id.servers, 1);
    assert_int_equal(find(values, id), DTRAIN_ERR_STATE); // it is none of the workers
}

// A program that names a place means to meet others there.
void a_place_without_a_number_is_refused(void **) {
    Identity id;
    assert_int_equal(find({}, id, {"file:///f", Role::worker, 0, 0, 0}), DTRAIN_ERR_CONFIG);
    assert_non_null(std::strstr(error_text(), "file:///f"));
    assert_non_null(std::strstr(error_text(), "DTRAIN_SIZE"));
    assert_int_equal(find(torch_alone, id, {"file:///f", Role::worker, 0, 0, 0}), DTRAIN_OK);
}

void local_ranks(void **) {
    const std::pair<const char *, const char *> names[] = {
        {"DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE"},
        {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
        {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};
    for (auto [rank, size] : names) {
        const Values values{{rank, "2"}, {size, "3"}};
        const LocalRank found = find_local_rank(from(values));
        assert_int_equal(found.rank, 2);
        assert_int_equal(found.size, 3);
    }
    const Values half{{"LOCAL_RANK", "2"}};
    assert_int_equal(find_local_rank(from(half)).size, 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(several_join_or_are_refused),
        cmocka_unit_test(one_process_is_alone),
        cmocka_unit_test(half_told_is_refused),
        cmocka_unit_test(torchs_meeting_place_serves_launchers),
        cmocka_unit_test(last_processes_serve),
        cmocka_unit_test(a_place_without_a_number_is_refused),
        cmocka_unit_test(local_ranks),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
