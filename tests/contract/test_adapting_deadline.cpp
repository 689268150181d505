// The all-reduce before which the ranks agree on the fastest algorithm (option tuning.adapt) ends
// by op.timeout, agreement and sum together: a rank comes to it late, and from some message on
// nothing arrives any more. Each of its messages is the first one lost in one job.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>

namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t limit_ns = 3'000 * ms, late_ns = limit_ns * 4 / 5;
constexpr int64_t bound_ns = limit_ns * 3 / 2; // two waits would take 1.8 times as long
constexpr int size = 2;
constexpr int most_tries = 18;           // of all algorithms together, before that call
constexpr unsigned long long looked = 8; // its messages and the last ones before it
constexpr size_t elements = 5000;

int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// What the ranks of a job log.
struct Log {
    std::mutex mutex;
    bool has_decided = false;
    unsigned long long sends = 0; // of the device that sent most

    static void read(void *self, int32_t, const char *line) {
        auto *log = static_cast<Log *>(self);
        const std::lock_guard lock(log->mutex);
        if (std::strstr(line, "from now on, as measured") != nullptr) log->has_decided = true;
        unsigned long long sends = 0;
        if (const char *at = std::strstr(line, "fault: of"))
            if (std::sscanf(at, "fault: of %llu sends", &sends) == 1)
                log->sends = std::max(log->sends, sends);
    }
    bool decided() {
        const std::lock_guard lock(mutex);
        return has_decided;
    }
};

// Nothing that a device sends arrives after its first `unharmed` messages.
void run(Log &log, unsigned long long unharmed,
         const std::function<void(int, dtrain_comm_t *)> &body) {
    const ranks::Options options = {{"plugin.path", PLUGIN_FOLDER},
                                    {"transports", "fault"},
                                    {"plugin.fault.over", "tcp"},
                                    {"plugin.fault.after", std::to_string(unharmed)},
                                    {"plugin.fault.drop", "1000"},
                                    {"tuning.adapt", "yes"},
                                    {"explain", "yes"},
                                    {"log.level", "info"},
                                    {"op.timeout", std::to_string(limit_ns) + "ns"}};
    ranks::run_with_contexts(size, options,
                             [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 OK(dtrain_context_set_log(context, Log::read, &log));
                                 body(rank, comm);
                             });
}

dtrain_status_t sum(dtrain_comm_t *comm) {
    const std::vector<float> ones(elements, 1);
    std::vector<float> out(elements);
    const dtrain_status_t s = dtrain_allreduce(comm, ones.data(), out.data(), elements, DTRAIN_F32,
                                               DTRAIN_SUM, nullptr, nullptr);
    if (s == DTRAIN_OK) REQUIRE(out[0] == size && out[elements - 1] == size);
    return s;
}

// How many calls come before that one.
int count_tries() {
    Log log;
    int tries = 0;
    run(log, UINT64_MAX, [&](int rank, dtrain_comm_t *comm) {
        for (int i = 0; i <= most_tries; i++) {
            OK(sum(comm));
            if (rank == 0 && !log.decided()) tries = i + 1;
        }
    });
    REQUIRE(log.has_decided);
    return tries;
}

// And how many messages a device has sent after that one.
unsigned long long count_sends(int tries) {
    Log log;
    run(log, UINT64_MAX, [&](int, dtrain_comm_t *comm) {
        for (int i = 0; i <= tries; i++) OK(sum(comm));
    });
    REQUIRE(log.has_decided && log.sends > looked);
    return log.sends;
}

struct Counts {
    std::atomic<int> agreed{0}, timed_out{0}, too_late{0};
};

void lose(int tries, unsigned long long unharmed, int late, Counts &counts) {
    Log log;
    std::barrier both(size);
    std::atomic<bool> timed_out{false};
    run(log, unharmed, [&](int rank, dtrain_comm_t *comm) {
        dtrain_status_t s = DTRAIN_OK;
        for (int i = 0; i < tries && s == DTRAIN_OK; i++) s = sum(comm);
        if (rank == late) std::this_thread::sleep_for(std::chrono::nanoseconds(late_ns));
        const int64_t begin_ns = now_ns();
        if (s == DTRAIN_OK) s = sum(comm);
        const int64_t took_ns = now_ns() - begin_ns;
        both.arrive_and_wait(); // who has left is no rank to wait for
        if (s == DTRAIN_ERR_TIMEOUT) timed_out = true;
        if (took_ns <= bound_ns) return;
        std::fprintf(
            stderr, "%llu messages unharmed, rank %d late: rank %d returned %s after %lld ms\n",
            unharmed, late, rank, dtrain_status_name(s), static_cast<long long>(took_ns / ms));
        counts.too_late++;
    });
    if (!timed_out) return;
    counts.timed_out++;
    if (log.has_decided) counts.agreed++;
}

void agreement_and_sum_end_by_one_deadline(void **) {
    const int tries = count_tries();
    const unsigned long long sends = count_sends(tries);
    Counts counts;
    std::vector<std::thread> jobs;
    for (unsigned long long unharmed = sends - looked; unharmed < sends; unharmed++)
        for (int late = 0; late < size; late++)
            jobs.emplace_back([&, unharmed, late] { lose(tries, unharmed, late, counts); });
    for (std::thread &job : jobs) job.join();
    std::printf("after %d tries and %llu messages: %d of %zu jobs timed out, %d of them after the "
                "ranks had agreed\n",
                tries, sends, counts.timed_out.load(), jobs.size(), counts.agreed.load());
    assert_true(counts.agreed > 0);
    assert_true(counts.timed_out > counts.agreed); // while they agreed, or before
    assert_int_equal(counts.too_late, 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(agreement_and_sum_end_by_one_deadline),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
