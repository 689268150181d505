// What a worker has counted of its requests.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

dtrain_table_stats_t stats_of(dtrain_table_t *table, int32_t server) {
    dtrain_table_stats_t stats;
    DTRAIN_INIT(&stats);
    OK(dtrain_stats_table(table, server, &stats));
    return stats;
}

uint64_t total(const uint64_t *buckets) {
    uint64_t sum = 0;
    for (int i = 0; i < DTRAIN_STATS_BUCKETS; i++) sum += buckets[i];
    return sum;
}

void requests_are_counted(int servers) {
    ranks::run(1, servers, {{"ps.retry", "600s"}}, [&](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 1024;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        const dtrain_table_stats_t before = stats_of(table, -1);
        std::vector<float> g(1024, 1);
        for (int i = 0; i < 3; i++)
            OK(dtrain_table_push(table, 0, 1024, g.data(), nullptr, nullptr));
        OK(dtrain_table_pull(table, 0, 1024, g.data(), nullptr, nullptr));
        OK(dtrain_table_push(table, 0, 1, g.data(), nullptr, nullptr));

        const uint64_t parts = servers > 0 ? uint64_t(servers) : 1;
        const dtrain_table_stats_t now = stats_of(table, -1), first = stats_of(table, 0);
        REQUIRE(now.requests - before.requests == 4 * parts + 1);
        REQUIRE(now.repeats == 0 && now.refused == 0 && now.dropped == 0);
        REQUIRE(now.elements == 4 * 1024 + 1);
        REQUIRE(now.sent_bytes - before.sent_bytes == 3 * 4096 + 4);
        REQUIRE(now.received_bytes == 4096);
        REQUIRE(total(now.latency) == now.requests);
        REQUIRE(total(now.staleness) == 3 * parts + 1);
        REQUIRE(now.staleness_sum == (0 + 1 + 2) * parts);
        REQUIRE(first.requests < now.requests || parts == 1);
        REQUIRE(first.staleness_sum == 3);
        // An older program's, shorter struct.
        dtrain_table_stats_t old;
        std::memset(&old, 0x55, sizeof old);
        old.struct_size = 16;
        OK(dtrain_stats_table(table, -1, &old));
        REQUIRE(old.requests == now.requests && old.repeats == 0x5555555555555555);
        FAILS(DTRAIN_ERR_INVALID, dtrain_stats_table(table, int32_t(parts), &old));
        FAILS(DTRAIN_ERR_INVALID, dtrain_stats_table(table, -2, &old));
        old.struct_size = 0;
        FAILS(DTRAIN_ERR_INVALID, dtrain_stats_table(table, -1, &old));
        FAILS(DTRAIN_ERR_INVALID, dtrain_stats_table(table, -1, nullptr));
        OK(dtrain_table_destroy(table));
    });
}
void with_servers(void **) { requests_are_counted(2); }
void without_servers(void **) { requests_are_counted(0); }

void other_workers_make_it_stale(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 1;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        float x = 0;
        OK(dtrain_table_pull(table, 0, 1, &x, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        for (int i = 0; rank == 0 && i < 9; i++)
            OK(dtrain_table_push(table, 0, 1, &x, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 1) {
            OK(dtrain_table_push(table, 0, 1, &x, nullptr, nullptr));
            const dtrain_table_stats_t stats = stats_of(table, -1);
            REQUIRE(stats.staleness_sum == 9 && stats.staleness[4] == 1); // 8 to 15
        }
        OK(dtrain_table_destroy(table));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(with_servers),
        cmocka_unit_test(without_servers),
        cmocka_unit_test(other_workers_make_it_stale),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
