// Checkpoints of tables, and how a job starts, over the C API.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"

#include <atomic>
#include <cmath>

namespace fs = std::filesystem;
using namespace checkpoints;

namespace {

// A job of another size goes on with Adam as the first one would have.
void restarts(int servers_before, int servers_after) {
    Folder folder;
    std::vector<float> expected;
    ranks::run(2, servers_before, folder.options(), [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *tables[] = {make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADAM),
                                    make(comm, "b/ias", DTRAIN_ASYNC, DTRAIN_RULE_ADD)};
        if (rank == 0) {
            uint64_t step = 0;
            FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_checkpoint_newest(tables[0], &step));
            push(tables[0], 1);
            push(tables[1], 5);
            OK(dtrain_checkpoint_save(tables, 2, 42, nullptr, nullptr));
            FAILS(DTRAIN_ERR_STATE, dtrain_checkpoint_save(tables, 2, 42, nullptr, nullptr));
            push(tables[0], -3);
            expected = pulled(tables[0]);
        }
        barrier(comm);
        for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
    });
    ranks::run(1, servers_after, folder.options(), [&](int, dtrain_comm_t *comm) {
        dtrain_table_t *tables[] = {make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADAM),
                                    make(comm, "b/ias", DTRAIN_ASYNC, DTRAIN_RULE_ADD)};
        uint64_t step = 0;
        push(tables[0], 7);
        FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_checkpoint_restore(tables, 2, 41, nullptr, &step));
        OK(dtrain_checkpoint_restore(tables, 2, DTRAIN_CHECKPOINT_NEWEST, nullptr, &step));
        REQUIRE(step == 42);
        for (float x : pulled(tables[1])) REQUIRE(x == 5);
        push(tables[0], -3);
        const std::vector<float> got = pulled(tables[0]);
        for (uint64_t i = 0; i < length; i++) // the place in a shard may change the rounding
            REQUIRE(std::fabs(got[i] - expected[i]) <= 1e-6f * std::fabs(expected[i]));
        for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
    });
}
void on_other_servers(void **) {
    restarts(2, 3);
    restarts(3, 1);
}
void without_servers(void **) {
    restarts(2, 0);
    restarts(0, 2);
}

// A dense and a sparse table in one checkpoint.
void rows_too(void **) {
    Folder folder;
    const uint64_t keys[] = {5, UINT64_MAX, 77, 1000};
    std::vector<float> g(12, 1), expected(12), got(12);
    for (int servers : {2, 3})
        ranks::run(1, servers, folder.options(), [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *tables[] = {make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD),
                                        make_rows(comm)};
            if (servers == 2) {
                push(tables[0], 2);
                OK(dtrain_table_push_rows(tables[1], keys, 3, g.data(), nullptr, nullptr));
                OK(dtrain_checkpoint_save(tables, 2, 1, nullptr, nullptr));
            } else {
                OK(dtrain_checkpoint_restore(tables, 2, 1, nullptr, nullptr));
                for (float x : pulled(tables[0])) REQUIRE(x == 2);
            }
            OK(dtrain_table_push_rows(tables[1], keys, 4, g.data(), nullptr, nullptr));
            auto &to = servers == 2 ? expected : got;
            OK(dtrain_table_pull_rows(tables[1], keys, 4, to.data(), nullptr, nullptr));
            for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
        });
    REQUIRE(got == expected);
}

