// Processes that are stopped now and then, for up to 3 s: with the default timeouts nobody is lost.
// SPDX-License-Identifier: Apache-2.0
//
// The seed is printed. DTRAIN_TEST_SEED repeats a run, DTRAIN_TEST_SECONDS says how long it is.
#include "contract/processes.h"

#include <random>

namespace {

using processes::Job;

uint32_t from_environment(const char *name, uint32_t otherwise) {
    const char *value = std::getenv(name);
    return value == nullptr ? otherwise : uint32_t(std::strtoul(value, nullptr, 10));
}

constexpr int size = 3, stop = Job::max_processes - 1; // who tells them to end, by its rounds

// Sums of all sizes, in which the ranks agree when it is over.
void work(Job &job, int rank, const ranks::Options &options, uint32_t seed) {
    dtrain_context_t *context = ranks::make_context(options);
    dtrain_comm_t *comm = processes::join(job, context, rank, size);
    std::mt19937 random(seed); // the same on all ranks
    std::vector<float> data(300'000), sum(300'000);
    for (bool over = false; !over;) {
        const size_t count = random() % 3 == 0 ? data.size() : 1 + random() % 3000;
        std::fill_n(data.begin(), count, 1.f);
        if (job.seen(stop).rounds > 0) data[0] = 2;
        OK(dtrain_allreduce(comm, data.data(), sum.data(), count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                            nullptr));
        over = sum[0] != float(size);
        REQUIRE(count == 1 || sum[count - 1] == float(size));
        job.seen(rank).rounds++;
    }
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

void sleep_ms(int64_t ms) {
    for (const int64_t end = processes::now_ns() + ms * 1'000'000; processes::now_ns() < end;)
        processes::nap();
}

// One or two at a time, any of them.
void play(const char *what, ranks::Options options) {
    const uint32_t seed = from_environment("DTRAIN_TEST_SEED", 1);
    const int64_t seconds = from_environment("DTRAIN_TEST_SECONDS", 6);
    options.emplace_back("heartbeat.timeout", "5s"); // the default; tests have another one
    std::mt19937 random(seed);
    Job job;
    job.start(size, [&](int rank) { work(job, rank, options, seed); });
    job.wait_for_rounds(size, 3);
    int pauses = 0;
    for (const int64_t end = processes::now_ns() + seconds * 1'000'000'000;
         processes::now_ns() < end; pauses++) {
        const int one = int(random() % size), other = int(random() % size);
        job.signal(one, SIGSTOP);
        job.signal(other, SIGSTOP);
        sleep_ms(pauses == 0 ? 3000 : int64_t(random() % 3000));
        job.signal(one, SIGCONT);
        job.signal(other, SIGCONT);
        sleep_ms(int64_t(random() % 300));
    }
    job.seen(stop).rounds = 1;
    job.expect_good_ends();
    std::printf("%s: seed %u, %d pauses, %lld sums\n", what, seed, pauses,
                static_cast<long long>(job.seen(0).rounds));
}

void over_tcp(void **) { play("over tcp", {{"transports", "tcp"}}); }
void over_shm(void **) { play("over shm", {}); }

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(over_tcp), cmocka_unit_test(over_shm)};
    return cmocka_run_group_tests_name("pauses", tests, nullptr, nullptr);
}
