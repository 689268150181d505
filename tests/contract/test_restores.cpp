// Restores are all or nothing: over all servers and all tables of a call, whatever one of them
// finds, lacks, or loses.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"
#include "contract/processes.h"

#include <cstdint>
#include <fstream>

using namespace checkpoints;

namespace {

constexpr uint64_t keys[] = {5, UINT64_MAX, 77, 1000};

struct Tables {
    explicit Tables(dtrain_comm_t *comm)
        : all{make_rows(comm), make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADAM)} {}
    ~Tables() {
        for (dtrain_table_t *table : all) OK(dtrain_table_destroy(table));
    }
    void push_both(float g) {
        const std::vector<float> rows(12, g);
        OK(dtrain_table_push_rows(all[0], keys, 4, rows.data(), nullptr, nullptr));
        push(all[1], g);
    }
    void save() { OK(dtrain_checkpoint_save(all, 2, 1, nullptr, nullptr)); }
    dtrain_status_t restore() { return dtrain_checkpoint_restore(all, 2, 1, nullptr, nullptr); }
    std::vector<float> values() const {
        std::vector<float> both = pulled(all[1]), rows(12);
        OK(dtrain_table_pull_rows(all[0], keys, 4, rows.data(), nullptr, nullptr));
        both.insert(both.end(), rows.begin(), rows.end());
        return both;
    }
    dtrain_table_t *all[2];
};

// Changes the last byte of a part, or changes it back.
void flip(const Folder &folder, const char *table, int part, int parts) {
    char path[128];
    std::snprintf(path, sizeof path, "%s/deep/step-0000000001/%s-%05d-of-%05d.safetensors",
                  folder.name.c_str(), table, part, parts);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char was = char(file.get());
    file.seekp(-1, std::ios::end);
    file.put(char(was ^ 1));
    REQUIRE(file.good());
}

// The index of the part is fine, so that the servers are asked; one or all of them find it.
void a_part_is_damaged(void **) {
    for (int servers : {2, 3})
        for (const char *damaged : {"w", "rows"}) {
            Folder folder;
            ranks::run(1, servers, folder.options(), [&](int, dtrain_comm_t *comm) {
                Tables tables(comm);
                tables.push_both(1);
                tables.save();
                const std::vector<float> saved = tables.values();
                tables.push_both(2);
                const std::vector<float> before = tables.values();
                flip(folder, damaged, servers - 1, servers);
                FAILS(DTRAIN_ERR_CORRUPT, tables.restore());
                REQUIRE(says("server ") && says(damaged));
                REQUIRE(tables.values() == before);
                flip(folder, damaged, servers - 1, servers);
                OK(tables.restore());
                REQUIRE(tables.values() == saved);
                tables.push_both(2); // with the state of then
                REQUIRE(tables.values() == before);
            });
        }
}

// A table that is restored when it is made: every worker hears what is wrong with the checkpoint.
void a_damaged_part_is_told_to_all_who_make_the_table(void **) {
    Folder folder;
    ranks::run(2, 2, folder.options(), [](int rank, dtrain_comm_t *comm) {
        Tables tables(comm);
        if (rank == 0) tables.save();
        barrier(comm);
    });
    flip(folder, "w", 1, 2);
    ranks::run(2, 2, folder.options("yes"), [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        params.rule = DTRAIN_RULE_ADAM;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_CORRUPT, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(says("cannot be restored") && says("server 1") && says("safetensors"));
        REQUIRE(rank == 0 || says("rank 0 cannot take part"));
        dtrain_table_t *rows = make_rows(comm);
        OK(dtrain_table_destroy(rows));
    });
}

