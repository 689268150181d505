// No checkpoint is lost or mistaken for another: which is the newest, whose it is, what may remove
// it, and what is noticed when it is damaged.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"

#include <fstream>
#include <random>

namespace fs = std::filesystem;
using namespace checkpoints;

namespace {

using Tables = std::vector<dtrain_table_t *>;

dtrain_status_t save(const Tables &tables, uint64_t step) {
    return dtrain_checkpoint_save(tables.data(), uint32_t(tables.size()), step, nullptr, nullptr);
}

// The step, or a failure.
int64_t restore(const Tables &tables, uint64_t step = DTRAIN_CHECKPOINT_NEWEST) {
    uint64_t restored = 0;
    const dtrain_status_t s =
        dtrain_checkpoint_restore(tables.data(), uint32_t(tables.size()), step, nullptr, &restored);
    return s == DTRAIN_OK ? int64_t(restored) : s;
}

int64_t newest(dtrain_table_t *table) {
    uint64_t step = 0;
    const dtrain_status_t s = dtrain_checkpoint_newest(table, &step);
    return s == DTRAIN_OK ? int64_t(step) : s;
}

dtrain_table_t *make_plain(dtrain_comm_t *comm, const char *name) {
    return make(comm, name, DTRAIN_ASYNC, DTRAIN_RULE_ADD);
}

void destroy(const Tables &tables) {
    for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
}

// Tables that are saved at steps of their own, more often than is kept.
void each_table_has_a_newest(void **) {
    Folder folder; // keeps two
    ranks::run(1, 1, folder.options(), [](int, dtrain_comm_t *comm) {
        dtrain_table_t *emb = make_plain(comm, "emb"), *dense = make_plain(comm, "dense");
        push(emb, 3);
        OK(save({emb}, 1000));
        for (uint64_t step = 1100; step <= 1600; step += 100) OK(save({dense}, step));
        REQUIRE(newest(emb) == 1000 && newest(dense) == 1600);
        FAILS(DTRAIN_ERR_STATE, save({dense}, 1550));
        REQUIRE(says("not beyond step 1600"));
        destroy({emb, dense});
    });
    ranks::run(2, 1, folder.options("yes"), [](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *emb = make_plain(comm, "emb"), *dense = make_plain(comm, "dense");
        uint64_t step = 0;
        OK(dtrain_table_restored(emb, &step));
        REQUIRE(step == 1000);
        OK(dtrain_table_restored(dense, &step));
        REQUIRE(step == 1600);
        for (float x : pulled(emb)) REQUIRE(x == 3);
        barrier(comm);
        if (rank == 0) { // both are not in one
            REQUIRE(restore({emb}) == 1000 && restore({dense}) == 1600);
            REQUIRE(restore({emb, dense}) == DTRAIN_ERR_NOT_FOUND);
        }
        barrier(comm);
        if (rank == 1) { // any worker goes on with what was restored
            FAILS(DTRAIN_ERR_STATE, save({dense}, 1600));
            OK(save({emb, dense}, 1700));
        }
        barrier(comm);
        if (rank == 0) REQUIRE(restore({emb, dense}) == 1700);
        barrier(comm);
        destroy({emb, dense});
    });
}

void after_a_roll_back(void **) {
    Folder folder;
    ranks::run(1, 1, folder.options(), [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make_plain(comm, "w");
        for (uint64_t step : {10, 20}) {
            push(table, 1);
            OK(save({table}, step));
        }
        REQUIRE(restore({table}, 10) == 10);
        push(table, 100);
        OK(save({table}, 15));
        REQUIRE(newest(table) == 15);
        destroy({table});
    });
    ranks::run(1, 2, folder.options("yes"), [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make_plain(comm, "w");
        for (float x : pulled(table)) REQUIRE(x == 101);
        push(table, 100);
        OK(save({table}, 20)); // in place of the one that was left behind
        REQUIRE(restore({table}) == 20);
        for (float x : pulled(table)) REQUIRE(x == 201);
        REQUIRE(restore({table}, 15) == 15);
        destroy({table});
    });
}

void two_jobs_in_one_folder(void **) {
    Folder folder;
    const auto train = [&](uint64_t first, float g) {
        ranks::run(1, 1, folder.options(), [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = make_plain(comm, "w");
            for (uint64_t step = first; step < first + 40; step += 10) {
                push(table, g);
                OK(save({table}, step));
            }
            REQUIRE(newest(table) == int64_t(first + 30));
            destroy({table});
        });
    };
    train(1000, 1);
    train(5, 2); // starts anew: below the other's steps
    ranks::run(1, 1, folder.options(), [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make_plain(comm, "w");
        REQUIRE(newest(table) == DTRAIN_ERR_STATE && restore({table}) == DTRAIN_ERR_STATE);
        REQUIRE(says("name the step"));
        FAILS(DTRAIN_ERR_STATE, save({table}, 1030));
        REQUIRE(says("belongs to another job"));
        for (uint64_t step : {25, 35, 1020, 1030}) REQUIRE(restore({table}, step) == int64_t(step));
        for (float x : pulled(table)) REQUIRE(x == 4);
        REQUIRE(newest(table) == 1030); // whose lineage it goes on with
        OK(save({table}, 1040));
        REQUIRE(restore({table}, 35) == 35);
        for (float x : pulled(table)) REQUIRE(x == 8);
        destroy({table});
    });
    ranks::Options options = folder.options("yes");
    ranks::run(1, 1, options, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_STATE, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(says("were saved by unrelated jobs"));
    });
}

