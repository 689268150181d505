// Point to point, requests and completion queues.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <atomic>
#include <poll.h>

namespace {

using ranks::last_error;

dtrain_op_params_t op_params(dtrain_cq_t *queue = nullptr, uint64_t user_tag = 0,
                             int64_t timeout_ns = 0) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.cq = queue;
    params.user_tag = user_tag;
    params.timeout_ns = timeout_ns;
    return params;
}

void in_order(const ranks::Options &options) {
    ranks::run(2, options, [](int rank, dtrain_comm_t *comm) {
        for (uint64_t count : {0u, 1u, 1000u, 100000u}) {
            std::vector<int32_t> data(count);
            for (int32_t i = 0; i < 5; i++) {
                if (rank == 0) {
                    data.assign(count, i);
                    OK(dtrain_send(comm, data.data(), count, DTRAIN_I32, 1, 7, nullptr, nullptr));
                } else {
                    data.assign(count, -1);
                    OK(dtrain_recv(comm, data.data(), count, DTRAIN_I32, 0, 7, nullptr, nullptr));
                    for (int32_t x : data) REQUIRE(x == i);
                }
            }
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void messages_keep_their_order(void **) {
    in_order({});
    in_order({{"transports", "tcp"}});
    in_order({{"progress", "manual"}});
}

void from_any_rank(const ranks::Options &options) {
    constexpr int size = 4;
    ranks::run(size, options, [](int rank, dtrain_comm_t *comm) {
        if (rank != 0) {
            OK(dtrain_send(comm, &rank, 1, DTRAIN_I32, 0, 3, nullptr, nullptr));
        } else {
            bool seen[size] = {true};
            for (int i = 1; i < size; i++) {
                int32_t value = -1;
                dtrain_request_t *request = nullptr;
                dtrain_event_t event;
                OK(dtrain_recv(comm, &value, 1, DTRAIN_I32, DTRAIN_ANY_RANK, 3, nullptr, &request));
                OK(dtrain_request_wait(request, -1));
                OK(dtrain_request_result(request, &event));
                REQUIRE(event.peer == value && value > 0 && value < size && !seen[value]);
                REQUIRE(event.bytes == sizeof value && event.request == request);
                seen[value] = true;
                dtrain_request_free(request);
            }
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void any_rank(void **) {
    from_any_rank({});
    from_any_rank({{"transports", "tcp"}});
}

void truncated(const ranks::Options &options) {
    ranks::run(2, options, [](int rank, dtrain_comm_t *comm) {
        for (uint64_t count : {10u, 200000u}) {
            std::vector<float> data(count, 1);
            if (rank == 0) {
                OK(dtrain_send(comm, data.data(), count, DTRAIN_F32, 1, 0, nullptr, nullptr));
                continue;
            }
            data.assign(count, 2);
            FAILS(DTRAIN_ERR_TRUNCATED,
                  dtrain_recv(comm, data.data(), 5, DTRAIN_F32, 0, 0, nullptr, nullptr));
            REQUIRE(last_error().find(std::to_string(count * 4)) != std::string::npos);
            for (uint64_t i = 5; i < count; i++) REQUIRE(data[i] == 2);
        }
        OK(dtrain_comm_status(comm)); // only that receive failed
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void long_messages_are_truncated(void **) {
    truncated({});
    truncated({{"transports", "tcp"}});
}

void self(const ranks::Options &options, int size) {
    ranks::run(size, options, [](int rank, dtrain_comm_t *comm) {
        std::vector<uint64_t> sent(50000, uint64_t(rank)), got(50000, 99);
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(comm, got.data(), got.size(), DTRAIN_U64, rank, 1, nullptr, &request));
        OK(dtrain_send(comm, sent.data(), sent.size(), DTRAIN_U64, rank, 1, nullptr, nullptr));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        REQUIRE(got == sent);
    });
}
void to_itself(void **) {
    self({}, 1);
    self({}, 2);
    self({{"transports", "tcp"}}, 2);
}

void cancel_and_time_out(const ranks::Options &options) {
    ranks::run(2, options, [](int rank, dtrain_comm_t *comm) {
        int32_t value = 0;
        dtrain_request_t *request = nullptr;
        dtrain_op_params_t params = op_params(nullptr, 0, 0);
        for (uint32_t flags : {0u, DTRAIN_OP_AWAITED}) {
            params.flags = flags;
            OK(dtrain_recv(comm, &value, 1, DTRAIN_I32, 1 - rank, 5, &params, &request));
            REQUIRE(dtrain_request_test(request) == DTRAIN_IN_PROGRESS);
            REQUIRE(dtrain_request_wait(request, 1'000'000) == DTRAIN_IN_PROGRESS);
            dtrain_event_t event;
            FAILS(DTRAIN_ERR_STATE, dtrain_request_result(request, &event));
            OK(dtrain_request_cancel(request));
            FAILS(DTRAIN_ERR_CANCELED, dtrain_request_wait(request, -1));
            OK(dtrain_request_result(request, &event));
            REQUIRE(event.status == DTRAIN_ERR_CANCELED);
            OK(dtrain_request_cancel(request)); // over already
            dtrain_request_free(request);
        }
        dtrain_op_params_t soon = op_params(nullptr, 0, 20'000'000);
        FAILS(DTRAIN_ERR_TIMEOUT,
              dtrain_recv(comm, &value, 1, DTRAIN_I32, 1 - rank, 5, &soon, nullptr));
        // What was cancelled takes nothing away from those that follow.
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_recv(comm, &value, 1, DTRAIN_I32, 1 - rank, 5, nullptr, &request));
        OK(dtrain_send(comm, &rank, 1, DTRAIN_I32, 1 - rank, 5, nullptr, nullptr));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        REQUIRE(value == 1 - rank);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void receives_end_early(void **) {
    cancel_and_time_out({});
    cancel_and_time_out({{"transports", "tcp"}});
}

void collectives_are_not_cancelled(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        std::vector<float> data(100000, 1);
        dtrain_request_t *request = nullptr;
        if (rank == 0) {
            OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                                nullptr, &request));
            FAILS(DTRAIN_ERR_STATE, dtrain_request_cancel(request));
            OK(dtrain_send(comm, nullptr, 0, DTRAIN_U8, 1, 0, nullptr, nullptr));
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        } else {
            OK(dtrain_recv(comm, nullptr, 0, DTRAIN_U8, 0, 0, nullptr, nullptr));
            OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                                nullptr, nullptr));
        }
        for (float x : data) REQUIRE(x == 2);
    });
}

// One rank never calls: the other's operation, and with it the communicator, ends in time.
void collective_times_out(const ranks::Options &options) {
    ranks::run(2, options, [](int rank, dtrain_comm_t *comm) {
        float x = 1;
        dtrain_op_params_t soon = op_params(nullptr, 0, 100'000'000);
        if (rank == 0) {
            FAILS(DTRAIN_ERR_TIMEOUT,
                  dtrain_allreduce(comm, &x, &x, 1, DTRAIN_F32, DTRAIN_SUM, &soon, nullptr));
            REQUIRE(last_error().find("all_reduce") != std::string::npos);
        } else {
            while (dtrain_comm_status(comm) == DTRAIN_OK) std::this_thread::yield();
        }
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_status(comm));
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_barrier(comm, nullptr, nullptr));
    });
}
void collectives_time_out(void **) {
    collective_times_out({});
    collective_times_out({{"transports", "tcp"}});
}

// A message that nobody has received when its communicator ends, or which comes after that, is no
// message of another one, though their number is finite.
void end_with_their_communicator(const ranks::Options &options) {
    std::atomic<int32_t> ended{0};
    ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
        for (int32_t i = 0; i < 150; i++) { // there are 512 numbers
            dtrain_comm_t *first = nullptr, *second = nullptr;
            OK(dtrain_comm_duplicate(comm, &first));
            if (rank == 0) {
                while (ended <= i) std::this_thread::yield();
                const int32_t stale = -i;
                OK(dtrain_send(first, &stale, 1, DTRAIN_I32, 1, 7, nullptr, nullptr));
            }
            OK(dtrain_comm_destroy(first));
            if (rank == 1) ended = i + 1;
            OK(dtrain_comm_duplicate(comm, &second));
            int32_t x = i;
            if (rank == 0) {
                OK(dtrain_send(second, &x, 1, DTRAIN_I32, 1, 7, nullptr, nullptr));
            } else {
                x = -1;
                OK(dtrain_recv(second, &x, 1, DTRAIN_I32, 0, 7, nullptr, nullptr));
                REQUIRE(x == i);
            }
            OK(dtrain_comm_destroy(second));
        }
    });
}
void messages_end_with_their_communicator(void **) {
    end_with_their_communicator({});
    end_with_their_communicator({{"transports", "shm"}});
}

void queues_report(const ranks::Options &options) {
    ranks::run_with_contexts(
        2, options, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr int count = 20;
            dtrain_cq_t *queue = nullptr;
            OK(dtrain_cq_create(context, count, &queue));
            dtrain_event_t events[count + 1];
            REQUIRE(dtrain_cq_poll(queue, events, 1, 0) == 0);
            REQUIRE(dtrain_cq_poll(queue, events, 1, 1'000'000) == 0);
            int32_t values[count];
            dtrain_request_t *requests[count];
            for (int i = 0; i < count; i++) {
                dtrain_op_params_t params = op_params(queue, uint64_t(i));
                OK(dtrain_recv(comm, &values[i], 1, DTRAIN_I32, 1 - rank, uint32_t(i), &params,
                               i % 2 ? &requests[i] : nullptr));
            }
            dtrain_op_params_t params = op_params(queue);
            FAILS(DTRAIN_ERR_BUSY,
                  dtrain_recv(comm, values, 1, DTRAIN_I32, 1 - rank, 99, &params, nullptr));
            FAILS(DTRAIN_ERR_BUSY, dtrain_cq_destroy(queue));
            for (int i = count; i-- > 0;)
                OK(dtrain_send(comm, &i, 1, DTRAIN_I32, 1 - rank, uint32_t(i), nullptr, nullptr));
            int seen = 0;
            while (seen < count) {
                // With the helper's progress the descriptor alone tells.
                pollfd fd = {.fd = dtrain_cq_fd(queue), .events = POLLIN, .revents = 0};
                REQUIRE(poll(&fd, 1, 30'000) == 1);
                int32_t n = dtrain_cq_poll(queue, events, count + 1, 0);
                REQUIRE(n > 0);
                for (int32_t i = 0; i < n; i++) {
                    auto k = int(events[i].user_tag);
                    OK(events[i].status);
                    REQUIRE(values[k] == k && events[i].bytes == 4 && events[i].peer == 1 - rank);
                    REQUIRE(events[i].request == (k % 2 ? requests[k] : nullptr));
                    if (k % 2) dtrain_request_free(requests[k]);
                }
                seen += n;
            }
            pollfd fd = {.fd = dtrain_cq_fd(queue), .events = POLLIN, .revents = 0};
            REQUIRE(poll(&fd, 1, 0) == 0);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            FAILS(DTRAIN_ERR_BUSY, dtrain_context_destroy(context));
            OK(dtrain_cq_destroy(queue));
        });
}
void queues(void **) {
    queues_report({});
    queues_report({{"transports", "tcp"}});
    queues_report({{"progress", "thread"}});
}

// A request may be freed before, while and after its operation ends.
void requests_are_freed_at_any_time(void **) {
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        std::vector<float> data(20000, 1), more(20000, 1);
        dtrain_request_t *first = nullptr, *second = nullptr;
        OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, &first));
        dtrain_request_free(first);
        OK(dtrain_allreduce(comm, more.data(), more.data(), more.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, &second));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank != 0) OK(dtrain_request_wait(second, -1));
        if (rank == 1) OK(dtrain_request_wait(second, 0));
        dtrain_request_free(second);
        dtrain_request_free(nullptr);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(any_rank),
        cmocka_unit_test(long_messages_are_truncated),
        cmocka_unit_test(to_itself),
        cmocka_unit_test(receives_end_early),
        cmocka_unit_test(collectives_are_not_cancelled),
        cmocka_unit_test(collectives_time_out),
        cmocka_unit_test(messages_end_with_their_communicator),
        cmocka_unit_test(queues),
        cmocka_unit_test(requests_are_freed_at_any_time),
    };
    return cmocka_run_group_tests_name("messages", tests, nullptr, nullptr);
}
