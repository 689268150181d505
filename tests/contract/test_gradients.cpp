// Gradient queues: any order, fusion, the short way, priorities, joining.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gradients.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

using gradients::counters;
using gradients::Params;
using gradients::Queue;

namespace {

constexpr uint32_t seed = 4711;
const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}};

std::string name_of(size_t i) { return "layer" + std::to_string(i) + ".weight"; }

// Every rank in an order of its own, from three threads, many steps.
void any_order(int size, size_t tensors, int steps, const ranks::Options &options) {
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        std::mt19937 random(seed + uint32_t(rank));
        std::vector<std::vector<float>> data(tensors);
        for (size_t i = 0; i < tensors; i++) data[i].resize(1 + i * i % 997);
        for (int step = 1; step <= steps; step++) {
            std::vector<size_t> order(tensors);
            std::iota(order.begin(), order.end(), size_t{0});
            std::shuffle(order.begin(), order.end(), random);
            std::vector<dtrain_request_t *> requests(tensors);
            std::vector<std::thread> threads;
            for (size_t t = 0; t < 3; t++)
                threads.emplace_back([&, t] {
                    for (size_t at = t; at < tensors; at += 3) {
                        size_t i = order[at];
                        std::fill(data[i].begin(), data[i].end(), float(step + int(i) + rank));
                        requests[i] = queue.start(name_of(i), data[i]);
                    }
                });
            for (std::thread &thread : threads) thread.join();
            for (size_t i = 0; i < tensors; i++) {
                OK(gradients::finish(requests[i]));
                auto sum = float(size * (step + int(i)) + size * (size - 1) / 2);
                for (float x : data[i]) REQUIRE(x == sum);
            }
        }
        REQUIRE(counters(queue).tensors == tensors * size_t(steps));
        OK(dtrain_barrier(comm, nullptr, nullptr)); // all are done
    });
}

void any_order_from_any_thread(void **) {
    any_order(1, 50, 3, over_shm);
    any_order(2, 300, 5, over_shm);
    any_order(5, 60, 5, over_shm);
    any_order(3, 60, 3, over_tcp);
    any_order(2, 60, 3, {{"progress", "manual"}});
    any_order(2, 60, 3, {{"progress", "thread"}});
    any_order(2, 60, 5, {{"gradients.known", "20"}, {"gradients.bucket", "64K"}});
}

void a_thousand_tensors(void **) { any_order(3, 1000, 4, over_shm); }

// What is submitted within a cycle goes together, and the short way once it is known.
void fused_and_known(void **) {
    constexpr size_t tensors = 200;
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        Params params;
        params.cycle_ns = 1'000'000'000;
        Queue queue(comm, params);
        std::vector<std::vector<double>> data(tensors, std::vector<double>(50, rank));
        auto step = [&] {
            std::vector<dtrain_request_t *> requests;
            for (size_t i = 0; i < tensors; i++)
                requests.push_back(queue.start(name_of((i * 7 + size_t(rank)) % tensors),
                                               data[(i * 7 + size_t(rank)) % tensors]));
            double last = 1;
            OK(queue.run("last", &last, 1)); // somebody waits: the cycle begins at once
            for (dtrain_request_t *request : requests) OK(gradients::finish(request));
        };
        step();
        OK(dtrain_barrier(comm, nullptr, nullptr)); // nobody has anything new to say
        dtrain_gradients_counters_t before = counters(queue);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        for (int i = 0; i < 20; i++) step();
        dtrain_gradients_counters_t after = counters(queue);
        REQUIRE(after.exchanges == before.exchanges);
        REQUIRE(after.cycles >= before.cycles + 20);
        REQUIRE(after.tensors == before.tensors + 20 * (tensors + 1));
        // A cycle may begin while a rank is in the middle of submitting, once a second.
        REQUIRE(after.buckets - before.buckets < 20 * 20);
        REQUIRE(after.fused_tensors - before.fused_tensors > 20 * tensors * 3 / 4);
        REQUIRE(after.fused_bytes - before.fused_bytes > 20 * tensors * 3 / 4 * 50 * 8);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void every_type_and_size(void **) {
    for (auto &options : {over_shm, over_tcp})
        ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
            Params params;
            params.bucket_bytes = 65536;
            Queue queue(comm, params);
            for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++)
                for (size_t count : {1u, 1000u, 100'000u}) {
                    std::vector<uint8_t> send(count * dtrain_dtype_size(dtype), uint8_t(1 + rank));
                    std::vector<uint8_t> got(send.size()), wanted(send.size());
                    OK(dtrain_allreduce(comm, send.data(), wanted.data(), count, dtype, DTRAIN_MAX,
                                        nullptr, nullptr));
                    OK(dtrain_gradients_submit(queue.get(), "x", send.data(), got.data(), count,
                                               dtype, DTRAIN_MAX, nullptr, nullptr));
                    REQUIRE(got == wanted);
                }
            OK(dtrain_barrier(comm, nullptr, nullptr));
        });
}

