// Operations that are prepared once and started many times, alone and in groups.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <latch>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t allocations = 0; // they have a malloc of their own
#else
// Of this thread, the library's too.
static thread_local uint64_t allocations = 0;
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void *malloc(size_t bytes) {
    allocations++;
    return __libc_malloc(bytes);
}
#endif

namespace {

constexpr int ranks_here = 3;

dtrain_op_params_t persistent() {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.flags = DTRAIN_OP_PERSISTENT;
    return params;
}

float value(int rank, size_t i, int round) { return float(rank + 1) * float(i % 7) + float(round); }
float total(size_t i, int round) {
    float sum = 0;
    for (int rank = 0; rank < ranks_here; rank++) sum += value(rank, i, round);
    return sum;
}

// A sum, a sum in place, a ragged all-gather and a broadcast, of `count` elements about.
struct Step {
    Step(dtrain_comm_t *comm, size_t count)
        : rank(dtrain_comm_rank(comm)), mine(count), sum(count), in_place(count), root_has(count) {
        dtrain_op_params_t params = persistent();
        std::vector<uint64_t> counts; // only needed while the operation is prepared
        for (int r = 0; r < ranks_here; r++) counts.push_back(count / size_t(r + 1));
        gathered.resize(counts[0] + counts[1] + counts[2]);
        OK(dtrain_allreduce(comm, mine.data(), sum.data(), count, DTRAIN_F32, DTRAIN_SUM, &params,
                            &requests[0]));
        OK(dtrain_allreduce(comm, in_place.data(), in_place.data(), count, DTRAIN_F32, DTRAIN_SUM,
                            &params, &requests[1]));
        OK(dtrain_allgatherv(comm, mine.data(), gathered.data(), counts.data(), nullptr, DTRAIN_F32,
                             &params, &requests[2]));
        OK(dtrain_broadcast(comm, root_has.data(), count, DTRAIN_F32, 1, &params, &requests[3]));
        counts.assign(ranks_here, UINT64_MAX);
    }
    ~Step() {
        for (dtrain_request_t *request : requests) dtrain_request_free(request);
    }
    void fill(int round) {
        for (size_t i = 0; i < mine.size(); i++) {
            mine[i] = in_place[i] = value(rank, i, round);
            root_has[i] = rank == 1 ? value(9, i, round) : -1;
        }
    }
    void check(int round) const {
        size_t at = 0;
        for (int r = 0; r < ranks_here; r++)
            for (size_t i = 0; i < mine.size() / size_t(r + 1); i++)
                REQUIRE(gathered[at++] == value(r, i, round));
        for (size_t i = 0; i < mine.size(); i++) {
            REQUIRE(sum[i] == total(i, round) && in_place[i] == total(i, round));
            REQUIRE(root_has[i] == value(9, i, round));
        }
    }
    const int rank;
    std::vector<float> mine, sum, in_place, root_has, gathered;
    dtrain_request_t *requests[4] = {};
};

void again_and_again(const ranks::Options &options, size_t count) {
    ranks::run(ranks_here, options, [&](int, dtrain_comm_t *comm) {
        Step step(comm, count);
        for (dtrain_request_t *request : step.requests)
            OK(dtrain_request_test(request)); // not begun: nothing to wait for
        for (int round = 0; round < 25; round++) {
            step.fill(round);
            OK(dtrain_request_start(step.requests, 4));
            for (dtrain_request_t *request : step.requests) OK(dtrain_request_wait(request, -1));
            step.check(round);
            // Between them other calls, which replace what the communicator knows of the last one.
            float one = 1;
            OK(dtrain_allreduce(comm, &one, &one, 1, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
            REQUIRE(one == ranks_here);
        }
    });
}

void in_shared_memory(void **) {
    for (size_t count : {6u, 3000u, 200000u}) again_and_again({}, count);
}
void over_tcp(void **) {
    for (size_t count : {6u, 3000u, 200000u}) again_and_again({{"transports", "tcp"}}, count);
}

// Each rank sends to the next one, and averages over a ring whose handle is gone.
void messages_and_neighbors(void **) {
    for (auto &options : {ranks::Options{}, ranks::Options{{"transports", "tcp"}}})
        ranks::run(ranks_here, options, [](int rank, dtrain_comm_t *comm) {
            const int from = (rank + 2) % ranks_here, to = (rank + 1) % ranks_here;
            dtrain_graph_params_t ring;
            DTRAIN_INIT(&ring);
            ring.kind = DTRAIN_GRAPH_RING;
            dtrain_graph_t *graph = nullptr;
            OK(dtrain_graph_create(comm, &ring, &graph));
            dtrain_op_params_t params = persistent();
            std::vector<float> mine(70000), received(mine.size()), average(mine.size());
            dtrain_request_t *requests[3] = {};
            OK(dtrain_recv(comm, received.data(), received.size(), DTRAIN_F32, from, 5, &params,
                           &requests[0]));
            OK(dtrain_send(comm, mine.data(), mine.size(), DTRAIN_F32, to, 5, &params,
                           &requests[1]));
            OK(dtrain_neighbor_average(graph, mine.data(), average.data(), mine.size(), DTRAIN_F32,
                                       &params, &requests[2]));
            dtrain_graph_destroy(graph);
            for (int round = 0; round < 10; round++) {
                for (size_t i = 0; i < mine.size(); i++) mine[i] = value(rank, i, round);
                OK(dtrain_request_start(requests, 3));
                for (dtrain_request_t *request : requests) OK(dtrain_request_wait(request, -1));
                for (size_t i = 0; i < mine.size(); i++) {
                    REQUIRE(received[i] == value(from, i, round));
                    REQUIRE(std::abs(average[i] - total(i, round) / ranks_here) < 1e-4f);
                }
            }
            for (dtrain_request_t *request : requests) dtrain_request_free(request);
        });
}

void allocates_nothing_each_time(void **) {
    // Nobody reports that he waits, which takes memory, on a machine where ranks run in turns.
    const std::pair<std::string, std::string> quiet = {"stall.check", "60s"};
    for (auto &options : {ranks::Options{quiet}, ranks::Options{quiet, {"transports", "tcp"}}})
        for (size_t count : {6u, 3000u, 200000u})
            ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
                dtrain_op_params_t params = persistent();
                std::vector<float> data(count), sum(count);
                dtrain_request_t *requests[2] = {};
                OK(dtrain_allreduce(comm, data.data(), sum.data(), count, DTRAIN_F32, DTRAIN_SUM,
                                    &params, &requests[0]));
                if (rank == 0)
                    OK(dtrain_recv(comm, data.data(), count, DTRAIN_F32, 1, 0, &params,
                                   &requests[1]));
                else
                    OK(dtrain_send(comm, sum.data(), count, DTRAIN_F32, 0, 0, &params,
                                   &requests[1]));
                uint64_t before = 0;
                for (int round = 0; round < 60; round++) {
                    if (round == 10) before = allocations;
                    OK(dtrain_request_start(requests, 2));
                    for (dtrain_request_t *request : requests) OK(dtrain_request_wait(request, -1));
                }
                // Transports keep what they once needed at a time.
                REQUIRE(allocations - before < 20);
                for (dtrain_request_t *request : requests) dtrain_request_free(request);
            });
}

void reports_to_a_queue(void **) {
    ranks::run_with_contexts(
        ranks_here, {}, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            dtrain_cq_t *queue = nullptr;
            OK(dtrain_cq_create(context, 1, &queue)); // a place for one
            dtrain_op_params_t params = persistent();
            params.cq = queue;
            params.user_tag = 77;
            params.postscale = 0.5;
            float data = 0;
            dtrain_request_t *request = nullptr;
            OK(dtrain_allreduce(comm, &data, &data, 1, DTRAIN_F32, DTRAIN_SUM, &params, &request));
            for (int round = 0; round < 10; round++) {
                data = float(rank + round);
                OK(dtrain_request_start(&request, 1));
                dtrain_event_t event;
                REQUIRE(dtrain_cq_poll(queue, &event, 1, -1) == 1);
                REQUIRE(event.user_tag == 77 && event.request == request &&
                        event.status == DTRAIN_OK);
                REQUIRE(data == float(3 + 3 * round) / 2);
            }
            dtrain_request_free(request);
            OK(dtrain_cq_destroy(queue));
        });
}

