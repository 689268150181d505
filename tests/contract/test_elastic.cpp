// Elastic jobs: workers come and go, and the others form the next generation with them.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

namespace {

using processes::Job;

const ranks::Options elastic_shm = {{"elastic", "yes"}, {"op.timeout", "20s"}},
                     elastic_tcp = {{"elastic", "yes"},
                                    {"op.timeout", "20s"},
                                    {"transports", "tcp"}},
                     elastic_manual = {
                         {"elastic", "yes"}, {"op.timeout", "20s"}, {"progress", "manual"}};
constexpr int newcomer = -1;

dtrain_comm_t *join_as(dtrain_context_t *context, const char *rendezvous, int rank, int size) {
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = rank == newcomer ? DTRAIN_NEWCOMER : size;
    params.rank = rank;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, rendezvous, &params, &comm));
    return comm;
}

dtrain_reform_params_t sizes(int32_t smallest, int32_t largest = 0, int32_t leaves = 0) {
    dtrain_reform_params_t params;
    DTRAIN_INIT(&params);
    params.min_size = smallest;
    params.max_size = largest;
    params.leaves = leaves;
    return params;
}

// Replaces *comm by the next generation's communicator; NULL for one that leaves.
void reform(dtrain_comm_t **comm, const dtrain_reform_params_t &params) {
    dtrain_comm_t *next = nullptr;
    OK(dtrain_comm_reform(*comm, &params, &next));
    OK(dtrain_comm_destroy(*comm));
    *comm = next;
}

// The sum of all ranks is right, for small and large vectors.
void check_sum(dtrain_comm_t *comm, int size) {
    REQUIRE(dtrain_comm_size(comm) == size);
    for (size_t count : {1u, 300000u}) {
        std::vector<int64_t> data(count, dtrain_comm_rank(comm));
        OK(dtrain_allreduce(comm, data.data(), data.data(), count, DTRAIN_I64, DTRAIN_SUM, nullptr,
                            nullptr));
        for (int64_t x : data) REQUIRE(x == size * (size - 1) / 2);
    }
}

std::string changes(dtrain_comm_t *comm) {
    char text[4096];
    REQUIRE(dtrain_comm_changes(comm, text, sizeof text) < sizeof text);
    return text;
}

// Steps until so many processes wait; all ranks leave the loop at the same step.
void step_until_newcomers(dtrain_comm_t *comm, processes::Seen &seen, int32_t wanted) {
    for (int32_t least = 0; least < wanted;) {
        least = dtrain_comm_newcomers(comm);
        REQUIRE(least >= 0);
        OK(dtrain_allreduce(comm, &least, &least, 1, DTRAIN_I32, DTRAIN_MIN, nullptr, nullptr));
        seen.rounds++;
    }
}

// Two workers, and two that come while they work.
void grow(const ranks::Options &options) {
    constexpr int size = 2, more = 2;
    Job job;
    job.start(size + more, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        const bool first = process < size;
        if (!first)
            while (job.seen(0).rounds < 10) processes::nap();
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), first ? process : newcomer, size);
        if (first) {
            check_sum(comm, size);
            REQUIRE(changes(comm) == "{}");
            step_until_newcomers(comm, job.seen(process), more);
            reform(&comm, sizes(size + more));
            REQUIRE(dtrain_comm_rank(comm) == process);
            REQUIRE(changes(comm).find("\"ranks\": [0, 1, null, null]") != std::string::npos);
        }
        REQUIRE(first || dtrain_comm_rank(comm) >= size);
        REQUIRE(changes(comm).find("\"generation\": 1, \"size\": 4") != std::string::npos);
        check_sum(comm, size + more);
        REQUIRE(dtrain_comm_newcomers(comm) == 0);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}
void grows(void **) {
    grow(elastic_shm);
    grow(elastic_tcp);
    grow(elastic_manual);
}

// A rank is killed, and another process takes its place.
void replace(int dead, const ranks::Options &options) {
    constexpr int size = 3;
    Job job;
    job.start(size + 1, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        if (process == size) { // once the other is dead
            while (job.seen(dead).go == 0) processes::nap();
            dtrain_comm_t *comm = join_as(context, job.rendezvous(), newcomer, size);
            REQUIRE(dtrain_comm_rank(comm) == size - 1);
            check_sum(comm, size);
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
            return;
        }
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
        int64_t one = 1, sum = 0;
        dtrain_status_t s;
        while ((s = dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I64, DTRAIN_SUM, nullptr,
                                     nullptr)) == DTRAIN_OK)
            job.seen(process).rounds++;
        REQUIRE(s == DTRAIN_ERR_PEER);
        reform(&comm, sizes(size));
        REQUIRE(dtrain_comm_rank(comm) == process - (process > dead ? 1 : 0));
        REQUIRE(changes(comm).find("rank " + std::to_string(dead)) != std::string::npos);
        REQUIRE(changes(comm).find("lost") != std::string::npos);
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 10);
    job.kill_now(dead);
    job.seen(dead).go = 1;
    job.expect_good_ends();
}
void replaces_a_lost_rank(void **) {
    replace(1, elastic_shm);
    replace(2, elastic_tcp);
    replace(1, elastic_manual);
}
void replaces_the_coordinator(void **) {
    replace(0, elastic_shm);
    replace(0, elastic_tcp);
    replace(0, elastic_manual);
}