// The order of reducing, told by a completion queue. Tensors of a bucket's size go one by one.
bool overtakes(dtrain_context_t *context, Queue &queue, std::vector<std::vector<float>> &data) {
    dtrain_cq_t *cq = nullptr;
    OK(dtrain_cq_create(context, 0, &cq));
    for (size_t i = 0; i < data.size(); i++) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.cq = cq;
        op.user_tag = i;
        op.priority = int32_t(i); // the last layer's gradient is ready first, the first one's last
        OK(dtrain_gradients_submit(queue.get(), name_of(i).c_str(), data[i].data(), data[i].data(),
                                   data[i].size(), DTRAIN_F32, DTRAIN_SUM, &op, nullptr));
    }
    float go = 1;
    OK(queue.run("go", &go, 1));
    std::vector<uint64_t> order;
    while (order.size() < data.size()) {
        dtrain_event_t event;
        int32_t n = dtrain_cq_poll(cq, &event, 1, 60'000'000'000);
        REQUIRE(n == 1 && event.status == DTRAIN_OK && event.request == nullptr);
        REQUIRE(event.bytes == data[0].size() * sizeof(float));
        order.push_back(event.user_tag);
    }
    OK(dtrain_cq_destroy(cq));
    return std::is_sorted(order.rbegin(), order.rend());
}

