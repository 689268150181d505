// The program's functions throw, end their thread; its threads are cancelled while they wait.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "dtrain_function.h"

#include <atomic>
#include <pthread.h>
#include <stdexcept>
#include <time.h>
#include <unistd.h>

namespace {

const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}};

int exit_mark;            // what a thread ends with
std::atomic<int> turn{0}; // calls that rank 0 was cancelled in

bool says(const char *text) { return ranks::last_error().find(text) != std::string::npos; }

void a_log_callback_throws(void **) {
    ranks::Options options = over_tcp;
    options.emplace_back("log.level", "debug");
    ranks::run_with_contexts(2, options,
                             [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 OK(dtrain_context_set_log(
                                     context,
                                     [](void *kind, int32_t, const char *) {
                                         if (kind != nullptr) throw 7;
                                         throw std::runtime_error("a full log");
                                     },
                                     rank == 0 ? context : nullptr));
                                 OK(dtrain_barrier(comm, nullptr, nullptr));
                                 dtrain_comm_t *copy = nullptr;
                                 OK(dtrain_comm_duplicate(comm, &copy));
                                 OK(dtrain_comm_abort(copy, "to have something to log"));
                                 OK(dtrain_comm_destroy(copy));
                                 OK(dtrain_barrier(comm, nullptr, nullptr));
                             });
}

void an_oob_callback_throws(void **) {
    dtrain_context_t *context = ranks::make_context(over_tcp);
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = 2;
    params.oob = [](void *, const void *, void *, size_t) -> int32_t {
        throw std::runtime_error("no such network");
    };
    dtrain_comm_t *comm = nullptr;
    FAILS(DTRAIN_ERR_IO, dtrain_comm_create(context, "oob", &params, &comm));
    REQUIRE(says("the oob callback threw an exception (no such network)"));
    OK(dtrain_context_destroy(context));
}

void a_placement_throws(void **) {
    ranks::run(1, over_tcp, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 10;
        params.placement = DTRAIN_PLACE_USER;
        params.place = [](void *, uint64_t, uint64_t, uint32_t) -> uint32_t { throw 1; };
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "t", &params, &table));
        REQUIRE(says("place() threw an exception"));
    });
}

void an_update_rule_throws(void **) {
    ranks::run_with_contexts(1, over_tcp, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_function_t function = {};
        function.struct_size = sizeof function;
        function.abi = DTRAIN_FUNCTION_ABI;
        function.name = "thrower";
        function.update = [](void *, const dtrain_function_batch_t *batch) -> dtrain_status_t {
            static_cast<float *>(batch->rows[0].values)[0] = 99;
            throw std::runtime_error("divided by zero");
        };
        OK(dtrain_function_register(context, &function));
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 10;
        params.rule = DTRAIN_RULE_FUNCTION;
        params.function = "thrower";
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        float values[10] = {1};
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push(table, 0, 10, values, nullptr, nullptr));
        REQUIRE(says("it threw an exception (divided by zero)"));
        OK(dtrain_table_pull(table, 0, 10, values, nullptr, nullptr));
        for (float x : values) REQUIRE(x == 0); // as before
        OK(dtrain_table_destroy(table));
    });
}

// From comm_create(), which holds nothing then that another thread waits for.
void an_oob_callback_ends_its_thread(void **) {
    dtrain_context_t *context = ranks::make_context(over_tcp);
    pthread_t thread;
    REQUIRE(pthread_create(
                &thread, nullptr,
                [](void *it) -> void * {
                    dtrain_comm_params_t params;
                    DTRAIN_INIT(&params);
                    params.size = 2;
                    params.oob = [](void *, const void *, void *, size_t) -> int32_t {
                        pthread_exit(&exit_mark);
                    };
                    dtrain_comm_t *comm = nullptr;
                    (void)dtrain_comm_create(static_cast<dtrain_context_t *>(it), "oob", &params,
                                             &comm);
                    return nullptr;
                },
                context) == 0);
    void *result = nullptr;
    REQUIRE(pthread_join(thread, &result) == 0 && result == &exit_mark);
    OK(dtrain_context_destroy(context));
}

