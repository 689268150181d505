// A worker is lost whom others wait for: what all had ended can be saved, and the table goes on
// with who is left.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"
#include "contract/processes.h"

using namespace checkpoints;

namespace {

constexpr int workers = 3, servers = 2, lost = 1;
constexpr uint64_t clocks = 3;

void serve(processes::Job &job, const ranks::Options &options, int index) {
    dtrain_context_t *context = ranks::make_context(options);
    dtrain_server_params_t params;
    DTRAIN_INIT(&params);
    params.size = workers;
    params.servers = servers;
    params.index = index;
    dtrain_server_t *server = nullptr;
    OK(dtrain_server_create(context, job.rendezvous(), &params, &server));
    (void)dtrain_server_wait(server, -1); // a worker is lost
    OK(dtrain_server_destroy(server));
    OK(dtrain_context_destroy(context));
}

dtrain_table_params_t mode_of(uint32_t consistency) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.consistency = consistency;
    return params;
}

void end_clock(dtrain_table_t *table) { OK(dtrain_table_clock(table, nullptr, nullptr)); }

// After `clocks` clocks of all, in which each has pushed 1, and one more of who is left.
void go_on(dtrain_comm_t *comm, dtrain_table_t *table, int rank, uint32_t before, uint32_t after) {
    std::vector<float> values(length);
    FAILS(DTRAIN_ERR_PEER, dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
    if (rank == 0) {
        OK(dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr));
        OK(dtrain_checkpoint_save(&table, 1, 2, nullptr, nullptr));
    }
    // A worker that does not ask all that are left cannot change anything for them.
    dtrain_comm_t *left = nullptr, *alone = nullptr;
    OK(dtrain_comm_shrink(comm, &left));
    OK(dtrain_comm_split(left, rank, 0, &alone));
    const dtrain_table_params_t mode = mode_of(after);
    FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_consistency(alone, table, &mode, nullptr));
    REQUIRE(says("dtrain_comm_shrink"));
    OK(dtrain_table_set_consistency(left, table, &mode, nullptr));
    float due = float(clocks * workers + workers - 1); // what they had pushed since counts
    for (float x : pulled(table)) REQUIRE(x == due);
    barrier(left);
    for (int i = 0; i < 3; i++) {
        push(table, 10);
        end_clock(table);
        due += 10 * (workers - 1);
        if (after == DTRAIN_ASYNC) barrier(left);
        for (float x : pulled(table)) REQUIRE(x == due);
        barrier(left);
    }
    if (rank == 0) { // as one that has never lost anybody
        OK(dtrain_checkpoint_save(&table, 1, 3, nullptr, nullptr));
        OK(dtrain_checkpoint_restore(&table, 1, 2, nullptr, nullptr));
        const float saved = float(clocks * workers + (before == DTRAIN_BSP ? 0 : workers - 1));
        for (float x : pulled(table)) REQUIRE(x == saved);
        OK(dtrain_checkpoint_restore(&table, 1, 3, nullptr, nullptr));
        for (float x : pulled(table)) REQUIRE(x == due);
    }
    barrier(left);
    OK(dtrain_comm_destroy(alone));
    OK(dtrain_comm_destroy(left));
}

void train(processes::Job &job, const ranks::Options &options, int rank, uint32_t before,
           uint32_t after) {
    dtrain_context_t *context = ranks::make_context(options);
    dtrain_comm_t *comm = processes::join(job, context, rank, workers, servers);
    dtrain_table_t *table = make(comm, "w", before, DTRAIN_RULE_ADD);
    for (uint64_t clock = 0; clock < clocks; clock++) {
        push(table, 1);
        end_clock(table);
    }
    for (float x : pulled(table)) REQUIRE(x == float(clocks * workers));
    barrier(comm);
    job.seen(rank).rounds = 1;
    while (rank == lost) processes::nap(); // until it is killed
    push(table, 1);
    end_clock(table);
    job.seen(rank).rounds = 2;
    go_on(comm, table, rank, before, after);
    OK(dtrain_table_destroy(table));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

void goes_on(uint32_t before, uint32_t after) {
    Folder folder;
    ranks::Options options = folder.options();
    for (auto &[key, value] : options)
        if (key == "checkpoint.keep") value = "0";
    processes::Job job;
    job.start(workers + servers, [&](int process) {
        if (process >= workers) return serve(job, options, process - workers);
        train(job, options, process, before, after);
    });
    for (int rank : {0, 2})
        job.wait_for(rank, [](const processes::Seen &seen) { return seen.rounds >= 2; });
    job.kill_now(lost);
    job.expect_good_ends();
}

void to_async(void **) {
    goes_on(DTRAIN_BSP, DTRAIN_ASYNC);
    goes_on(DTRAIN_SSP, DTRAIN_ASYNC);
}
void in_its_own_mode(void **) {
    goes_on(DTRAIN_BSP, DTRAIN_BSP);
    goes_on(DTRAIN_SSP, DTRAIN_SSP);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(to_async),
        cmocka_unit_test(in_its_own_mode),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
