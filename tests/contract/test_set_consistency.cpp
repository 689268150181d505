// Changing a table's mode while a program runs.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <atomic>

namespace {

dtrain_table_params_t params_of(uint32_t consistency, uint32_t quorum = 0, bool sparse = false) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = sparse ? 0 : 64;
    params.dim = sparse ? 64 : 0;
    params.consistency = consistency;
    params.quorum = quorum;
    return params;
}

class Numbers {
  public:
    Numbers(dtrain_comm_t *comm, const dtrain_table_params_t &params)
        : comm_(comm), sparse_(params.dim > 0) {
        OK(dtrain_table_create(comm, "t", &params, &table));
    }
    ~Numbers() {
        OK(dtrain_barrier(comm_, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    }
    void push(float value) {
        const std::vector<float> g(64, value);
        OK(sparse_ ? dtrain_table_push_rows(table, &key_, 1, g.data(), nullptr, nullptr)
                   : dtrain_table_push(table, 0, 64, g.data(), nullptr, nullptr));
    }
    float value() {
        std::vector<float> w(64);
        OK(sparse_ ? dtrain_table_pull_rows(table, &key_, 1, w.data(), nullptr, nullptr)
                   : dtrain_table_pull(table, 0, 64, w.data(), nullptr, nullptr));
        for (float x : w) REQUIRE(x == w[0]);
        return w[0];
    }
    void clock() { OK(dtrain_table_clock(table, nullptr, nullptr)); }
    dtrain_status_t change(const dtrain_table_params_t &params, int64_t timeout_ns = 0) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.timeout_ns = timeout_ns;
        return dtrain_table_set_consistency(comm_, table, &params, &op);
    }

    dtrain_table_t *table = nullptr;

  private:
    dtrain_comm_t *const comm_;
    const bool sparse_;
    const uint64_t key_ = 5;
};

// Every worker's pushes count in every mode, and each mode holds once it was changed to.
void from_every_mode_to_every_other(int servers, const ranks::Options &options, bool sparse) {
    constexpr int workers = 3;
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        const dtrain_table_params_t modes[] = {params_of(DTRAIN_ASYNC), params_of(DTRAIN_BSP),
                                               params_of(DTRAIN_SSP),
                                               params_of(DTRAIN_QUORUM, workers)};
        Numbers numbers(comm, params_of(DTRAIN_ASYNC, 0, sparse));
        float due = 0;
        uint32_t before = DTRAIN_ASYNC;
        for (int i = 0; i < 24; ++i) {
            const dtrain_table_params_t &mode = modes[i % 5 * (i / 5 + 1) % 4];
            // In ASYNC and SSP workers are at different clocks.
            const bool free = before == DTRAIN_ASYNC;
            for (int clocks = free ? rank : 1; clocks > 0; --clocks) {
                numbers.push(float(rank + 1));
                numbers.clock();
            }
            due += free ? 0 * 1 + 1 * 2 + 2 * 3 : 1 + 2 + 3;
            numbers.push(float(10 * (rank + 1))); // ended by the change
            due += 60;
            OK(numbers.change(mode));
            before = mode.consistency;
            // Nobody pushes between these, whatever the mode.
            REQUIRE(numbers.value() == due);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            if (before == DTRAIN_BSP) { // it is in force
                numbers.push(1);
                REQUIRE(numbers.value() == due);
                OK(dtrain_barrier(comm, nullptr, nullptr));
                numbers.clock();
                due += workers;
                REQUIRE(numbers.value() == due);
                OK(dtrain_barrier(comm, nullptr, nullptr));
            }
        }
    });
}
void everywhere(void **) {
    for (bool sparse : {false, true}) {
        from_every_mode_to_every_other(2, {{"transports", "tcp"}}, sparse);
        from_every_mode_to_every_other(0, {{"transports", "tcp"}}, sparse);
        from_every_mode_to_every_other(1, {{"transports", "shm"}}, sparse);
    }
    ranks::run(1, 0, {}, [&](int, dtrain_comm_t *comm) {
        Numbers numbers(comm, params_of(DTRAIN_ASYNC));
        numbers.push(1);
        OK(numbers.change(params_of(DTRAIN_QUORUM, 1)));
        numbers.push(1);
        REQUIRE(numbers.value() == 1);
        numbers.clock();
        REQUIRE(numbers.value() == 2);
    });
}