void misuse(void **) {
    std::latch looked(1);
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        dtrain_op_params_t params = persistent();
        float data[2] = {1, 2};
        dtrain_request_t *request = nullptr, *once = nullptr, *const nothing = nullptr;
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, data, data, 2, DTRAIN_F32, DTRAIN_SUM, &params, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, data, data, 2, 99, DTRAIN_SUM, &params, &request));
        REQUIRE(request == nullptr);
        FAILS(DTRAIN_ERR_INVALID, dtrain_request_start(nullptr, 1));
        FAILS(DTRAIN_ERR_INVALID, dtrain_request_start(&nothing, 1));
        OK(dtrain_request_start(nullptr, 0));
        OK(dtrain_allreduce(comm, data, data, 2, DTRAIN_F32, DTRAIN_SUM, &params, &request));
        FAILS(DTRAIN_ERR_BUSY, dtrain_comm_destroy(comm));
        if (rank == 1) looked.wait();
        OK(dtrain_request_start(&request, 1));
        if (rank == 0) {
            dtrain_status_t again = dtrain_request_start(&request, 1);
            looked.count_down();
            REQUIRE(again == DTRAIN_ERR_BUSY);
        }
        OK(dtrain_request_wait(request, -1));
        REQUIRE(data[0] == 2 && data[1] == 4);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_allreduce(comm, data, data, 2, DTRAIN_F32, DTRAIN_SUM, nullptr, &once));
        FAILS(DTRAIN_ERR_INVALID, dtrain_request_start(&once, 1));
        OK(dtrain_request_wait(once, -1));
        dtrain_request_free(once);
        dtrain_request_free(request);
    });
}

