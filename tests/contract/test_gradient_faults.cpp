// Gradient queues when something is wrong: differences, stalls, lost ranks, the end, bad arguments.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gradients.h"
#include "contract/processes.h"

#include <algorithm>

using gradients::finish;
using gradients::Params;
using gradients::Queue;

namespace {

constexpr int64_t ms = 1'000'000;

void expect_text(const std::string &text, std::initializer_list<const char *> parts) {
    for (const char *part : parts)
        if (text.find(part) == std::string::npos) {
            std::fprintf(stderr, "\"%s\" does not say \"%s\"\n", text.c_str(), part);
            std::abort();
        }
}

// Either at once or when it completes: it depends on who comes first.
dtrain_status_t outcome(Queue &queue, const char *name, float *data, uint64_t count,
                        const dtrain_op_params_t *op = nullptr) {
    dtrain_request_t *request = nullptr;
    dtrain_status_t s = dtrain_gradients_submit(queue.get(), name, data, data, count, DTRAIN_F32,
                                                DTRAIN_SUM, op, &request);
    return s == DTRAIN_OK ? finish(request) : s;
}

void differences(void **) {
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        for (int step = 0; step < 3; step++) {
            std::vector<float> good(10, 1), bad(11, float(rank)), before = bad;
            dtrain_request_t *request = queue.start("good", good);
            REQUIRE(outcome(queue, "bad", bad.data(), rank == 1 ? 11 : 10) == DTRAIN_ERR_MISMATCH);
            expect_text(ranks::last_error(),
                        {"\"bad\"", "rank 1", "f32[11] sum", "f32[10] sum", "submitted"});
            REQUIRE(bad == before);
            OK(finish(request));
            REQUIRE(good[9] == 3);
            float x = 1; // "bad" itself can be used again
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(outcome(queue, "bad", &x, 1));
            REQUIRE(x == 3);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void dtype_or_op_differs(void **) {
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        int64_t x[2] = {};
        dtrain_status_t s =
            dtrain_gradients_submit(queue.get(), "x", x, x, 1, rank == 0 ? DTRAIN_I32 : DTRAIN_I64,
                                    DTRAIN_SUM, nullptr, nullptr);
        REQUIRE(s == DTRAIN_ERR_MISMATCH);
        expect_text(ranks::last_error(), {"rank 0", "i32[1] sum", "rank 1", "i64[1] sum"});
        OK(dtrain_barrier(comm, nullptr, nullptr));
        s = queue.run("x", x, 1, rank == 0 ? DTRAIN_MIN : DTRAIN_MAX);
        REQUIRE(s == DTRAIN_ERR_MISMATCH);
        expect_text(ranks::last_error(), {"i64[1] min", "i64[1] max"});
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// ---- stalls ----

struct Lines { // of one rank's log
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;
    static void sink(void *self, int32_t, const char *line) {
        auto &lines = *static_cast<Lines *>(self);
        std::lock_guard lock(lines.mutex);
        (lines.text += line) += '\n';
        lines.changed.notify_all();
    }
    void wait_for(const char *part) {
        std::unique_lock lock(mutex);
        REQUIRE(changed.wait_for(lock, std::chrono::seconds(60),
                                 [&] { return text.find(part) != std::string::npos; }));
    }
};

void stall_is_logged(void **) {
    ranks::run_with_contexts(3, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Lines lines;
        OK(dtrain_context_set_log(context, Lines::sink, &lines));
        {
            Params params;
            params.stall_warn_ns = 50 * ms;
            Queue queue(comm, params);
            float x = 1;
            dtrain_request_t *request = nullptr;
            if (rank != 2) {
                request = queue.start("embedding", &x, 1);
                lines.wait_for("waits for others to submit \"embedding\" (not on rank");
                lines.wait_for("(not on rank 2 after");
                REQUIRE(gradients::counters(queue).stalls > 0);
            }
            OK(dtrain_barrier(comm, nullptr, nullptr)); // reported, and still waiting
            if (rank == 2) request = queue.start("embedding", &x, 1);
            OK(finish(request));
            REQUIRE(x == 3);
            OK(dtrain_barrier(comm, nullptr, nullptr));
        }
        OK(dtrain_context_set_log(context, nullptr, nullptr));
    });
}

void stall_fails(void **) {
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        Params params;
        params.stall_fail_ns = 50 * ms;
        Queue queue(comm, params);
        float x = 1;
        if (rank != 2) {
            REQUIRE(outcome(queue, "x", &x, 1) == DTRAIN_ERR_TIMEOUT);
            expect_text(ranks::last_error(), {"\"x\"", "not submitted by rank"});
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 2) REQUIRE(outcome(queue, "x", &x, 1) == DTRAIN_ERR_TIMEOUT);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void submission_times_out(void **) {
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.timeout_ns = 20 * ms;
        float x = 1;
        if (rank == 0) {
            REQUIRE(outcome(queue, "x", &x, 1, &op) == DTRAIN_ERR_TIMEOUT);
            expect_text(ranks::last_error(), {"\"x\"", "not submitted by rank 1"});
        }
        op.timeout_ns = -1;
        OK(dtrain_barrier(comm, &op, nullptr));
        if (rank == 1) REQUIRE(outcome(queue, "x", &x, 1) == DTRAIN_ERR_TIMEOUT);
        OK(dtrain_barrier(comm, &op, nullptr));
        OK(outcome(queue, "x", &x, 1, &op));
        REQUIRE(x == 2);
        OK(dtrain_barrier(comm, &op, nullptr));
    });
}

// ---- the end ----

void destroyed_with_pending_work(void **) {
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        auto queue = std::make_unique<Queue>(comm);
        float x = 1;
        dtrain_request_t *request = nullptr;
        if (rank == 0) request = queue->start("only on 0", &x, 1);
        if (rank == 1) request = queue->start("only on 1", &x, 1);
        OK(dtrain_barrier(comm, nullptr, nullptr)); // a submission later than the end is refused
        if (rank == 0) {
            queue.reset(); // the others live on
            FAILS(DTRAIN_ERR_CANCELED, dtrain_request_test(request));
            dtrain_request_free(request);
        } else {
            if (rank == 1) FAILS(DTRAIN_ERR_CANCELED, finish(request));
            // Rank 2 may be asked before it knows.
            REQUIRE(outcome(*queue, "later", &x, 1) == DTRAIN_ERR_CANCELED);
            expect_text(ranks::last_error(), {"rank 0 destroyed its gradient queue"});
            FAILS(DTRAIN_ERR_CANCELED,
                  dtrain_gradients_join(queue->get(), nullptr, nullptr, nullptr));
        }
        double sum = 1; // nothing but the queue is lost
        OK(dtrain_allreduce(comm, &sum, &sum, 1, DTRAIN_F64, DTRAIN_SUM, nullptr, nullptr));
        REQUIRE(sum == 3 && x == 1);
    });
}

