// Processes that die, stop, leave; the survivors' errors, and how they go on.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

#include <algorithm>
#include <atomic>

namespace {

using processes::Job;

const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}};

// Calls until something fails; returns what.
dtrain_status_t call_for_ever(processes::Seen &seen, const std::function<dtrain_status_t()> &call) {
    dtrain_status_t s;
    while ((s = call()) == DTRAIN_OK) seen.rounds++;
    processes::note_failure(seen, s);
    return s;
}

dtrain_status_t sum_for_ever(dtrain_comm_t *comm, processes::Seen &seen, size_t count) {
    std::vector<float> data(count, 1), sum(count);
    return call_for_ever(seen, [&] {
        dtrain_status_t s = dtrain_allreduce(comm, data.data(), sum.data(), count, DTRAIN_F32,
                                             DTRAIN_SUM, nullptr, nullptr);
        if (s == DTRAIN_OK) REQUIRE(sum[count - 1] == float(dtrain_comm_size(comm)));
        return s;
    });
}

dtrain_status_t gather_for_ever(dtrain_comm_t *comm, processes::Seen &seen, size_t count) {
    auto size = size_t(dtrain_comm_size(comm));
    std::vector<float> data(count, float(dtrain_comm_rank(comm))), all(count * size);
    return call_for_ever(seen, [&] {
        std::fill(all.begin(), all.end(), -1.f);
        dtrain_status_t s =
            dtrain_allgather(comm, data.data(), all.data(), count, DTRAIN_F32, nullptr, nullptr);
        for (size_t r = 0; s == DTRAIN_OK && r < size; r++)
            REQUIRE(all[(r + 1) * count - 1] == float(r));
        return s;
    });
}

void go_on_with_survivors(dtrain_comm_t *broken, int rank, int size, int dead) {
    int32_t failed[8];
    REQUIRE(dtrain_comm_failed(broken, failed, 8) == 1 && failed[0] == dead);
    FAILS(DTRAIN_ERR_PEER, dtrain_barrier(broken, nullptr, nullptr));
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_shrink(broken, &comm));
    REQUIRE(dtrain_comm_size(comm) == size - 1);
    REQUIRE(dtrain_comm_rank(comm) == rank - (rank > dead ? 1 : 0));
    for (size_t count : {1u, 100000u}) {
        std::vector<int64_t> data(count, rank);
        OK(dtrain_allreduce(comm, data.data(), data.data(), count, DTRAIN_I64, DTRAIN_SUM, nullptr,
                            nullptr));
        for (int64_t x : data) REQUIRE(x == size * (size - 1) / 2 - dead);
    }
    OK(dtrain_comm_destroy(comm));
}

// Prints and bounds how long the survivors took to notice.
void check_survivors(Job &job, int size, int dead, int64_t since_ns, int64_t bound_ns) {
    int64_t latest = 0;
    for (int r = 0; r < size; r++) {
        if (r == dead) continue;
        processes::Seen &seen = job.seen(r);
        assert_int_equal(seen.status, DTRAIN_ERR_PEER);
        assert_non_null(strstr(seen.text, ("rank " + std::to_string(dead)).c_str()));
        latest = std::max(latest, seen.failed_ns - since_ns);
    }
    std::printf("the last survivor knew after %.1f ms\n", double(latest) / 1e6);
    assert_true(latest < bound_ns);
}

using Calls = dtrain_status_t(dtrain_comm_t *, processes::Seen &, size_t);

void kill_one(int size, int dead, size_t count, ranks::Options options,
              Calls *calls = sum_for_ever) {
    Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        FAILS(DTRAIN_ERR_PEER, calls(comm, job.seen(rank), count));
        go_on_with_survivors(comm, rank, size, dead);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 20);
    int64_t since = processes::now_ns();
    job.kill_now(dead);
    job.expect_good_ends();
    check_survivors(job, size, dead, since, 1'000'000'000);
}

void killed_in_a_small_sum(void **) {
    kill_one(4, 2, 2, over_shm);
    kill_one(3, 0, 2, over_shm); // the coordinator's process
}
void killed_in_a_large_sum(void **) { kill_one(4, 1, 500000, over_shm); }
// Of buffers that the kernel copies from process to process.
void killed_in_a_large_gather(void **) { kill_one(3, 1, 1 << 20, over_shm, gather_for_ever); }
void killed_over_tcp(void **) {
    kill_one(4, 3, 1000, over_tcp);
    kill_one(3, 0, 300000, over_tcp);
}