// It ends on its own, and the communicator is free when it has.
void freed_while_it_runs(void **) {
    ranks::run(2, {}, [](int, dtrain_comm_t *comm) {
        dtrain_comm_t *own = nullptr;
        OK(dtrain_comm_duplicate(comm, &own));
        dtrain_op_params_t params = persistent();
        float data[2] = {1, 2};
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(own, data, data, 2, DTRAIN_F32, DTRAIN_SUM, &params, &request));
        OK(dtrain_request_start(&request, 1));
        dtrain_request_free(request);
        OK(dtrain_barrier(own, nullptr, nullptr));
        REQUIRE(data[0] == 2 && data[1] == 4);
        dtrain_status_t s = DTRAIN_ERR_BUSY;
        while (s == DTRAIN_ERR_BUSY) s = dtrain_comm_destroy(own);
        REQUIRE(s == DTRAIN_OK);
    });
}

// A caller that has waited for it and freed it may destroy the communicator, however late the
// thread that completed it runs on.
void freed_when_it_has_finished(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        for (int round = 0; round < 100; round++) {
            dtrain_comm_t *own = nullptr;
            OK(dtrain_comm_duplicate(comm, &own));
            dtrain_op_params_t params = persistent();
            params.timeout_ns = 100'000;
            float data = 1;
            dtrain_request_t *request = nullptr;
            OK(dtrain_recv(own, &data, 1, DTRAIN_F32, rank, 0, &params, &request));
            OK(dtrain_request_start(&request, 1));
            dtrain_event_t event;
            while (dtrain_request_result(request, &event) != DTRAIN_OK) {
            }
            REQUIRE(event.status == DTRAIN_ERR_TIMEOUT);
            dtrain_request_free(request);
            OK(dtrain_comm_destroy(own));
        }
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(in_shared_memory),       cmocka_unit_test(over_tcp),
        cmocka_unit_test(reports_to_a_queue),     cmocka_unit_test(misuse),
        cmocka_unit_test(freed_while_it_runs),    cmocka_unit_test(freed_when_it_has_finished),
        cmocka_unit_test(messages_and_neighbors), cmocka_unit_test(allocates_nothing_each_time),
    };
    return cmocka_run_group_tests_name("persistent", tests, nullptr, nullptr);
}
