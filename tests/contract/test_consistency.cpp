// The modes of tables, end to end: what workers see goes through the checker of histories.
// SPDX-License-Identifier: Apache-2.0
#include "contract/recorder.h"

#include <cmath>
#include <random>

namespace {

const ranks::Options tcp = {{"transports", "tcp"}}, shm = {{"transports", "shm"}};

void pause(std::mt19937_64 &random, uint64_t most_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (most_us + 1)));
}

// Ranks of different speed; what they did and saw fits the mode.
void run_recorded(int workers, int servers, const ranks::Options &options, Definition mode) {
    const uint32_t parts = uint32_t(servers > 0 ? servers : workers);
    const uint64_t length = 48 * parts;
    Recorder recorder(uint32_t(workers), parts, length);
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        const dtrain_table_params_t params = params_of(mode, length);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        std::mt19937_64 random(uint64_t(rank) + 1);
        for (uint64_t clock = 0; clock < 12; ++clock) {
            OK(recorder.pull(rank, table, clock));
            for (uint64_t i = 1 + random() % 2; i > 0; --i) OK(recorder.push(rank, table, clock));
            pause(random, 300 * uint64_t(rank));
            OK(recorder.clock(rank, table, clock));
        }
        recorder.leaves();
        OK(dtrain_table_destroy(table));
    });
    const std::string error = recorder.check(mode);
    if (!error.empty())
        fail_msg("%d workers, %d servers, mode %u(%u, %u): %s", workers, servers, mode.consistency,
                 mode.staleness, mode.quorum, error.c_str());
}

void histories_fit_their_mode(void **) {
    for (const ranks::Options &options : {tcp, shm})
        for (int workers = 1; workers <= 3; ++workers)
            for (int servers : {0, 1, 2}) {
                for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP})
                    run_recorded(workers, servers, options, {consistency, 0, 0});
                for (int quorum = 1; quorum <= workers; ++quorum)
                    run_recorded(workers, servers, options, {DTRAIN_QUORUM, 0, uint32_t(quorum)});
            }
}

dtrain_table_stats_t stats_of(dtrain_table_t *table) {
    dtrain_table_stats_t stats;
    DTRAIN_INIT(&stats);
    OK(dtrain_stats_table(table, -1, &stats));
    return stats;
}

// Two of three make ten steps; the third comes late, is told so, and goes on with them.
void late_pushes_are_dropped_and_counted(void **) {
    for (bool sparse : {false, true})
        ranks::run(3, 1, {}, [&](int rank, dtrain_comm_t *comm) {
            dtrain_table_params_t params = params_of({DTRAIN_QUORUM, 0, 2}, 1, DTRAIN_F32);
            params.aggregate = DTRAIN_AVG;
            if (sparse) {
                params.length = 0;
                params.dim = 1;
            }
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "t", &params, &table));
            const uint64_t key = 7;
            auto step = [&](float value) {
                OK(sparse ? dtrain_table_push_rows(table, &key, 1, &value, nullptr, nullptr)
                          : dtrain_table_push(table, 0, 1, &value, nullptr, nullptr));
                OK(dtrain_table_clock(table, nullptr, nullptr));
            };
            auto value = [&] {
                float w = 0;
                OK(sparse ? dtrain_table_pull_rows(table, &key, 1, &w, nullptr, nullptr)
                          : dtrain_table_pull(table, 0, 1, &w, nullptr, nullptr));
                return w;
            };
            for (int i = 0; rank > 0 && i < 10; ++i) {
                REQUIRE(value() == 3 * float(i));
                step(float(2 * rank)); // the mean of 2 and 4
            }
            if (rank > 0) REQUIRE(value() == 30);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            if (rank == 0) {
                step(100);
                REQUIRE(stats_of(table).stale == 2); // the push and the clock
                REQUIRE(stats_of(table).refused == 0);
            }
            OK(dtrain_barrier(comm, nullptr, nullptr));
            if (rank < 2) step(1); // one step, not eleven
            if (rank < 2) REQUIRE(value() == 31);
            REQUIRE(stats_of(table).stale == (rank == 0 ? 2 : 0));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
}

// Sums that depend on the order come out the same, run for run, and with any number of servers.
std::vector<float> sum_up(int workers, int servers, const ranks::Options &options, uint32_t mode,
                          uint32_t reproducible) {
    constexpr uint64_t length = 5000;
    std::vector<float> result(length);
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        const uint32_t quorum = mode == DTRAIN_QUORUM ? uint32_t(workers) : 0;
        dtrain_table_params_t params = params_of({mode, 0, quorum}, length, DTRAIN_F32);
        params.reproducible = reproducible;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        std::mt19937_64 random(uint64_t(rank) + 1);
        constexpr int pushes = 4;
        std::vector<float> g[pushes];
        for (int clock = 0; clock < 5; ++clock) {
            dtrain_request_t *requests[pushes];
            for (int p = 0; p < pushes; ++p) {
                g[p].resize(length);
                for (float &x : g[p]) x = std::ldexp(1.0f + float(random() % 8) / 8, random() % 30);
                OK(dtrain_table_push(table, 0, length, g[p].data(), nullptr, &requests[p]));
            }
            for (dtrain_request_t *request : requests) {
                OK(dtrain_request_wait(request, -1));
                dtrain_request_free(request);
            }
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        if (rank == 0) OK(dtrain_table_pull(table, 0, length, result.data(), nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
    return result;
}

void reproducible_sums_have_the_same_bits(void **) {
    const std::vector<float> first = sum_up(3, 1, tcp, DTRAIN_BSP, 1);
    for (int round = 0; round < 4; ++round)
        for (uint32_t mode : {DTRAIN_BSP, DTRAIN_QUORUM}) {
            assert_true(sum_up(3, 1, tcp, mode, 1) == first);
            assert_true(sum_up(3, 2, shm, mode, 1) == first);
            assert_true(sum_up(3, 0, shm, mode, 1) == first);
        }
    bool different = false; // else this test could not fail
    for (int round = 0; round < 50 && !different; ++round)
        different = sum_up(3, 1, tcp, DTRAIN_BSP, 0) != first;
    assert_true(different);
}

void parameters_that_do_not_fit_are_named(void **) {
    ranks::run(2, 0, {}, [&](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = nullptr;
        auto refused = [&](Definition mode, uint32_t reproducible, const char *field) {
            dtrain_table_params_t params = params_of(mode, 8, DTRAIN_F32);
            params.reproducible = reproducible;
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "t", &params, &table));
            REQUIRE(ranks::last_error().find(field) != std::string::npos);
        };
        refused({DTRAIN_QUORUM, 0, 0}, 0, "quorum");
        refused({DTRAIN_QUORUM, 0, 3}, 0, "quorum");
        refused({DTRAIN_BSP, 0, 1}, 0, "quorum");
        refused({DTRAIN_QUORUM, 0, 1}, 1, "reproducible");
        refused({DTRAIN_ASYNC, 0, 0}, 1, "reproducible");
        refused({DTRAIN_BSP, 0, 0}, 2, "reproducible");
        refused({5, 0, 0}, 0, "consistency");
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(histories_fit_their_mode),
        cmocka_unit_test(late_pushes_are_dropped_and_counted),
        cmocka_unit_test(reproducible_sums_have_the_same_bits),
        cmocka_unit_test(parameters_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