// A stopped process counts as lost after heartbeat.timeout (twice that while the job starts); awake
// again it is told so, the coordinator's process, too. What was on its way to it, or from it, does
// not keep the others.
void stop_one(int silent, uint64_t count) {
    constexpr int size = 3;
    // On a busy machine a survivor may not run for more than a second.
    ranks::Options options = {{"heartbeat.timeout", "3s"}};
    Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        dtrain_status_t s = sum_for_ever(comm, job.seen(rank), count);
        REQUIRE(s == (rank == silent ? DTRAIN_ERR_FENCED : DTRAIN_ERR_PEER));
        if (rank != silent) go_on_with_survivors(comm, rank, size, silent);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 20);
    int64_t since = processes::now_ns();
    job.signal(silent, SIGSTOP);
    for (int r = 0; r < size; r++)
        while (r != silent && job.seen(r).status == 0) processes::nap();
    check_survivors(job, size, silent, since, 20'000'000'000);
    for (int r = 0; r < size; r++)
        assert_true(r == silent || strstr(job.seen(r).text, "heartbeat.timeout") != nullptr);
    job.signal(silent, SIGCONT);
    job.expect_good_ends();
    assert_int_equal(job.seen(silent).status, DTRAIN_ERR_FENCED);
    assert_non_null(strstr(job.seen(silent).text, "heartbeat.timeout"));
    std::printf("the one that slept: %s\n", job.seen(silent).text);
}

void stopped(void **) {
    stop_one(1, 100);
    stop_one(0, 100);
}
void stopped_in_a_large_sum(void **) { stop_one(1, 1'000'000); }

