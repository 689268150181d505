// A call that waits several times ends by op.timeout all the same: a rank comes to it late, and
// from some message on nothing arrives any more. Each message of the call is the first one lost in
// one job. SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <atomic>
#include <barrier>
#include <chrono>

namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t limit_ns = 3'000 * ms, late_ns = limit_ns * 4 / 5;
constexpr int64_t bound_ns = limit_ns * 3 / 2; // two waits would take 1.8 times as long
constexpr int size = 2;
// That a device sends unharmed; joining takes some of them, and of those that are left all but so
// many are sent before the call.
constexpr int unharmed = 20, least_seen = 1, most_seen = 9;

int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

ranks::Options options() {
    return {{"plugin.path", PLUGIN_FOLDER},
            {"transports", "fault"},
            {"plugin.fault.over", "tcp"},
            {"plugin.fault.after", std::to_string(unharmed)},
            {"plugin.fault.drop", "1000"},
            {"log.level", "error"},
            {"op.timeout", std::to_string(limit_ns) + "ns"}};
}

dtrain_status_t end(dtrain_status_t s, dtrain_comm_t *made) {
    if (made != nullptr) OK(dtrain_comm_destroy(made));
    return s;
}
dtrain_status_t split(dtrain_comm_t *comm) {
    dtrain_comm_t *made = nullptr;
    const dtrain_status_t s = dtrain_comm_split(comm, 0, 0, &made);
    return end(s, made);
}
dtrain_status_t subset(dtrain_comm_t *comm) {
    const int32_t all[size] = {1, 0};
    dtrain_comm_t *made = nullptr;
    const dtrain_status_t s = dtrain_comm_subset(comm, all, size, &made);
    return end(s, made);
}
dtrain_status_t shrink(dtrain_comm_t *comm) {
    dtrain_comm_t *made = nullptr;
    const dtrain_status_t s = dtrain_comm_shrink(comm, &made);
    return end(s, made);
}
dtrain_status_t graph(dtrain_comm_t *comm) {
    const int32_t other = 1 - dtrain_comm_rank(comm);
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_GRAPH_CUSTOM;
    params.in_count = params.out_count = 1;
    params.in_neighbors = params.out_neighbors = &other;
    dtrain_graph_t *made = nullptr;
    const dtrain_status_t s = dtrain_graph_create(comm, &params, &made);
    dtrain_graph_destroy(made);
    return s;
}
dtrain_status_t compressor(dtrain_comm_t *comm) {
    dtrain_compressor_params_t params;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_COMPRESS_INT8;
    params.count = 100;
    dtrain_compressor_t *made = nullptr;
    const dtrain_status_t s = dtrain_compressor_create(comm, &params, &made);
    if (made != nullptr) OK(dtrain_compressor_destroy(made));
    return s;
}

struct Subject {
    const char *name;
    dtrain_status_t (*call)(dtrain_comm_t *);
};
constexpr Subject subjects[] = {{"split", split},
                                {"subset", subset},
                                {"shrink", shrink},
                                {"graph_create", graph},
                                {"compressor_create", compressor}};

// What one rank saw.
struct Seen {
    dtrain_status_t status = DTRAIN_OK;
    int64_t took_ns = 0;
};

Seen run(const Subject &subject, int rank, dtrain_comm_t *comm, int spent, bool late) {
    dtrain_status_t s = DTRAIN_OK;
    for (int i = 0; i < spent && s == DTRAIN_OK; i++) { // a message of each
        int32_t mine = rank, its = -1;
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(comm, &its, 1, DTRAIN_I32, 1 - rank, 1, nullptr, &request));
        s = dtrain_send(comm, &mine, 1, DTRAIN_I32, 1 - rank, 1, nullptr, nullptr);
        const dtrain_status_t received = dtrain_request_wait(request, -1);
        dtrain_request_free(request);
        if (s == DTRAIN_OK) s = received;
    }
    OK(s); // fewer are left than unharmed - most_seen
    if (late) std::this_thread::sleep_for(std::chrono::nanoseconds(late_ns));
    const int64_t begin_ns = now_ns();
    s = subject.call(comm);
    return {s, now_ns() - begin_ns};
}

// How many calls took too long.
int late_calls(const Subject &subject) {
    std::atomic<int> timed_out{0}, wrong{0};
    std::vector<std::thread> jobs;
    for (int spent = unharmed - most_seen; spent <= unharmed - least_seen; spent++)
        for (int late = 0; late < size; late++)
            jobs.emplace_back([&, spent, late] {
                std::barrier both(size);
                ranks::run_with_contexts(
                    size, options(), [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
                        const Seen seen = run(subject, rank, comm, spent, rank == late);
                        both.arrive_and_wait(); // who has left is no rank to wait for
                        if (seen.took_ns > bound_ns)
                            std::fprintf(stderr,
                                         "%s, %d messages before it, rank %d late: rank %d "
                                         "returned %s after %lld ms\n",
                                         subject.name, spent, late, rank,
                                         dtrain_status_name(seen.status),
                                         static_cast<long long>(seen.took_ns / ms));
                        if (seen.took_ns > bound_ns) wrong++;
                        if (seen.status == DTRAIN_ERR_TIMEOUT) timed_out++;
                    });
            });
    for (std::thread &job : jobs) job.join();
    std::printf("%s: %d ranks of %zu jobs timed out\n", subject.name, timed_out.load(),
                jobs.size());
    REQUIRE(timed_out > 0);
    return wrong;
}

void several_waits_end_by_one_deadline(void **) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (const Subject &subject : subjects)
        threads.emplace_back([&] { wrong += late_calls(subject); });
    for (std::thread &thread : threads) thread.join();
    assert_int_equal(wrong, 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(several_waits_end_by_one_deadline),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