// The servers' folder is not that of the worker.
void a_folder_that_is_not_shared(void **) {
    Folder here, there;
    const auto options_of = [&](int rank) { return rank == 0 ? here.options() : there.options(); };
    ranks::run_each(1, 1, options_of, [&](int, dtrain_context_t *, dtrain_comm_t *comm) {
        dtrain_table_t *table = make_plain(comm, "w");
        push(table, 1);
        FAILS(DTRAIN_ERR_CONFIG, save({table}, 1));
        REQUIRE(says("server 0") && says("does not see") && says("one shared folder"));
        REQUIRE(newest(table) == DTRAIN_ERR_NOT_FOUND);
        destroy({table});
    });
}

// Every bit is in one of the checksums: a sample of them, seeded. (All of a small one:
// unit_ps_test_checkpoint and test_row_file.)
void damage_is_found(void **) {
    Folder folder;
    ranks::run(1, 2, folder.options(), [&](int, dtrain_comm_t *comm) {
        dtrain_table_t *dense = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADAM),
                       *rows = make_rows(comm);
        const uint64_t keys[] = {1, 2, 3, 4};
        const std::vector<float> g(12, 1);
        push(dense, 1);
        OK(dtrain_table_push_rows(rows, keys, 4, g.data(), nullptr, nullptr));
        OK(save({dense, rows}, 7));
        std::mt19937_64 random(7);
        uint64_t files = 0;
        for (const auto &entry : fs::directory_iterator(folder.name + "/deep/step-0000000007")) {
            const std::string path = entry.path(), name = entry.path().filename();
            const uint64_t size = fs::file_size(path);
            files += size > 0;
            for (int i = 0; i < 40 && size > 0; i++) {
                // Half of them in what the file begins with.
                const uint64_t at = random() % (i % 2 == 0 ? std::min<uint64_t>(size, 600) : size);
                const auto flip = [&, bit = char(1 << random() % 8)] {
                    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                    file.seekg(int64_t(at));
                    const char was = char(file.get());
                    file.seekp(int64_t(at));
                    file.put(char(was ^ bit));
                    REQUIRE(file.good());
                };
                flip();
                const int64_t status = restore({dense, rows}, 7);
                REQUIRE(status == DTRAIN_ERR_CORRUPT || status == DTRAIN_ERR_MISMATCH);
                REQUIRE(says(name.c_str()));
                flip();
            }
        }
        REQUIRE(files == 5);
        REQUIRE(restore({dense, rows}) == 7);
        destroy({dense, rows});
    });
}

// Each of these would change values without a word.
void what_a_table_was_made_with(void **) {
    Folder folder;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = 3;
    params.rule = DTRAIN_RULE_MOMENTUM;
    params.distribution = DTRAIN_INITIAL_UNIFORM;
    params.spread = 0.5;
    params.seed = 7;
    const auto with = [&](const dtrain_table_params_t &given, auto &&use) {
        ranks::run(1, 1, folder.options(), [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &given, &table));
            use(table);
            OK(dtrain_table_destroy(table));
        });
    };
    with(params, [](dtrain_table_t *table) { OK(save({table}, 1)); });
    const auto refused = [&](auto &&change, const char *text) {
        dtrain_table_params_t given = params;
        change(given);
        with(given, [&](dtrain_table_t *table) {
            REQUIRE(restore({table}) == DTRAIN_ERR_MISMATCH && says(text));
        });
    };
    refused([](auto &p) { p.seed = 8; }, "seed 7 and has 8 now");
    refused([](auto &p) { p.spread = 0.25; }, "spread 0.5 and has 0.25 now");
    refused([](auto &p) { p.initial = 1; }, "initial 0 and has 1 now");
    refused([](auto &p) { p.distribution = DTRAIN_INITIAL_NORMAL; }, "distribution ");
    refused([](auto &p) { p.momentum = 0.5; }, "momentum 0.9 and has 0.5 now");
    dtrain_table_params_t given = params;
    given.learning_rate = 3;
    given.weight_decay = 0.1;
    with(given, [](dtrain_table_t *table) { REQUIRE(restore({table}) == 1); });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_table_has_a_newest), cmocka_unit_test(after_a_roll_back),
        cmocka_unit_test(two_jobs_in_one_folder),  cmocka_unit_test(a_folder_that_is_not_shared),
        cmocka_unit_test(damage_is_found),         cmocka_unit_test(what_a_table_was_made_with),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
