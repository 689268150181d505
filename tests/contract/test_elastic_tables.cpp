// Tables of elastic jobs: the next generation opens them with their values.
// SPDX-License-Identifier: Apache-2.0
#include "contract/elastic.h"

using namespace elastic;

namespace {

constexpr uint64_t length = 5000;
constexpr int64_t keys = 300;

dtrain_table_t *open_dense(dtrain_comm_t *comm, uint32_t consistency, uint32_t staleness = 0) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.rule = DTRAIN_RULE_MOMENTUM; // has state
    params.learning_rate = 0.5;
    params.momentum = 0.5;
    params.consistency = consistency;
    params.staleness = staleness;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "dense", &params, &table));
    return table;
}

dtrain_table_t *open_rows(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = 4;
    params.rule = DTRAIN_RULE_ADD;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "rows", &params, &table));
    return table;
}

struct Tables {
    dtrain_table_t *dense, *rows;
    Tables(dtrain_comm_t *comm, uint32_t consistency)
        : dense(open_dense(comm, consistency)), rows(open_rows(comm)) {}
    void close() const {
        OK(dtrain_table_destroy(dense));
        OK(dtrain_table_destroy(rows));
    }
    void push(float value) const {
        const std::vector<float> g(length, value), r(size_t(keys) * 4, 1);
        std::vector<uint64_t> k(keys);
        for (size_t i = 0; i < k.size(); i++) k[i] = 7 * i + 1;
        OK(dtrain_table_push(dense, 0, length, g.data(), nullptr, nullptr));
        OK(dtrain_table_push_rows(rows, k.data(), k.size(), r.data(), nullptr, nullptr));
    }
    void expect(float dense_value, float row_value) const {
        std::vector<float> w(length), r(size_t(keys) * 4);
        std::vector<uint64_t> k(keys);
        for (size_t i = 0; i < k.size(); i++) k[i] = 7 * i + 1;
        OK(dtrain_table_pull(dense, 0, length, w.data(), nullptr, nullptr));
        OK(dtrain_table_pull_rows(rows, k.data(), k.size(), r.data(), nullptr, nullptr));
        for (float x : w)
            ranks::expect(x == dense_value ? DTRAIN_OK : DTRAIN_ERR_INTERNAL, DTRAIN_OK,
                          ("dense " + std::to_string(x)).c_str(), __LINE__);
        for (float x : r)
            ranks::expect(x == row_value ? DTRAIN_OK : DTRAIN_ERR_INTERNAL, DTRAIN_OK,
                          ("rows " + std::to_string(x)).c_str(), __LINE__);
    }
};

// Two workers push, one comes, and goes on with their values and the rule's state.
void tables_go_on(int servers, const ranks::Options &options) {
    constexpr int size = 2;
    Job job;
    job.start(size + 1 + servers, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        if (process > size) {
            dtrain_server_params_t params;
            DTRAIN_INIT(&params);
            params.size = size;
            params.servers = servers;
            params.index = process - size - 1;
            dtrain_server_t *server = nullptr;
            OK(dtrain_server_create(context, job.rendezvous(), &params, &server));
            OK(dtrain_server_wait(server, -1));
            OK(dtrain_server_destroy(server));
            OK(dtrain_context_destroy(context));
            return;
        }
        const bool first = process < size;
        if (!first)
            while (job.seen(0).rounds < 1) processes::nap();
        dtrain_comm_t *comm = nullptr;
        if (first) {
            comm = processes::join(job, context, process, size, servers);
            const Tables tables(comm, DTRAIN_ASYNC);
            if (process == 0) tables.push(1); // v = 1, w = -0.5
            OK(dtrain_barrier(comm, nullptr, nullptr));
            step_until_newcomers(comm, job.seen(process), 1);
            dtrain_comm_t *next = nullptr;
            dtrain_reform_params_t params = sizes(size + 1);
            OK(dtrain_comm_reform(comm, &params, &next));
            tables.close();
            OK(dtrain_comm_destroy(comm));
            comm = next;
        } else {
            comm = join_as(context, job.rendezvous(), newcomer, size);
        }
        const Tables tables(comm, DTRAIN_ASYNC);
        tables.expect(-0.5f, 1);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (process == size) tables.push(1); // v = 1.5, w = -1.25: the momentum is still there
        OK(dtrain_barrier(comm, nullptr, nullptr));
        tables.expect(-1.25f, 2);
        // A table of this generation may lie on all of its servers.
        dtrain_table_params_t fresh;
        DTRAIN_INIT(&fresh);
        fresh.dtype = DTRAIN_F32;
        fresh.length = 100;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "fresh", &fresh, &table));
        OK(dtrain_table_destroy(table));
        tables.close();
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}
void tables_on_workers_go_on(void **) {
    tables_go_on(0, elastic_shm);
    tables_go_on(0, elastic_tcp);
}
void tables_on_servers_go_on(void **) {
    tables_go_on(1, elastic_shm);
    tables_go_on(2, elastic_tcp);
}