// Workers leave one after the other, rank 0 first; somebody comes after each.
void every_rank_is_replaced(void **) {
    constexpr int size = 2, generations = 4;
    Job job;
    job.start(size + generations, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        const bool first = process < size;
        if (!first)
            while (job.seen(process).go == 0) processes::nap();
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), first ? process : newcomer, size);
        check_sum(comm, size);
        const int born = first ? 0 : process - size + 1;
        for (int generation = born; generation < generations; generation++) {
            job.seen(size + generation).go = 1;
            step_until_newcomers(comm, job.seen(process), 1);
            const bool leaves = dtrain_comm_rank(comm) == 0;
            reform(&comm, sizes(size, size, leaves ? 1 : 0));
            if (leaves) break;
            check_sum(comm, size);
        }
        if (comm != nullptr) OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// ---- tables ----

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

// Too few, and then enough: an error says what is missing, and nothing is lost by it.
void too_few(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size + 1, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        if (process == size)
            while (job.seen(0).go == 0) processes::nap();
        dtrain_comm_t *comm =
            join_as(context, job.rendezvous(), process < size ? process : newcomer, size);
        if (process < size) {
            dtrain_reform_params_t params = sizes(3);
            params.timeout_ns = 300'000'000;
            dtrain_comm_t *next = nullptr;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
            REQUIRE(next == nullptr);
            REQUIRE(ranks::last_error().find("2 workers stay and 0 processes wait") !=
                    std::string::npos);
            check_sum(comm, size);
            job.seen(0).go = 1;
            reform(&comm, sizes(3));
        }
        check_sum(comm, 3);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

void one_does_not_call(void **) {
    constexpr int size = 3;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
        if (process != 1) {
            dtrain_reform_params_t params = sizes(1);
            params.timeout_ns = 300'000'000;
            dtrain_comm_t *next = nullptr;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
            REQUIRE(ranks::last_error().find("still waiting for rank 1") != std::string::npos);
        }
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A newcomer whose options do not fit is told so, and the others go on without it.
void one_that_does_not_fit(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size + 1, [&](int process) {
        ranks::Options options = elastic_tcp;
        if (process == size) options.back() = {"transports", "shm"};
        dtrain_context_t *context = ranks::make_context(options);
        if (process == size) {
            dtrain_comm_params_t params;
            DTRAIN_INIT(&params);
            params.size = DTRAIN_NEWCOMER;
            dtrain_comm_t *comm = nullptr;
            const dtrain_status_t s = dtrain_comm_create(context, job.rendezvous(), &params, &comm);
            REQUIRE(s != DTRAIN_OK);
            REQUIRE(ranks::last_error().find("no transport reaches") != std::string::npos);
        } else {
            dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
            step_until_newcomers(comm, job.seen(process), 1);
            reform(&comm, sizes(1));
            REQUIRE(changes(comm).find("\"ranks\": [0, 1]") != std::string::npos);
            check_sum(comm, size);
            OK(dtrain_comm_destroy(comm));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// Sizes that a call does not name are those of the options.
void sizes_of_the_options(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        ranks::Options options = elastic_shm;
        options.emplace_back("elastic.min", "3");
        options.emplace_back("elastic.max", "4");
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        dtrain_reform_params_t params = sizes(0);
        params.timeout_ns = 300'000'000;
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("the job needs 3 workers") != std::string::npos);
        params.min_size = 5;
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("at most 4 (option elastic.max)") != std::string::npos);
        reform(&comm, sizes(size));
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

void bad_input(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context({});
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        dtrain_reform_params_t params = sizes(1);
        FAILS(DTRAIN_ERR_STATE, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("elastic=yes") != std::string::npos);
        params.max_size = -1;
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        params = sizes(3, 2);
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, nullptr));
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        // A newcomer to a job that takes nobody in; one that is told no rendezvous.
        dtrain_comm_params_t join;
        DTRAIN_INIT(&join);
        join.size = DTRAIN_NEWCOMER;
        FAILS(DTRAIN_ERR_CONFIG, dtrain_comm_create(context, job.rendezvous(), &join, &comm));
        REQUIRE(ranks::last_error().find("elastic=yes") != std::string::npos);
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(replaces_a_lost_rank),
        cmocka_unit_test(replaces_the_coordinator),
        cmocka_unit_test(every_rank_is_replaced),
        cmocka_unit_test(tables_on_workers_go_on),
        cmocka_unit_test(tables_on_servers_go_on),
        cmocka_unit_test(an_open_clock_is_dropped),
        cmocka_unit_test(pushes_of_open_clocks_count),
        cmocka_unit_test(pushes_before_the_last_call_count),
        cmocka_unit_test(a_lost_part_is_told),
        cmocka_unit_test(too_few),
        cmocka_unit_test(one_does_not_call),
        cmocka_unit_test(one_that_does_not_fit),
        cmocka_unit_test(sizes_of_the_options),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests_name("elastic", tests, nullptr, nullptr);
}
