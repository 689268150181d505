// The executor over a simulated network: handwritten schedules, all ranks in one thread.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/executor.h"
#include "engine/tag.h"
#include "transport/host.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <string>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

uint64_t seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : 20261121;
}

// One rank: its device, its agent, and what the executor tells its owner.
struct Rank final : OperationListener, Mesh::Listener {
    Options options;
    Log log;
    transport::Host host{options, log, monotonic_clock()};
    Agent agent{monotonic_clock(), log};
    std::unique_ptr<Mesh> mesh;
    Staging staging{4096};
    Request request;
    int started = 0, ended = 0;

    void open(const std::string &network, uint64_t random) {
        assert_int_equal(options.set("plugin.path", PLUGIN_FOLDER), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.network", network), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.jitter", "5000"), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.seed", std::to_string(random)), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.eager", "1024"), DTRAIN_OK);
        std::unique_ptr<transport::Device> device;
        if (transport::Device::open(host, "sim", options, device) != DTRAIN_OK)
            fail_msg("%s", error_text());
        assert_int_equal(agent.open(), DTRAIN_OK);
        assert_int_equal(agent.add_device(std::move(device)), DTRAIN_OK);
    }
    const std::vector<uint8_t> &address() { return agent.devices()[0]->address(); }

    bool operation_started(Operation &) override {
        started++;
        return true;
    }
    void operation_failed(Operation &operation, const Outcome &outcome, const char *text) override {
        operation.fail(agent, outcome, text);
    }
    void operation_stalled(Operation &) override {}
    void operation_ended(Operation &) override { ended++; }
    void peer_broken(uint32_t, const char *) override {}
};

struct Job {
    std::deque<Rank> ranks;
    std::vector<uint32_t> members;

    Job(uint32_t size, uint64_t random) : members(size) {
        static int number = 0;
        std::string network = "executor" + std::to_string(number++);
        std::iota(members.begin(), members.end(), 0u);
        for (uint32_t r = 0; r < size; r++) ranks.emplace_back().open(network, random);
        for (Rank &rank : ranks) {
            std::vector<std::vector<PeerAddress>> peers;
            for (Rank &peer : ranks) peers.push_back({{"sim", peer.address()}});
            rank.mesh = std::make_unique<Mesh>(rank.agent);
            assert_int_equal(rank.mesh->prepare(peers, &rank), DTRAIN_OK);
        }
    }
    RunParams params(uint32_t r, Schedule schedule, const void *input, void *output) {
        RunParams p;
        p.plan = Plan::make(std::move(schedule));
        p.mesh = ranks[r].mesh.get();
        p.staging = &ranks[r].staging;
        p.listener = &ranks[r];
        p.members = members;
        p.rank = r;
        p.group = 5;
        p.bits = collective_bits(1, 77);
        p.input = input;
        p.output = output;
        p.dtype = DTRAIN_U32;
        p.op = DTRAIN_SUM;
        p.result_bytes = 4242;
        return p;
    }
    // Polls all in random order until each has done `wanted` (or all are idle for long).
    void run(std::mt19937_64 &random, const std::vector<uint32_t> &wanted) {
        for (int idle = 0; idle < 100000; idle++) {
            ranks[random() % ranks.size()].agent.work();
            bool all = true;
            for (uint32_t r : wanted) all = all && ranks[r].request.done();
            if (all) return;
        }
        fail_msg("not done");
    }
};

struct Writer {
    Schedule schedule;
    std::vector<uint32_t> sent, received;
    explicit Writer(uint32_t size) : sent(size), received(size) {}
    void add(StepKind kind, int32_t peer, Place src, Place dst, uint64_t bytes,
             std::vector<uint32_t> deps) {
        Step step;
        step.kind = kind;
        step.peer = peer;
        step.src = src;
        step.dst = dst;
        step.bytes = bytes;
        step.first_dep = uint32_t(schedule.deps.size());
        step.deps_count = uint32_t(deps.size());
        if (peer >= 0) step.message = (kind == StepKind::send ? sent : received)[size_t(peer)]++;
        schedule.deps.insert(schedule.deps.end(), deps.begin(), deps.end());
        schedule.steps.push_back(step);
    }
    uint32_t last() const { return uint32_t(schedule.steps.size()) - 1; }
};

// Everybody sends everything to everybody, in chunks; sums in rank order, by way of the scratch.
Schedule direct_sum(uint32_t rank, uint32_t size, uint64_t bytes, uint64_t chunk) {
    Writer writer(size);
    writer.schedule.scratch_bytes = bytes;
    for (uint64_t at = 0; at < bytes; at += chunk) {
        uint64_t n = std::min(chunk, bytes - at);
        for (uint32_t peer = 0; peer < size; peer++)
            if (peer != rank)
                writer.add(StepKind::send, int32_t(peer), {Space::input, at}, {}, n, {});
        writer.add(StepKind::copy, -1, {Space::input, at}, {Space::scratch, at}, n, {});
        for (uint32_t peer = 0; peer < size; peer++)
            if (peer != rank)
                writer.add(StepKind::recv_reduce, int32_t(peer), {Space::scratch, at},
                           {Space::scratch, at}, n, {writer.last()});
        writer.add(StepKind::copy, -1, {Space::scratch, at}, {Space::output, at}, n,
                   {writer.last()});
    }
    return std::move(writer.schedule);
}

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