// A worker that serves waits, when it destroys a table, for those that use its part, unless they
// wait for it in a reform.
void destroying_a_table_does_not_hold_up_a_reform(void **) {
    constexpr int size = 3;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm); // op.timeout is 20 s
        dtrain_comm_t *comm = processes::join(job, context, process, size, 0);
        const Tables tables(comm, DTRAIN_ASYNC);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        const int64_t begun_ns = processes::now_ns();
        if (process == 1) tables.close();
        REQUIRE(processes::now_ns() - begun_ns < 10'000'000'000);
        dtrain_comm_t *next = nullptr;
        OK(dtrain_comm_reform(comm, nullptr, &next));
        if (process != 1) tables.close();
        OK(dtrain_comm_destroy(comm));
        check_sum(next, size);
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// BSP: pushes of a clock that had not ended on all workers are dropped; the clock before is there.
void an_open_clock_is_dropped(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        const Tables tables(comm, DTRAIN_BSP);
        const std::vector<float> g(length, 1);
        std::vector<float> w(length);
        auto push = [&](dtrain_table_t *table) {
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        };
        auto expect = [&](dtrain_table_t *table, float value) {
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
            for (float x : w) REQUIRE(x == value);
        };
        push(tables.dense); // the sum is 2: v = 2, w = -1
        OK(dtrain_table_clock(tables.dense, nullptr, nullptr));
        expect(tables.dense, -1);
        if (process == 0) push(tables.dense);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        dtrain_reform_params_t params = sizes(size);
        OK(dtrain_comm_reform(comm, &params, &next));
        tables.close();
        OK(dtrain_comm_destroy(comm));
        dtrain_table_t *table = open_dense(next, DTRAIN_BSP);
        expect(table, -1);
        push(table); // v = 3, w = -2.5
        OK(dtrain_table_clock(table, nullptr, nullptr));
        expect(table, -2.5f);
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// SSP: every push that was answered counts, whatever clock it belongs to; clocks begin at 0 again.
void pushes_of_open_clocks_count(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        dtrain_table_t *table = open_dense(comm, DTRAIN_SSP, 1);
        const std::vector<float> g(length, 1);
        std::vector<float> w(length);
        auto push = [&] { OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr)); };
        auto expect = [&](float value) {
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
            for (float x : w) REQUIRE(x == value);
        };
        push(); // of both: v = 1.5, w = -1.25
        if (process == 0) {
            OK(dtrain_table_clock(table, nullptr, nullptr));
            push(); // v = 1.75, w = -2.125
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        dtrain_reform_params_t params = sizes(size);
        OK(dtrain_comm_reform(comm, &params, &next));
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(comm));
        table = open_dense(next, DTRAIN_SSP, 1);
        expect(-2.125f);
        OK(dtrain_barrier(next, nullptr, nullptr));
        if (process == 0) {
            push(); // v = 1.875, w = -3.0625
            OK(dtrain_table_clock(table, nullptr, nullptr));
            expect(-3.0625f); // one clock ahead of the other
            OK(dtrain_table_clock(table, nullptr, nullptr));
            dtrain_op_params_t soon;
            DTRAIN_INIT(&soon);
            soon.timeout_ns = 100'000'000;
            ranks::expect(dtrain_table_pull(table, 0, length, w.data(), &soon, nullptr),
                          DTRAIN_ERR_TIMEOUT, "pull, two clocks ahead", __LINE__);
        }
        OK(dtrain_barrier(next, nullptr, nullptr));
        if (process == 1) OK(dtrain_table_clock(table, nullptr, nullptr));
        OK(dtrain_barrier(next, nullptr, nullptr));
        expect(-3.0625f);
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A worker that calls early still serves the others, until all have called: their pushes count.
void pushes_before_the_last_call_count(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        const Tables before(comm, DTRAIN_ASYNC);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (process == 1) {
            for (int i = 0; i < 200; i++) processes::nap(); // rank 0 waits in its call
            before.push(1);
        }
        dtrain_reform_params_t params = sizes(size);
        OK(dtrain_comm_reform(comm, &params, &next));
        before.close();
        OK(dtrain_comm_destroy(comm));
        const Tables after(next, DTRAIN_ASYNC);
        after.expect(-0.5f, 1);
        OK(dtrain_barrier(next, nullptr, nullptr));
        after.close();
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A part of a table is gone with its server: an error on all ranks.
void a_lost_part_is_told(void **) {
    constexpr int size = 3, dead = 1;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        const Tables tables(comm, DTRAIN_ASYNC);
        int64_t one = 1, sum = 0;
        while (dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr) ==
               DTRAIN_OK)
            job.seen(process).rounds++;
        dtrain_reform_params_t params = sizes(1);
        OK(dtrain_comm_reform(comm, &params, &next));
        dtrain_table_params_t again;
        DTRAIN_INIT(&again);
        again.dtype = DTRAIN_F32;
        again.dim = 4;
        again.rule = DTRAIN_RULE_ADD;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_PEER, dtrain_table_create(next, "rows", &again, &table));
        REQUIRE(ranks::last_error().find("checkpoint.restore=yes") != std::string::npos);
        OK(dtrain_table_create(next, "other rows", &again, &table));
        OK(dtrain_table_destroy(table));
        tables.close();
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 10);
    job.kill_now(dead);
    job.expect_good_ends();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(tables_on_workers_go_on),
        cmocka_unit_test(tables_on_servers_go_on),
        cmocka_unit_test(destroying_a_table_does_not_hold_up_a_reform),
        cmocka_unit_test(an_open_clock_is_dropped),
        cmocka_unit_test(pushes_of_open_clocks_count),
        cmocka_unit_test(pushes_before_the_last_call_count),
        cmocka_unit_test(a_lost_part_is_told),
    };
    return cmocka_run_group_tests_name("elastic_tables", tests, nullptr, nullptr);
}
