// The executor over a simulated network: handwritten schedules, all ranks in one thread.
// SPDX-License-Identifier: Apache-2.0
#include "simulated_job.h"

using namespace simulated;

namespace {

void sums_in_any_order_of_events(void **) {
    print_message("seed %llu\n", static_cast<unsigned long long>(seed()));
    std::mt19937_64 random(seed());
    for (uint32_t size : {1u, 2u, 3u, 5u})
        for (uint64_t count : {1u, 100u, 5000u}) {
            Job job(size, random());
            std::vector<std::vector<uint32_t>> in(size), out(size);
            std::vector<uint32_t> expected(count);
            for (auto &vector : in)
                for (uint64_t i = 0; i < count; i++) {
                    vector.push_back(uint32_t(random()));
                    expected[i] += vector[i];
                }
            for (uint32_t r = 0; r < size; r++) {
                out[r].resize(count);
                job.ranks[r].agent.post(
                    new (job.ranks[r].request) ScheduleRun(
                        &job.ranks[r].request, job.params(r, direct_sum(r, size, 4 * count, 4096),
                                                          in[r].data(), out[r].data())),
                    true);
            }
            job.run(random, job.members);
            for (uint32_t r = 0; r < size; r++) {
                const Rank &rank = job.ranks[r];
                assert_int_equal(rank.request.outcome().status, DTRAIN_OK);
                assert_int_equal(rank.request.outcome().bytes, 4242);
                assert_int_equal(rank.started, 1);
                assert_int_equal(rank.ended, 1);
                assert_true(out[r] == expected);
            }
        }
}

Schedule one_way(StepKind kind, int32_t peer, uint64_t bytes) {
    Writer writer(2);
    Place place = {kind == StepKind::send ? Space::input : Space::output, 0};
    writer.add(kind, peer, place, place, bytes, {});
    return std::move(writer.schedule);
}

void a_message_of_another_size_is_an_error(void **) {
    std::mt19937_64 random(seed());
    for (uint64_t bytes : {40u, 400u, 4000u}) {
        Job job(2, random());
        std::vector<uint8_t> in(bytes, 1), out(100, 0);
        job.ranks[0].agent.post(
            new (job.ranks[0].request)
                ScheduleRun(&job.ranks[0].request,
                            job.params(0, one_way(StepKind::send, 1, bytes), in.data(), nullptr)),
            true);
        job.ranks[1].agent.post(
            new (job.ranks[1].request)
                ScheduleRun(&job.ranks[1].request,
                            job.params(1, one_way(StepKind::recv, 0, 100), nullptr, out.data())),
            true);
        job.run(random, {1});
        const Request &request = job.ranks[1].request;
        assert_int_equal(request.outcome().status, DTRAIN_ERR_MISMATCH);
        assert_int_equal(request.outcome().peer, 0);
        std::string text = request.error();
        assert_true(text.find("rank 0") != text.npos && text.find("100") != text.npos);
    }
}

// What fails gives its buffers back: nothing may be written to them afterwards.
void failing_withdraws_what_is_pending(void **) {
    std::mt19937_64 random(seed());
    Job job(2, random());
    std::vector<uint8_t> in(5000, 1), out(5000, 0);
    Rank &receiver = job.ranks[1];
    auto *run = new (receiver.request) ScheduleRun(
        &receiver.request, job.params(1, one_way(StepKind::recv, 0, 5000), nullptr, out.data()));
    receiver.agent.post(run, true);
    assert_true(run->waits_for(0));
    assert_false(run->waits_for(1));
    receiver.agent.locked(
        [&] { run->fail(receiver.agent, {.status = DTRAIN_ERR_CANCELED}, "no"); });
    job.run(random, {1});
    assert_int_equal(receiver.request.outcome().status, DTRAIN_ERR_CANCELED);
    assert_string_equal(receiver.request.error(), "no");
    assert_int_equal(receiver.ended, 1);
    job.ranks[0].agent.post(
        new (job.ranks[0].request)
            ScheduleRun(&job.ranks[0].request,
                        job.params(0, one_way(StepKind::send, 1, 5000), in.data(), nullptr)),
        true);
    for (int i = 0; i < 2000; i++) job.ranks[random() % 2].agent.work();
    assert_true(out == std::vector<uint8_t>(5000, 0));
    assert_false(job.ranks[0].request.done()); // too long to be kept: it waits for a receive
    std::vector<uint8_t> other(5000);
    Request later;
    receiver.agent.post(new (later)
                            ScheduleRun(&later, job.params(1, one_way(StepKind::recv, 0, 5000),
                                                           nullptr, other.data())),
                        true);
    job.run(random, {0});
    while (!later.done()) receiver.agent.work();
    assert_true(other == in);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(sums_in_any_order_of_events),
        cmocka_unit_test(a_message_of_another_size_is_an_error),
        cmocka_unit_test(failing_withdraws_what_is_pending),
    };
    return cmocka_run_group_tests_name("executor", tests, nullptr, nullptr);
}
