// Tables end to end: the same program with dedicated servers and with none.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cmath>

namespace {

constexpr uint64_t length = 100003; // odd, and several chunks per server

dtrain_table_params_t table_params(uint32_t consistency, uint32_t rule = DTRAIN_RULE_ADD) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.rule = rule;
    params.consistency = consistency;
    return params;
}

// Every push counts once, whoever serves.
void adds_up(int workers, int servers, const ranks::Options &options) {
    ranks::run(workers, servers, options, [workers](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_ASYNC);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        std::vector<float> g(length, float(rank + 1)), w(length);
        for (int i = 0; i < 5; i++)
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        OK(dtrain_table_push(table, 17, 3, g.data(), nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.flags = DTRAIN_OP_AWAITED;
        dtrain_request_t *request = nullptr;
        OK(dtrain_table_pull(table, 0, length, w.data(), &op, &request));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        float each = float(workers * (workers + 1) / 2);
        for (uint64_t i = 0; i < length; i++)
            REQUIRE(w[i] == 5 * each + (i >= 17 && i < 20 ? each : 0));
        OK(dtrain_table_destroy(table));
    });
}

void async_with_servers(void **) {
    adds_up(2, 1, {});
    adds_up(3, 2, {});
}
void async_without_servers(void **) {
    adds_up(1, 0, {});
    adds_up(3, 0, {});
}
void async_over_tcp(void **) {
    adds_up(2, 2, {{"transports", "tcp"}});
    adds_up(2, 0, {{"transports", "tcp"}});
}

// A pull at clock c sees exactly all updates before it.
void bsp(int workers, int servers) {
    ranks::run(workers, servers, {}, [workers](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_BSP);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        std::vector<float> g(length, float(rank + 1)), w(length);
        for (int clock = 0; clock < 6; clock++) {
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
            for (float x : w) REQUIRE(x == float(clock * workers * (workers + 1) / 2));
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        OK(dtrain_table_destroy(table));
    });
}
void bsp_sees_all(void **) {
    bsp(3, 2);
    bsp(3, 0);
}

// With staleness s a pull at clock c sees at least all updates of clocks before c - s.
void ssp_is_bounded(void **) {
    constexpr int workers = 3, clocks = 30, staleness = 2;
    ranks::run(workers, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_SSP);
        params.length = workers;
        params.staleness = staleness;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "clocks", &params, &table));
        float one = 1, seen[workers];
        for (int clock = 0; clock < clocks; clock++) {
            OK(dtrain_table_pull(table, 0, workers, seen, nullptr, nullptr));
            for (float x : seen) REQUIRE(x >= float(clock - staleness));
            OK(dtrain_table_push(table, uint64_t(rank), 1, &one, nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        OK(dtrain_table_destroy(table));
    });
}

void push_pull_and_set(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_ASYNC, DTRAIN_RULE_SGD);
        params.learning_rate = 0.5;
        params.initial = 2;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        std::vector<float> w(length);
        if (rank == 0) {
            std::vector<float> g(length, 2), start(length, 4);
            OK(dtrain_table_set(table, 0, length, start.data(), nullptr, nullptr));
            OK(dtrain_table_push_pull(table, 0, length, g.data(), w.data(), nullptr, nullptr));
            for (float x : w) REQUIRE(x == 3);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_pull(table, 5, 1, w.data(), nullptr, nullptr));
        REQUIRE(w[0] == 3);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_pull(table, length, 1, w.data(), nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_table_push(table, 1, UINT64_MAX, w.data(), nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push(table, 0, 1, nullptr, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

void parameters_must_agree(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_ASYNC);
        params.initial = rank;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(ranks::last_error().find("initial") != std::string::npos);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(async_with_servers),    cmocka_unit_test(async_without_servers),
        cmocka_unit_test(async_over_tcp),        cmocka_unit_test(bsp_sees_all),
        cmocka_unit_test(ssp_is_bounded),        cmocka_unit_test(push_pull_and_set),
        cmocka_unit_test(parameters_must_agree),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
