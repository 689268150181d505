// The limit of what a worker may make a server hold.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <atomic>

namespace {

constexpr uint32_t dim = 16 << 10; // 64 KiB in a row
constexpr size_t pulls = 32;

// A worker that asks for more than it takes is told so; what fits comes, and the other worker does
// not notice.
void one_worker_is_over_its_limit(void **) {
    const ranks::Options options = {{"ps.peer_memory", "1M"},
                                    {"progress", "manual"}, // so that nothing is taken unasked
                                    {"heartbeat.timeout", "60s"},
                                    {"ps.retry", "60s"}};
    std::atomic<bool> posted = false, served = false;
    ranks::run(2, 1, options, [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.dim = dim;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "rows", &params, &table));
        const uint64_t key = 7;
        std::vector<float> rows(pulls * dim, 1);
        if (rank == 1) {
            while (!posted) std::this_thread::yield();
            for (int i = 0; i < 50; i++) {
                OK(dtrain_table_push_rows(table, &key, 1, rows.data(), nullptr, nullptr));
                OK(dtrain_table_pull_rows(table, &key, 1, &rows[dim], nullptr, nullptr));
                REQUIRE(rows[dim] == float(i + 1));
            }
            served = true;
        } else {
            dtrain_request_t *requests[pulls];
            for (size_t i = 0; i < pulls; i++)
                OK(dtrain_table_pull_rows(table, &key, 1, &rows[i * dim], nullptr, &requests[i]));
            posted = true;
            while (!served) std::this_thread::yield();
            size_t refused = 0;
            for (dtrain_request_t *request : requests) {
                const dtrain_status_t status = dtrain_request_wait(request, -1);
                if (status != DTRAIN_OK) {
                    FAILS(DTRAIN_ERR_LIMIT, status);
                    REQUIRE(ranks::last_error().find("server 0: ") != std::string::npos);
                    REQUIRE(ranks::last_error().find("of worker 0 take ") != std::string::npos);
                    REQUIRE(ranks::last_error().find("of at most 1048576") != std::string::npos);
                    REQUIRE(ranks::last_error().find("ps.peer_memory") != std::string::npos);
                    refused++;
                }
                dtrain_request_free(request);
            }
            REQUIRE(refused > 0 && refused <= pulls - 15);
            for (size_t i = 0; i < pulls; i++) // one after the other they fit
                OK(dtrain_table_pull_rows(table, &key, 1, rows.data(), nullptr, nullptr));
            REQUIRE(rows[0] == 50);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

void a_limit_that_nothing_fits_is_refused(void **) {
    ranks::run(1, {{"ps.peer_memory", "1000"}}, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 1;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_CONFIG, dtrain_table_create(comm, "t", &params, &table));
        REQUIRE(ranks::last_error().find("ps.peer_memory: 1000 bytes; at least 1M") !=
                std::string::npos);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_is_over_its_limit),
        cmocka_unit_test(a_limit_that_nothing_fits_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