// The news may come before the others have made the communicator.
void aborted_as_soon_as_it_is_made(void **) {
    constexpr int size = 3, rounds = 100;
    Job job;
    const int64_t since = processes::now_ns();
    job.start(size, [&](int rank) {
        dtrain_context_t *context =
            ranks::make_context({{"transports", "tcp"}, {"op.timeout", "60s"}});
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        for (int i = 0; i < rounds; i++) {
            dtrain_comm_t *copy = nullptr;
            OK(dtrain_comm_duplicate(comm, &copy));
            if (rank == i % size) OK(dtrain_comm_abort(copy, "early"));
            FAILS(DTRAIN_ERR_ABORTED, dtrain_barrier(copy, nullptr, nullptr));
            OK(dtrain_comm_destroy(copy));
            OK(dtrain_barrier(comm, nullptr, nullptr));
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
    assert_true(processes::now_ns() - since < 50'000'000'000);
}

// Some wait for it by way of others. It may have what it needs from all, and end well.
void the_late_one_is_named(void **) {
    constexpr int size = 5, late = 3;
    std::atomic<int> failed{0};
    ranks::run_with_contexts(size, {}, [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.timeout_ns = 4'000'000'000;
        while (rank == late && failed < size - 1) processes::nap();
        int64_t x = 1;
        const dtrain_status_t status =
            dtrain_allreduce(comm, &x, &x, 1, DTRAIN_I64, DTRAIN_SUM, &op, nullptr);
        if (rank != late)
            REQUIRE(status != DTRAIN_OK &&
                    ranks::last_error().find(", which rank 3 has not made yet,") !=
                        std::string::npos);
        failed++;
    });
}

// A rank that leaves in peace fails only those who still wait for it.
void left_early(void **) {
    constexpr int size = 3, leaver = 2;
    Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context({});
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank != leaver) {
            int32_t x = rank, y = -1;
            dtrain_request_t *request = nullptr;
            OK(dtrain_recv(comm, &y, 1, DTRAIN_I32, 1 - rank, 0, nullptr, &request));
            OK(dtrain_send(comm, &x, 1, DTRAIN_I32, 1 - rank, 0, nullptr, nullptr));
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
            REQUIRE(y == 1 - rank);
            FAILS(DTRAIN_ERR_PEER, dtrain_barrier(comm, nullptr, nullptr));
            REQUIRE(ranks::last_error().find("rank 2 has left") != std::string::npos);
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

dtrain_table_t *make_table(dtrain_comm_t *comm, uint64_t length) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "w", &params, &table));
    return table;
}

// Rank 1 shrinks, and still has the table: rank 0, which serves a part of that, must not wait for
// it before it shrinks, too.
void shrinks_while_another_destroys_a_table(void **) {
    constexpr int size = 3, dead = 2;
    Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context({{"op.timeout", "60s"}});
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        dtrain_table_t *table = make_table(comm, 10000);
        const std::vector<float> ones(10000, 1);
        OK(dtrain_table_push(table, 0, ones.size(), ones.data(), nullptr, nullptr));
        job.seen(rank).rounds++;
        FAILS(DTRAIN_ERR_PEER, sum_for_ever(comm, job.seen(rank), 1));
        if (rank == 0) OK(dtrain_table_destroy(table));
        go_on_with_survivors(comm, rank, size, dead);
        if (rank == 1) OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 2);
    const int64_t since = processes::now_ns();
    job.kill_now(dead);
    job.expect_good_ends();
    assert_true(processes::now_ns() - since < 20'000'000'000);
}

// As one that ends for an error of its own does, while the other waits for it in a call.
void destroys_a_table_that_another_has(void **) {
    Job job;
    const int64_t since = processes::now_ns();
    job.start(2, [&](int rank) {
        dtrain_context_t *context = ranks::make_context({{"op.timeout", "60s"}});
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        dtrain_table_t *table = make_table(comm, 10000);
        if (rank == 1) {
            FAILS(DTRAIN_ERR_PEER, dtrain_barrier(comm, nullptr, nullptr));
            REQUIRE(ranks::last_error().find("rank 0 has left") != std::string::npos);
        }
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
    assert_true(processes::now_ns() - since < 30'000'000'000);
}

// What another still pushes is not lost, however long it takes.
void destroys_a_table_that_another_uses(void **) {
    Job job;
    job.start(2, [&](int rank) {
        dtrain_context_t *context = ranks::make_context({{"op.timeout", "60s"}});
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        dtrain_table_t *table = make_table(comm, 10000);
        const std::vector<float> ones(10000, 1);
        const int64_t begin = processes::now_ns();
        while (rank == 1 && processes::now_ns() - begin < 4'000'000'000)
            OK(dtrain_table_push(table, 0, ones.size(), ones.data(), nullptr, nullptr));
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

void serve(Job &job, int workers) {
    dtrain_context_t *context = ranks::make_context({});
    dtrain_server_params_t params;
    DTRAIN_INIT(&params);
    params.size = workers;
    params.servers = 1;
    dtrain_server_t *server = nullptr;
    OK(dtrain_server_create(context, job.rendezvous(), &params, &server));
    OK(dtrain_server_wait(server, -1));
    OK(dtrain_server_destroy(server));
    OK(dtrain_context_destroy(context));
}

void server_killed_with(const ranks::Options &options) {
    constexpr int workers = 2;
    Job job;
    job.start(workers + 1, [&](int process) {
        if (process == workers) return serve(job, workers);
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, process, workers, 1);
        dtrain_table_t *table = make_table(comm, 10000);
        std::vector<float> g(10000, 1), w(10000);
        dtrain_status_t s = DTRAIN_OK;
        while (s == DTRAIN_OK) {
            s = dtrain_table_push(table, 0, g.size(), g.data(), nullptr, nullptr);
            if (s == DTRAIN_OK)
                s = dtrain_table_pull(table, 0, w.size(), w.data(), nullptr, nullptr);
            job.seen(process).rounds++;
        }
        processes::note_failure(job.seen(process), s);
        OK(dtrain_table_destroy(table));
        // The workers themselves are well.
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(workers, 10);
    int64_t since = processes::now_ns();
    job.kill_now(workers);
    job.expect_good_ends();
    for (int r = 0; r < workers; r++) {
        assert_int_equal(job.seen(r).status, DTRAIN_ERR_PEER);
        assert_non_null(strstr(job.seen(r).text, "server 0"));
        assert_true(job.seen(r).failed_ns - since < 1'000'000'000);
    }
}
void server_killed(void **) {
    server_killed_with(over_shm);
    server_killed_with(over_tcp);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(killed_in_a_small_sum),
        cmocka_unit_test(killed_in_a_large_sum),
        cmocka_unit_test(killed_in_a_large_gather),
        cmocka_unit_test(killed_over_tcp),
        cmocka_unit_test(shrinks_while_another_destroys_a_table),
        cmocka_unit_test(aborted_as_soon_as_it_is_made),
        cmocka_unit_test(destroys_a_table_that_another_has),
        cmocka_unit_test(destroys_a_table_that_another_uses),
        cmocka_unit_test(stopped),
        cmocka_unit_test(stopped_in_a_large_sum),
        cmocka_unit_test(the_late_one_is_named),
        cmocka_unit_test(left_early),
        cmocka_unit_test(server_killed),
    };
    return cmocka_run_group_tests_name("failures", tests, nullptr, nullptr);
}