// A thread that makes `call`, and is cancelled once it waits. The call is finished all the same.
class Waiting {
  public:
    explicit Waiting(std::function<void()> call) : call_(std::move(call)) {
        REQUIRE(pthread_create(&thread_, nullptr, &run, this) == 0);
        while (!begun_) nap();
        for (int i = 0; i < 30; i++) nap(); // it spins, then sleeps
        REQUIRE(!done_);
        REQUIRE(pthread_cancel(thread_) == 0);
        for (int i = 0; i < 10; i++) nap();
    }
    ~Waiting() {
        void *result = nullptr;
        REQUIRE(pthread_join(thread_, &result) == 0);
        REQUIRE(done_ && result == PTHREAD_CANCELED);
    }

  private:
    static void nap() {
        timespec t = {0, 1'000'000};
        nanosleep(&t, nullptr);
    }
    static void *run(void *self) {
        auto *waiting = static_cast<Waiting *>(self);
        waiting->begun_ = true;
        waiting->call_();
        waiting->done_ = true;
        for (;;) pause(); // here it ends
    }
    const std::function<void()> call_;
    std::atomic<bool> begun_{false}, done_{false};
    pthread_t thread_{};
};

void cancelled_in_calls(const ranks::Options &options) {
    ranks::run_with_contexts(
        2, options, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            std::vector<float> large(200'000, 1), into(200'000);
            dtrain_cq_t *cq = nullptr;
            OK(dtrain_cq_create(context, 4, &cq));
            const std::function<void()> calls[] = {
                [&] { OK(dtrain_barrier(comm, nullptr, nullptr)); },
                [&] {
                    OK(dtrain_allreduce(comm, large.data(), into.data(), large.size(), DTRAIN_F32,
                                        DTRAIN_SUM, nullptr, nullptr));
                },
                [&] {
                    if (rank == 0)
                        OK(dtrain_recv(comm, into.data(), 1, DTRAIN_F32, 1, 5, nullptr, nullptr));
                    else
                        OK(dtrain_send(comm, large.data(), 1, DTRAIN_F32, 0, 5, nullptr, nullptr));
                },
                [&] {
                    if (rank == 0)
                        OK(dtrain_send(comm, large.data(), large.size(), DTRAIN_F32, 1, 6, nullptr,
                                       nullptr));
                    else
                        OK(dtrain_recv(comm, into.data(), large.size(), DTRAIN_F32, 0, 6, nullptr,
                                       nullptr));
                },
                [&] {
                    dtrain_request_t *request = nullptr;
                    OK(dtrain_barrier(comm, nullptr, &request));
                    OK(dtrain_request_wait(request, -1));
                    dtrain_request_free(request);
                },
                [&] {
                    dtrain_op_params_t params;
                    DTRAIN_INIT(&params);
                    params.cq = cq;
                    OK(dtrain_barrier(comm, &params, nullptr));
                    dtrain_event_t event;
                    REQUIRE(dtrain_cq_poll(cq, &event, 1, -1) == 1 && event.status == DTRAIN_OK);
                },
                [&] {
                    dtrain_comm_t *copy = nullptr;
                    OK(dtrain_comm_duplicate(comm, &copy));
                    OK(dtrain_comm_destroy(copy));
                },
            };
            int calls_made = turn;
            OK(dtrain_barrier(comm, nullptr, nullptr));
            for (const auto &call : calls) {
                if (rank == 0) {
                    Waiting waiting(call);
                    turn++; // rank 1 comes only now
                } else {
                    for (const int wanted = ++calls_made; turn < wanted;) std::this_thread::yield();
                    call();
                }
            }
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_cq_destroy(cq));
        });
}

void cancelled_over_shm(void **) { cancelled_in_calls(over_shm); }
void cancelled_over_tcp(void **) { cancelled_in_calls(over_tcp); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_log_callback_throws),
        cmocka_unit_test(an_oob_callback_throws),
        cmocka_unit_test(a_placement_throws),
        cmocka_unit_test(an_update_rule_throws),
        cmocka_unit_test(an_oob_callback_ends_its_thread),
        cmocka_unit_test(cancelled_over_shm),
        cmocka_unit_test(cancelled_over_tcp),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