void higher_priority_goes_first(void **) {
    ranks::run_with_contexts(2, {}, [&](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        Params params;
        params.cycle_ns = 1'000'000'000;
        params.bucket_bytes = 65536;
        Queue queue(comm, params);
        std::vector<std::vector<float>> data(8, std::vector<float>(65536 / sizeof(float), 1));
        // Once a second a cycle may begin in the middle of submitting.
        bool seen = false;
        for (int attempt = 0; attempt < 20; attempt++)
            seen = overtakes(context, queue, data) || seen;
        REQUIRE(seen);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void two_queues_at_once(void **) {
    ranks::run(3, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue first(comm), second(comm);
        for (int step = 0; step < 20; step++) {
            int32_t a = rank, b = 10 * rank, c = 100 * rank;
            Queue &early = rank == 1 ? second : first, &late = rank == 1 ? first : second;
            int32_t &early_value = rank == 1 ? b : a, &late_value = rank == 1 ? a : b;
            dtrain_request_t *one = early.start("x", &early_value, 1);
            dtrain_request_t *two = late.start("x", &late_value, 1);
            OK(dtrain_allreduce(comm, &c, &c, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
            OK(gradients::finish(two));
            OK(gradients::finish(one));
            REQUIRE(a == 3 && b == 30 && c == 300);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// ---- joining ----

// Rank r has r + 1 batches; the sums are over those who still have some.
void uneven_batches(void **) {
    constexpr int size = 4;
    ranks::run(size, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        for (int epoch = 0; epoch < 3; epoch++) {
            for (int batch = 0; batch <= rank; batch++) {
                std::vector<float> small(10, float(rank)), large(1000, float(rank));
                dtrain_request_t *request = queue.start("small", small);
                OK(queue.run("large", large.data(), large.size(), DTRAIN_AVG));
                OK(gradients::finish(request));
                float sum = 0; // of the ranks from `batch` on
                for (int r = batch; r < size; r++) sum += float(r);
                for (float x : small) REQUIRE(x == sum);
                for (float x : large) REQUIRE(x == sum / size);
            }
            int32_t last = -1;
            OK(dtrain_gradients_join(queue.get(), nullptr, &last, nullptr));
            REQUIRE(last >= 0 && last < size);
            int32_t lasts[size];
            OK(dtrain_allgather(comm, &last, lasts, 1, DTRAIN_I32, nullptr, nullptr));
            for (int32_t l : lasts) REQUIRE(l == last);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void sums_without_rank_0(Queue &queue, int rank) {
    std::vector<int64_t> send(300'001, rank), recv(send.size());
    int64_t few[20];
    std::vector<dtrain_request_t *> requests;
    for (int i = 0; i < 20; i++) {
        few[i] = i;
        requests.push_back(queue.start(name_of(size_t(i)), few + i, 1));
    }
    OK(dtrain_gradients_submit(queue.get(), "huge", send.data(), recv.data(), send.size(),
                               DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr));
    for (int64_t x : recv) REQUIRE(x == 3);
    for (int i = 0; i < 20; i++) {
        OK(gradients::finish(requests[size_t(i)]));
        REQUIRE(few[i] == 2 * i);
    }
}

// What a joined rank never saw, together and larger than the memory that it has for it.
void joined_rank_takes_part_in_anything(void **) {
    for (auto &options : {over_shm, over_tcp})
        ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
            Params params;
            params.bucket_bytes = 65536;
            params.cycle_ns = 1'000'000'000; // what is small goes together
            Queue queue(comm, params);
            if (rank == 0) {
                dtrain_request_t *request = nullptr;
                OK(dtrain_gradients_join(queue.get(), nullptr, nullptr, &request));
                int32_t x = 1;
                FAILS(DTRAIN_ERR_STATE, queue.run("mine", &x, 1));
                OK(dtrain_request_wait(request, -1));
                dtrain_event_t event;
                OK(dtrain_request_result(request, &event));
                REQUIRE(event.peer == 1 || event.peer == 2);
                dtrain_request_free(request);
            } else {
                for (int round = 0; round < 3; round++) sums_without_rank_0(queue, rank);
                float x = 1;
                dtrain_status_t s = queue.run("max", &x, 1, DTRAIN_MAX);
                REQUIRE(s == DTRAIN_ERR_UNSUPPORTED);
                REQUIRE(ranks::last_error().find("has joined") != std::string::npos);
                OK(dtrain_gradients_join(queue.get(), nullptr, nullptr, nullptr));
            }
            double x = rank;
            OK(queue.run("all again", &x, 1));
            REQUIRE(x == 3);
            OK(dtrain_barrier(comm, nullptr, nullptr));
        });
}

void join_may_time_out(void **) {
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        Queue queue(comm);
        int32_t last = -1;
        if (rank == 0) {
            dtrain_op_params_t op;
            DTRAIN_INIT(&op);
            op.timeout_ns = 1'000'000;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_gradients_join(queue.get(), &op, &last, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_gradients_join(queue.get(), nullptr, &last, nullptr));
        REQUIRE(last == 1);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// Cycles are rare while nobody has anything to say.
void idle_queues_rest(void **) {
    ranks::run(2, {}, [&](int, dtrain_comm_t *comm) {
        Queue queue(comm);
        float x = 1;
        OK(queue.run("x", &x, 1));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        uint64_t before = counters(queue).cycles;
        auto begun = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        uint64_t cycles = counters(queue).cycles - before;
        auto passed = std::chrono::steady_clock::now() - begun;
        REQUIRE(cycles <= 3 + uint64_t(passed / std::chrono::seconds(1)));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(any_order_from_any_thread),
        cmocka_unit_test(a_thousand_tensors),
        cmocka_unit_test(fused_and_known),
        cmocka_unit_test(every_type_and_size),
        cmocka_unit_test(higher_priority_goes_first),
        cmocka_unit_test(two_queues_at_once),
        cmocka_unit_test(uneven_batches),
        cmocka_unit_test(joined_rank_takes_part_in_anything),
        cmocka_unit_test(join_may_time_out),
        cmocka_unit_test(idle_queues_rest),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