// Server 1 has three quarters of the table, and no room to read them beside it.
void a_server_has_no_memory(void **) {
    Folder folder;
    const uint32_t weights[] = {1, 3, 1};
    auto make_uneven = [&](dtrain_comm_t *comm, uint32_t servers) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        params.weights = weights;
        params.weight_count = servers;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "uneven", &params, &table));
        return table;
    };
    for (uint32_t servers : {2, 3}) {
        ranks::Options options = folder.options();
        ranks::run(1, int(servers), options, [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = make_uneven(comm, servers);
            push(table, 1);
            OK(dtrain_checkpoint_save(&table, 1, servers, nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
        options.emplace_back("ps.memory", "44000");
        ranks::run(1, int(servers), options, [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = make_uneven(comm, servers);
            push(table, 7);
            for (int repetition = 0; repetition < 5; repetition++) {
                FAILS(DTRAIN_ERR_LIMIT,
                      dtrain_checkpoint_restore(&table, 1, servers, nullptr, nullptr));
                REQUIRE(says("server 1") && says("memory limit"));
            }
            for (float x : pulled(table)) REQUIRE(x == 7);
            OK(dtrain_table_destroy(table));
        });
    }
}

void two_workers_at_the_same_time(void **) {
    Folder folder;
    ranks::run(3, 2, folder.options(), [](int rank, dtrain_comm_t *comm) {
        Tables tables(comm);
        if (rank == 0) {
            tables.push_both(1);
            tables.save();
            tables.push_both(2);
        }
        barrier(comm);
        for (int round = 0; round < 20; round++) {
            const dtrain_status_t s = tables.restore();
            REQUIRE(s == DTRAIN_OK || (s == DTRAIN_ERR_BUSY && says("is restoring")));
        }
        barrier(comm);
        OK(rank == 0 ? tables.restore() : DTRAIN_OK); // nothing of theirs is left
        barrier(comm);
    });
}

void serve(processes::Job &job, const ranks::Options &options) {
    dtrain_context_t *context = ranks::make_context(options);
    dtrain_server_params_t params;
    DTRAIN_INIT(&params);
    params.size = 2;
    params.servers = 1;
    dtrain_server_t *server = nullptr;
    OK(dtrain_server_create(context, job.rendezvous(), &params, &server));
    (void)dtrain_server_wait(server, -1); // a worker is lost
    OK(dtrain_server_destroy(server));
    OK(dtrain_context_destroy(context));
}

// Restores until it is killed, in whichever phase.
[[noreturn]] void restore_for_ever(processes::Job &job, Tables &tables) {
    tables.push_both(1);
    tables.save();
    for (;;) {
        OK(tables.restore());
        job.seen(0).rounds++;
    }
}

// There is room to read the tables once: what a dead worker has had read must be gone.
void restore_after_it(processes::Job &job, Tables &tables) {
    while (job.seen(0).failed_ns == 0) processes::nap(); // it is dead
    dtrain_status_t s;
    while ((s = tables.restore()) == DTRAIN_ERR_BUSY) processes::nap(); // the server has not heard
    OK(s);
    for (float x : pulled(tables.all[1])) REQUIRE(x < 0);
    OK(tables.restore());
}

void its_worker_is_killed(void **) {
    for (int repetition = 0; repetition < 10; repetition++) {
        Folder folder;
        ranks::Options options = folder.options();
        // Both with their state take 160,320 bytes, and what is read as many; rows have an index.
        options.emplace_back("ps.memory", "370000");
        processes::Job job;
        job.start(3, [&](int process) {
            if (process == 2) return serve(job, options);
            dtrain_context_t *context = ranks::make_context(options);
            dtrain_comm_t *comm = processes::join(job, context, process, 2, 1);
            {
                Tables tables(comm);
                if (process == 0) restore_for_ever(job, tables);
                restore_after_it(job, tables);
            }
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        });
        job.wait_for_rounds(1, 1 + repetition % 3);
        for (int i = 0; i < 37 * repetition; i++) sched_yield();
        job.kill_now(0);
        job.seen(0).failed_ns = 1;
        job.expect_good_ends();
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_damaged),
        cmocka_unit_test(a_damaged_part_is_told_to_all_who_make_the_table),
        cmocka_unit_test(a_server_has_no_memory),
        cmocka_unit_test(two_workers_at_the_same_time),
        cmocka_unit_test(its_worker_is_killed),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
