// Several devices of one transport: large messages take them in turn, small ones the first.
// SPDX-License-Identifier: Apache-2.0
#include "simulated_job.h"

using namespace simulated;

namespace {

// Virtual time of a sum of `bytes` over two ranks with so many devices of 1 GB/s.
int64_t time_of(uint64_t bytes, uint64_t chunk, const std::vector<uint32_t> &rails) {
    int64_t ended_ns = 0;
    std::mt19937_64 random(seed());
    {
        Job job(2, {{"bandwidth", "1000000000"}, {"latency", "1000"}}, rails);
        for (Rank &rank : job.ranks) {
            rank.log.set_level(DTRAIN_LOG_INFO);
            rank.log.set_sink(&read_time, &ended_ns);
        }
        Sum sum(job, 1, bytes / 4, chunk, random);
        for (uint32_t r = 0; r < 2; r++) sum.post(r, 0);
        poll_until(job, random, [&] { return sum.done(); });
        sum.verify();
    }
    return ended_ns;
}

void rails_share_the_bytes(void **) {
    constexpr uint64_t bytes = 12 << 20, chunk = 64 << 10;
    const auto one = double(time_of(bytes, chunk, {1, 1})),
               two = double(time_of(bytes, chunk, {2, 2})),
               three = double(time_of(bytes, chunk, {3, 3}));
    print_message("1 rail %.2f ms, 2 rails %.2f ms, 3 rails %.2f ms\n", one / 1e6, two / 1e6,
                  three / 1e6);
    assert_true(one / two > 1.9);
    assert_true(one / three > 2.8);
    // As many as both have.
    assert_true(one / double(time_of(bytes, chunk, {3, 2})) > 1.9);
    assert_true(one / double(time_of(bytes, chunk, {1, 3})) < 1.1);
    // Small messages stay on the first.
    assert_true(double(time_of(1 << 20, 4096, {1, 1})) / double(time_of(1 << 20, 4096, {2, 2})) <
                1.1);
}

void any_number_of_rails_gives_the_same_sums(void **) {
    print_message("seed %llu\n", static_cast<unsigned long long>(seed()));
    std::mt19937_64 random(seed());
    for (int round = 0; round < 30; round++) {
        std::vector<uint32_t> rails(2 + random() % 3);
        for (uint32_t &count : rails) count = uint32_t(1 + random() % 3);
        Job job(uint32_t(rails.size()), {{"jitter", "5000"}, {"seed", std::to_string(random())}},
                rails);
        std::deque<Sum> sums;
        for (uint32_t call = 1; call <= 1 + random() % 3; call++)
            sums.emplace_back(job, call, 1 + random() % 200000, 4 * (1 + random() % 30000), random);
        for (Sum &sum : sums)
            for (uint32_t r = 0; r < job.ranks.size(); r++) sum.post(r, int32_t(random() % 3));
        poll_until(job, random, [&] {
            return std::all_of(sums.begin(), sums.end(), [](Sum &sum) { return sum.done(); });
        });
        for (Sum &sum : sums) sum.verify();
    }
}

// The other side counts on it, so it cannot be left out.
void a_rail_that_leads_nowhere_is_an_error(void **) {
    Job job(2, {}, {2, 2});
    Rank &rank = job.ranks[0];
    const std::vector<uint8_t> good = job.ranks[1].agent.devices()[0]->address(), bad(3, 0);
    std::vector<std::vector<PeerAddress>> peers = {{{"sim", good}, {"sim", bad}}};
    Mesh mesh(rank.agent);
    assert_int_not_equal(mesh.prepare(peers, &rank), DTRAIN_OK);
    assert_non_null(std::strstr(error_text(), "rail 1 of transport sim to member 0"));
}

// What fails gives its buffers back, whatever rail they are on.
void failing_withdraws_from_all_rails(void **) {
    std::mt19937_64 random(seed());
    Job job(2, {}, {2, 2});
    Sum sum(job, 1, 100000, 65536, random);
    ScheduleRun *run = sum.post(1, 0);
    for (int i = 0; i < 100; i++) job.ranks[random() % 2].agent.work();
    Agent &agent = job.ranks[1].agent;
    agent.locked([&] { run->fail(agent, {.status = DTRAIN_ERR_CANCELED}, "no"); });
    for (int i = 0; i < 1000 && !sum.requests[1].done(); i++) {
        agent.locked([&] { job.ranks[1].mesh->drop(0); });
        job.ranks[random() % 2].agent.work();
    }
    assert_int_equal(sum.requests[1].outcome().status, DTRAIN_ERR_CANCELED);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rails_share_the_bytes),
        cmocka_unit_test(any_number_of_rails_gives_the_same_sums),
        cmocka_unit_test(a_rail_that_leads_nowhere_is_an_error),
        cmocka_unit_test(failing_withdraws_from_all_rails),
    };
    return cmocka_run_group_tests_name("rails", tests, nullptr, nullptr);
}