bool said(const char *text) { return ranks::last_error().find(text) != std::string::npos; }

void workers_must_agree(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        Numbers numbers(comm, params_of(DTRAIN_ASYNC));
        FAILS(DTRAIN_ERR_MISMATCH, numbers.change(params_of(rank == 0 ? DTRAIN_BSP : DTRAIN_SSP)));
        REQUIRE(said("rank 0 gives consistency BSP, rank 1 consistency SSP"));
        // One of them cannot: it knows why, the other one who.
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.min_version = 1000;
        dtrain_request_t *pull = nullptr;
        std::vector<float> w(64);
        if (rank == 0) OK(dtrain_table_pull(numbers.table, 0, 64, w.data(), &op, &pull));
        FAILS(DTRAIN_ERR_STATE, numbers.change(params_of(DTRAIN_BSP)));
        REQUIRE(said("not finished") && (rank == 0 || said("rank 0 cannot take part")));
        if (rank == 0) {
            OK(dtrain_request_cancel(pull));
            FAILS(DTRAIN_ERR_CANCELED, dtrain_request_wait(pull, -1));
            dtrain_request_free(pull);
        }
        // What is wrong with the call itself keeps nobody waiting either.
        FAILS(DTRAIN_ERR_INVALID,
              rank == 0 ? dtrain_table_set_consistency(comm, numbers.table, nullptr, nullptr)
                        : numbers.change(params_of(DTRAIN_BSP)));
        REQUIRE(said("params is NULL") && (rank == 0 || said("rank 0 cannot take part")));
        FAILS(DTRAIN_ERR_INVALID, numbers.change(params_of(DTRAIN_QUORUM, 3)));
        REQUIRE(ranks::last_error().find("quorum") != std::string::npos);
        numbers.push(1); // the table lives on, as it was
        OK(dtrain_barrier(comm, nullptr, nullptr));
        REQUIRE(numbers.value() == 2);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(numbers.change(params_of(DTRAIN_BSP)));
        numbers.push(1);
        numbers.clock();
        REQUIRE(numbers.value() == 4);
    });
}

void who_does_not_come_is_waited_for_until_the_timeout(void **) {
    std::atomic<bool> over = false;
    ranks::run(2, 1, {}, [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = params_of(DTRAIN_ASYNC), wanted = params_of(DTRAIN_BSP);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        while (rank == 1 && !over) std::this_thread::yield();
        if (rank == 0) {
            dtrain_op_params_t op;
            DTRAIN_INIT(&op);
            op.timeout_ns = 50'000'000;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_table_set_consistency(comm, table, &wanted, &op));
            float one = 1, w = 0;
            OK(dtrain_table_push(table, 0, 1, &one, nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, 1, &w, nullptr, nullptr));
            REQUIRE(w == 1); // ASYNC, as before
            over = true;
        }
        OK(dtrain_table_destroy(table));
    });
}

void a_server_without_memory_refuses(void **) {
    ranks::run(2, 1, {{"ps.memory", "600"}}, [](int, dtrain_comm_t *comm) {
        Numbers numbers(comm, params_of(DTRAIN_ASYNC)); // 256 bytes, sums 544 more
        FAILS(DTRAIN_ERR_LIMIT, numbers.change(params_of(DTRAIN_BSP)));
        numbers.push(1);
        OK(numbers.change(params_of(DTRAIN_SSP)));
        REQUIRE(numbers.value() == 2);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(everywhere),
        cmocka_unit_test(workers_must_agree),
        cmocka_unit_test(who_does_not_come_is_waited_for_until_the_timeout),
        cmocka_unit_test(a_server_without_memory_refuses),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