// One worker saves at its clock while the others go on as far as they can: it is that clock's
// values.
void bsp_saves_one_clock(void **) {
    Folder folder;
    constexpr int workers = 3, clocks = 6;
    ranks::run(workers, 2, folder.options(), [](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_BSP, DTRAIN_RULE_ADD);
        for (int clock = 0; clock < clocks; clock++) {
            if (rank == 1) OK(dtrain_checkpoint_save(&table, 1, uint64_t(clock), nullptr, nullptr));
            push(table, 1);
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        barrier(comm);
        if (rank == 0)
            for (int clock = clocks - 2; clock < clocks; clock++) { // two are kept
                OK(dtrain_checkpoint_restore(&table, 1, uint64_t(clock), nullptr, nullptr));
                for (float x : pulled(table)) REQUIRE(x == float(workers * clock));
            }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

void ssp_saves_where_all_meet(void **) {
    Folder folder;
    ranks::run(3, 2, folder.options(), [](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_SSP, DTRAIN_RULE_ADD);
        for (int clock = 0; clock < 4; clock++) {
            push(table, 1);
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        barrier(comm);
        if (rank == 0) OK(dtrain_checkpoint_save(&table, 1, 4, nullptr, nullptr));
        barrier(comm);
        if (rank == 1) push(table, 1); // in clock 4
        barrier(comm);
        if (rank == 0) {
            FAILS(DTRAIN_ERR_STATE, dtrain_checkpoint_save(&table, 1, 5, nullptr, nullptr));
            REQUIRE(says("dtrain_barrier"));
            OK(dtrain_checkpoint_restore(&table, 1, DTRAIN_CHECKPOINT_NEWEST, nullptr, nullptr));
            for (float x : pulled(table)) REQUIRE(x == 12);
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

// Root writes everywhere, but not where a file is in the way of a folder.
void a_disk_that_refuses(void **) {
    Folder folder;
    ranks::run(2, 1, folder.options(), [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        if (rank == 0) {
            push(table, 1);
            OK(dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr));
            const std::string part = folder.name + "/deep/step-0000000002";
            fs::create_directory(part);
            fs::create_directory(part + "/w-00000-of-00001.safetensors.tmp"); // the server's place
            FAILS(DTRAIN_ERR_IO, dtrain_checkpoint_save(&table, 1, 2, nullptr, nullptr));
            REQUIRE(says("server 0") && says("w-00000-of-00001.safetensors.tmp"));
            push(table, 1); // the server lives on
            for (float x : pulled(table)) REQUIRE(x == 2);
            uint64_t step = 0;
            OK(dtrain_checkpoint_newest(table, &step));
            REQUIRE(step == 1);
            OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
            for (float x : pulled(table)) REQUIRE(x == 1);
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

void what_is_wrong_is_named(void **) {
    ranks::run(1, 1, {}, [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        FAILS(DTRAIN_ERR_CONFIG, dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr));
        REQUIRE(says("checkpoint.directory"));
        uint64_t step = 0;
        FAILS(DTRAIN_ERR_CONFIG, dtrain_checkpoint_newest(table, &step));
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_save(&table, 0, 1, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_save(nullptr, 1, 1, nullptr, nullptr));
        dtrain_table_t *twice[] = {table, table};
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_save(twice, 2, 1, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_save(&table, 1, UINT64_MAX, nullptr, nullptr));
        FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_restored(table, &step));
        OK(dtrain_table_destroy(table));
    });
}

void saves_when_it_is_due(void **) {
    Folder folder;
    ranks::run(1, 1, folder.options(), [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        dtrain_checkpoint_params_t params;
        DTRAIN_INIT(&params);
        params.every_steps = 10;
        params.every_ns = INT64_MAX;
        for (uint64_t step = 3; step < 35; step++) {
            int32_t saved = -1;
            OK(dtrain_checkpoint_save(&table, 1, step, &params, &saved));
            REQUIRE(saved == (step == 13 || step == 23 || step == 33));
        }
        params.every_steps = 0;
        params.every_ns = 1; // over since
        int32_t saved = 0;
        OK(dtrain_checkpoint_save(&table, 1, 35, &params, &saved));
        REQUIRE(saved == 1);
        OK(dtrain_table_destroy(table));
    });
}

// As a program that may have been started before: the same code either way.
void a_table_is_made_from_the_newest(void **) {
    Folder folder;
    for (uint64_t run = 0; run < 3; run++)
        ranks::run(3, int(run), folder.options("yes"), [&](int rank, dtrain_comm_t *comm) {
            dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
            uint64_t step = 0;
            if (run == 0)
                FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_restored(table, &step));
            else
                OK(dtrain_table_restored(table, &step));
            REQUIRE(step == run * 10);
            for (float x : pulled(table)) REQUIRE(x == float(run * 3));
            barrier(comm);
            push(table, 1);
            barrier(comm);
            if (rank == 2) OK(dtrain_checkpoint_save(&table, 1, step + 10, nullptr, nullptr));
            barrier(comm);
            OK(dtrain_table_destroy(table));
        });
    fs::resize_file(folder.name + "/deep/step-0000000030/w-00000-of-00002.safetensors", 100);
    ranks::run(2, 1, folder.options("yes"), [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_CORRUPT, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(rank == 1 || says("w-00000-of-00002.safetensors"));
    });
}

// While one that was saved cannot be read, for want of memory, say, no other is saved: it would not
// be known as the newest.
void nothing_is_saved_while_another_cannot_be_read(void **) {
    Folder folder;
    const std::string manifest = folder.name + "/deep/step-0000000001/manifest.json",
                      aside = folder.name + "/aside";
    for (uint64_t run = 0; run < 2; run++)
        ranks::run(1, 0, folder.options(), [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
            uint64_t step = 0;
            if (run == 0) {
                for (uint64_t i = 1; i <= 2; i++)
                    OK(dtrain_checkpoint_save(&table, 1, i, nullptr, nullptr));
            } else {
                OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, &step));
                fs::rename(manifest, aside);
                fs::create_symlink(manifest, manifest);
                FAILS(DTRAIN_ERR_IO, dtrain_checkpoint_save(&table, 1, 3, nullptr, nullptr));
                REQUIRE(says(manifest.c_str()) && says("not saved"));
                fs::remove(manifest);
                fs::rename(aside, manifest);
                OK(dtrain_checkpoint_save(&table, 1, 3, nullptr, nullptr));
                OK(dtrain_checkpoint_restore(&table, 1, DTRAIN_CHECKPOINT_NEWEST, nullptr, &step));
                REQUIRE(step == 3);
            }
            OK(dtrain_table_destroy(table));
        });
}

// The chief initializes, the others wait for it; nobody does: they are told.
void others_wait_for_the_chief(int servers) {
    std::atomic<bool> initialized{false};
    ranks::run(3, servers, {}, [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = 20'000'000;
        if (rank == 2) {
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_table_wait_ready(table, &params, nullptr));
            REQUIRE(says("dtrain_table_set_ready"));
        }
        barrier(comm);
        if (rank == 0) {
            const std::vector<float> start(length, 4);
            OK(dtrain_table_set(table, 0, length, start.data(), nullptr, nullptr));
            initialized = true;
            OK(dtrain_table_set_ready(table, nullptr, nullptr));
        }
        OK(dtrain_table_wait_ready(table, nullptr, nullptr));
        REQUIRE(initialized);
        for (float x : pulled(table)) REQUIRE(x == 4);
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}
void waits_with_servers(void **) { others_wait_for_the_chief(2); }
void waits_without_servers(void **) { others_wait_for_the_chief(0); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(on_other_servers),
        cmocka_unit_test(without_servers),
        cmocka_unit_test(rows_too),
        cmocka_unit_test(bsp_saves_one_clock),
        cmocka_unit_test(ssp_saves_where_all_meet),
        cmocka_unit_test(a_disk_that_refuses),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(saves_when_it_is_due),
        cmocka_unit_test(a_table_is_made_from_the_newest),
        cmocka_unit_test(nothing_is_saved_while_another_cannot_be_read),
        cmocka_unit_test(waits_with_servers),
        cmocka_unit_test(waits_without_servers),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
