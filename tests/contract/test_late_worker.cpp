// A request that ends by its timeout because a worker is late names this worker and its clocks.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

constexpr int workers = 3, late = 2;
constexpr uint64_t length = 100, staleness = 1, quorum = 3, clocks = 2;

struct Case {
    uint32_t consistency;
    uint64_t slack; // clocks that a pull may be ahead
    bool sparse;
};

class Table {
  public:
    Table(dtrain_comm_t *comm, const Case &its) : sparse_(its.sparse) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        if (sparse_)
            params.dim = length;
        else
            params.length = length;
        params.consistency = its.consistency;
        if (its.consistency == DTRAIN_SSP) params.staleness = staleness;
        if (its.consistency == DTRAIN_QUORUM) params.quorum = quorum;
        params.rule = DTRAIN_RULE_ADD;
        OK(dtrain_table_create(comm, "w", &params, &table_));
    }
    ~Table() { OK(dtrain_table_destroy(table_)); }
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;

    void step() {
        OK(sparse_ ? dtrain_table_push_rows(table_, keys_, 1, values_, nullptr, nullptr)
                   : dtrain_table_push(table_, 0, length, values_, nullptr, nullptr));
        OK(dtrain_table_clock(table_, nullptr, nullptr));
    }
    dtrain_status_t pull(const dtrain_op_params_t *op) {
        return sparse_ ? dtrain_table_pull_rows(table_, keys_, 1, values_, op, nullptr)
                       : dtrain_table_pull(table_, 0, length, values_, op, nullptr);
    }

  private:
    const bool sparse_;
    dtrain_table_t *table_ = nullptr;
    const uint64_t keys_[1] = {7};
    float values_[length] = {};
};

void is_named(const Case &its, int servers, const char *transports) {
    const ranks::Options options = {{"transports", transports}, {"ps.retry", "20ms"}};
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        Table table(comm, its);
        for (uint64_t i = 0; i < clocks; i++) table.step();
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank != late) {
            for (uint64_t i = 0; i <= its.slack; i++) table.step();
            dtrain_op_params_t op;
            DTRAIN_INIT(&op);
            op.timeout_ns = 1000000000;
            FAILS(DTRAIN_ERR_TIMEOUT, table.pull(&op));
            const std::string text = ranks::last_error();
            REQUIRE(text.find("table \"w\": timed out; 0.") != std::string::npos);
            REQUIRE(text.find("waited for worker 2, which had ended 2 clocks") !=
                    std::string::npos);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == late)
            for (uint64_t i = 0; i <= its.slack; i++) table.step();
        OK(table.pull(nullptr)); // nothing is lost
    });
}

void under_each_mode(void **) {
    for (const bool sparse : {false, true}) {
        is_named({DTRAIN_BSP, 0, sparse}, 1, "shm");
        is_named({DTRAIN_SSP, staleness, sparse}, 1, "shm");
        is_named({DTRAIN_QUORUM, 0, sparse}, 1, "shm");
    }
}
void with_workers_that_serve(void **) {
    is_named({DTRAIN_BSP, 0, false}, 0, "shm");
    is_named({DTRAIN_BSP, 0, true}, 0, "tcp");
}
void over_tcp(void **) {
    is_named({DTRAIN_BSP, 0, false}, 2, "tcp");
    is_named({DTRAIN_SSP, staleness, true}, 2, "tcp");
}

// Nobody in particular is waited for.
void a_later_version_has_no_culprit(void **) {
    const ranks::Options options = {{"ps.retry", "20ms"}};
    ranks::run(2, 1, options, [](int, dtrain_comm_t *comm) {
        Table table(comm, {DTRAIN_ASYNC, 0, false});
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.timeout_ns = 300000000;
        op.min_version = 1;
        FAILS(DTRAIN_ERR_TIMEOUT, table.pull(&op));
        REQUIRE(ranks::last_error().find("waited for worker") == std::string::npos);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(under_each_mode),
        cmocka_unit_test(with_workers_that_serve),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(a_later_version_has_no_culprit),
    };
    return cmocka_run_group_tests_name("late_worker", tests, nullptr, nullptr);
}