// What was finished stays finished, although the others destroy their queues at once.
void destroyed_right_after_work(void **) {
    for (auto &options : {ranks::Options{}, ranks::Options{{"transports", "tcp"}}})
        ranks::run(3, options, [&](int, dtrain_comm_t *comm) {
            for (int i = 0; i < 20; i++) {
                Queue queue(comm);
                std::vector<float> x(i % 2 == 0 ? 1 : 50000, 1);
                OK(queue.run("x", x.data(), x.size()));
                REQUIRE(x.back() == 3);
            }
        });
}

void outlives_its_communicator(void **) {
    ranks::run(2, {}, [&](int, dtrain_comm_t *comm) {
        dtrain_comm_t *other = nullptr;
        OK(dtrain_comm_duplicate(comm, &other));
        Queue queue(other);
        OK(dtrain_comm_destroy(other));
        float x = 1;
        OK(queue.run("x", &x, 1));
        REQUIRE(x == 2);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void aborted(void **) {
    std::atomic<int> waiting{0}; // a barrier of comm may not be over when it is aborted
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        float x = 1;
        if (rank == 0) {
            while (waiting < 2) std::this_thread::yield();
            OK(dtrain_comm_abort(comm, "enough"));
            REQUIRE(outcome(queue, "x", &x, 1) == DTRAIN_ERR_ABORTED);
        } else {
            dtrain_request_t *request = queue.start("x", &x, 1);
            waiting++;
            FAILS(DTRAIN_ERR_ABORTED, finish(request));
            expect_text(ranks::last_error(), {"aborted by rank 0", "enough"});
        }
    });
}

void peer_killed(bool busy, const ranks::Options &options) {
    constexpr int size = 3, dead = 1;
    processes::Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        {
            Queue queue(comm);
            std::vector<float> a(5), b(200'000);
            dtrain_status_t s = DTRAIN_OK;
            while (s == DTRAIN_OK) {
                dtrain_request_t *first = queue.start("a", a);
                s = outcome(queue, "b", b.data(), b.size());
                dtrain_status_t other = finish(first);
                if (s == DTRAIN_OK) s = other;
                job.seen(rank).rounds++;
                // Then it waits for what never comes.
                if (!busy && s == DTRAIN_OK && job.seen(rank).rounds == 5)
                    s = rank == dead ? DTRAIN_OK : outcome(queue, "missing", a.data(), 1);
            }
            processes::note_failure(job.seen(rank), s);
            REQUIRE(s == DTRAIN_ERR_PEER);
            s = outcome(queue, "after", a.data(), 1);
            REQUIRE(s == DTRAIN_ERR_PEER);
        }
        dtrain_comm_t *survivors = nullptr;
        OK(dtrain_comm_shrink(comm, &survivors));
        {
            Queue queue(survivors);
            int32_t x = 1;
            OK(queue.run("x", &x, 1));
            REQUIRE(x == size - 1);
            OK(dtrain_barrier(survivors, nullptr, nullptr));
        }
        OK(dtrain_comm_destroy(survivors));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 5);
    int64_t since = processes::now_ns();
    job.kill_now(dead);
    job.expect_good_ends();
    for (int r : {0, 2}) {
        assert_int_equal(job.seen(r).status, DTRAIN_ERR_PEER);
        assert_non_null(strstr(job.seen(r).text, "rank 1"));
        assert_true(job.seen(r).failed_ns - since < 5'000 * ms);
    }
}

void peer_killed_while_all_are_busy(void **) {
    peer_killed(true, {});
    peer_killed(true, {{"transports", "tcp"}});
}
void peer_killed_while_some_wait(void **) { peer_killed(false, {}); }

// Whoever is stopped is not yet taken for dead when the time of the tensor, or the join, is over.
void peer_stopped(const ranks::Options &network, bool joins = false) {
    constexpr int64_t timeout_ns = 1'000 * ms, most_ns = 30'000 * ms; // 6 s on a quiet machine
    processes::Job job;
    job.start(2, [&](int rank) {
        ranks::Options options = network;
        options.emplace_back("heartbeat.timeout", "60s");
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        {
            Queue queue(comm);
            float x = 1;
            OK(outcome(queue, "first", &x, 1));
            job.seen(rank).rounds = 1;
            if (rank == 1)
                for (;;) processes::nap();
            while (job.seen(0).go == 0) processes::nap();
            dtrain_op_params_t op;
            DTRAIN_INIT(&op);
            op.timeout_ns = timeout_ns;
            const int64_t begin = processes::now_ns();
            REQUIRE((joins ? dtrain_gradients_join(queue.get(), &op, nullptr, nullptr)
                           : outcome(queue, "second", &x, 1, &op)) == DTRAIN_ERR_TIMEOUT);
            expect_text(ranks::last_error(), {"rank 1"});
            REQUIRE(processes::now_ns() - begin < most_ns);
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(2, 1);
    job.signal(1, SIGSTOP);
    job.seen(0).go = 1;
    job.wait_for_good_end(0);
}
void peer_stopped_over_shm(void **) { peer_stopped({}); }
void peer_stopped_over_tcp(void **) { peer_stopped({{"transports", "tcp"}}); }
void peer_stopped_before_a_join(void **) { peer_stopped({}, true); }

// ---- arguments ----

void bad_arguments(void **) {
    ranks::run_with_contexts(2, {}, [&](int, dtrain_context_t *, dtrain_comm_t *comm) {
        dtrain_gradients_t *none = nullptr;
        Params params;
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_create(nullptr, nullptr, &none));
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_create(comm, nullptr, nullptr));
        params.bucket_bytes = 1;
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_create(comm, &params, &none));
        params = {};
        params.cycle_ns = 2'000 * ms;
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_create(comm, &params, &none));
        params = {};
        params.flags = 1;
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_gradients_create(comm, &params, &none));
        REQUIRE(none == nullptr);
        OK(dtrain_gradients_destroy(nullptr));

        Queue queue(comm);
        dtrain_gradients_t *g = queue.get();
        float x[4] = {};
        auto submit = [&](const char *name, const float *send, float *recv, uint64_t count,
                          uint32_t dtype, uint32_t op) {
            return dtrain_gradients_submit(g, name, send, recv, count, dtype, op, nullptr, nullptr);
        };
        std::string longest(255, 'n'), longer(256, 'n');
        constexpr uint32_t f32 = DTRAIN_F32, sum = DTRAIN_SUM;
        FAILS(DTRAIN_ERR_INVALID, submit(nullptr, x, x, 1, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("", x, x, 1, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit(longer.c_str(), x, x, 1, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", nullptr, x, 1, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, nullptr, 1, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x + 1, 2, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x, 0, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x, UINT64_MAX, f32, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x, 1, 0, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x, 1, 257, sum));
        FAILS(DTRAIN_ERR_INVALID, submit("x", x, x, 1, f32, DTRAIN_BXOR));
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_stats(g, nullptr));
        dtrain_gradients_counters_t counters = {};
        FAILS(DTRAIN_ERR_INVALID, dtrain_gradients_stats(g, &counters));
        counters.struct_size = 16; // an older program's
        counters.exchanges = 77;
        OK(dtrain_gradients_stats(g, &counters));
        REQUIRE(counters.exchanges == 77);

        OK(submit(longest.c_str(), x, x, 4, f32, sum));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void same_name_twice(void **) {
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        float x = 1;
        if (rank == 0) {
            dtrain_request_t *request = queue.start("x", &x, 1), *again = nullptr;
            FAILS(DTRAIN_ERR_BUSY, dtrain_gradients_submit(queue.get(), "x", &x, &x, 1, DTRAIN_F32,
                                                           DTRAIN_SUM, nullptr, &again));
            REQUIRE(again == nullptr);
            FAILS(DTRAIN_ERR_STATE, dtrain_request_cancel(request));
            OK(dtrain_barrier(comm, nullptr, nullptr)); // rank 1 holds back until here
            OK(finish(request));
        } else {
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(queue.run("x", &x, 1));
        }
        REQUIRE(x == 2);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(differences),
        cmocka_unit_test(dtype_or_op_differs),
        cmocka_unit_test(stall_is_logged),
        cmocka_unit_test(stall_fails),
        cmocka_unit_test(submission_times_out),
        cmocka_unit_test(destroyed_with_pending_work),
        cmocka_unit_test(destroyed_right_after_work),
        cmocka_unit_test(outlives_its_communicator),
        cmocka_unit_test(aborted),
        cmocka_unit_test(peer_killed_while_all_are_busy),
        cmocka_unit_test(peer_killed_while_some_wait),
        cmocka_unit_test(peer_stopped_over_shm),
        cmocka_unit_test(peer_stopped_over_tcp),
        cmocka_unit_test(peer_stopped_before_a_join),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(same_name_twice),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
