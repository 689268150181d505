// What has a higher priority overtakes what is in flight already, and nobody waits forever.
// SPDX-License-Identifier: Apache-2.0
#include "simulated_job.h"
#include "thorough.h"

#include <algorithm>

using namespace simulated;

namespace {

// Virtual time until a sum of `high_bytes` is done, with one of `low_bytes` in flight before.
int64_t time_of(uint64_t low_bytes, uint64_t high_bytes, int32_t low, int32_t high) {
    int64_t ended_ns = 0;
    std::mt19937_64 random(seed());
    {
        Job job(2, Settings{{"bandwidth", "1000000000"}, {"latency", "1000"}});
        for (Rank &rank : job.ranks) {
            rank.log.set_level(DTRAIN_LOG_INFO);
            rank.log.set_sink(&read_time, &ended_ns);
        }
        Sum connects(job, 1, 1, 65536, random), large(job, 2, low_bytes / 4, 65536, random),
            small(job, 3, high_bytes / 4, 65536, random);
        for (uint32_t r = 0; r < 2; r++) connects.post(r, low);
        poll_until(job, random, [&] { return connects.done(); });
        std::vector<ScheduleRun *> runs;
        for (uint32_t r = 0; r < 2 && low_bytes > 0; r++) runs.push_back(large.post(r, low));
        for (uint32_t r = 0; r < 2 && high_bytes > 0; r++) small.post(r, high);
        poll_until(job, random, [&] { return high_bytes == 0 || small.done(); });
        if (high_bytes > 0) small.verify();
        for (uint32_t r = 0; r < runs.size(); r++) {
            Agent &agent = job.ranks[r].agent;
            assert_false(large.requests[r].done() && high > low);
            if (large.requests[r].done()) continue;
            agent.locked([&] { runs[r]->fail(agent, {.status = DTRAIN_ERR_CANCELED}, "no"); });
        }
        // What the network has taken from a run that is canceled it returns at once.
        for (uint32_t r = 0; r < runs.size(); r++)
            while (!large.requests[r].done()) {
                job.ranks[r].agent.locked([&] { job.ranks[r].mesh->drop(1 - r); });
                job.ranks[r].agent.work();
            }
    }
    assert_true(ended_ns > 0);
    return ended_ns;
}

void a_higher_one_overtakes(void **) {
    constexpr uint64_t low = 8 << 20, high = 512 << 10;
    const int64_t begin = time_of(0, 0, -1, 0), alone = time_of(0, high, -1, 0) - begin;
    const int64_t overtakes = time_of(low, high, -1, 0) - begin;
    const int64_t waits = time_of(low, high, 0, 0) - begin;
    print_message("alone %.2f ms, overtaking %.2f ms, at the same priority %.2f ms\n",
                  double(alone) / 1e6, double(overtakes) / 1e6, double(waits) / 1e6);
    assert_true(overtakes <= 2 * alone);
    assert_true(waits > 10 * alone);
}

// Rank 0 waits for what is last for rank 1 before it begins what is first for it.
void ranks_may_disagree(void **) {
    std::mt19937_64 random(seed());
    for (int round = 0; round < 20; round++) {
        Job job(3, random());
        Sum a(job, 1, 40000, 4096, random), b(job, 2, 40000, 4096, random);
        a.post(0, 7);
        b.post(1, 5);
        a.post(1, -5);
        b.post(2, -1);
        a.post(2, -1);
        poll_until(job, random, [&] { return a.requests[0].done(); });
        b.post(0, 7);
        poll_until(job, random, [&] { return a.done() && b.done(); });
        a.verify();
        b.verify();
    }
}

void any_priorities_give_the_same_sums(void **) {
    print_message("seed %llu\n", static_cast<unsigned long long>(seed()));
    std::mt19937_64 random(seed());
    for (int round = 0; round < (is_thorough() ? 60 : 30); round++) {
        Job job(uint32_t(1 + random() % 5), random());
        std::deque<Sum> sums;
        for (uint32_t call = 1; call <= 1 + random() % 6; call++)
            sums.emplace_back(job, call, 1 + random() % 30000, 4 * (1 + random() % 2000), random);
        for (Sum &sum : sums)
            for (uint32_t r = 0; r < job.ranks.size(); r++) {
                sum.post(r, int32_t(random() % 5) - 2);
                for (uint64_t polls = random() % 20; polls > 0; polls--)
                    job.ranks[random() % job.ranks.size()].agent.work();
            }
        poll_until(job, random, [&] {
            return std::all_of(sums.begin(), sums.end(), [](Sum &sum) { return sum.done(); });
        });
        for (Sum &sum : sums) sum.verify();
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_higher_one_overtakes),
        cmocka_unit_test(ranks_may_disagree),
        cmocka_unit_test(any_priorities_give_the_same_sums),
    };
    return cmocka_run_group_tests_name("priorities", tests, nullptr, nullptr);
}
