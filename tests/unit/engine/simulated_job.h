// Ranks on a simulated network, all in one thread, and schedules for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "engine/executor.h"
#include "engine/tag.h"
#include "transport/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace simulated {

using namespace dtrain;
using namespace dtrain::engine;

inline uint64_t seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : 20261121;
}

// Of the simulated network: plugin.sim.<first>.
using Settings = std::vector<std::pair<std::string, std::string>>;

// One rank: its device, its agent, and what the executor tells its owner.
struct Rank final : OperationListener, Mesh::Listener {
    Options options;
    Log log;
    transport::Host host{options, log, monotonic_clock()};
    Agent agent{monotonic_clock(), log};
    std::unique_ptr<Mesh> mesh;
    Staging staging{{}, 4096};
    Request request;
    int started = 0, ended = 0;

    void open(const Settings &settings, uint32_t rails = 1) {
        assert_int_equal(options.set("plugin.path", PLUGIN_FOLDER), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.eager", "1024"), DTRAIN_OK);
        for (auto &[key, value] : settings)
            assert_int_equal(options.set("plugin.sim." + key, value), DTRAIN_OK);
        std::vector<std::unique_ptr<transport::Device>> devices;
        for (uint32_t rail = 0; rail < rails; rail++)
            if (transport::Device::open(host, "sim", options, devices) != DTRAIN_OK)
                fail_msg("%s", error_text());
        assert_int_equal(agent.open(), DTRAIN_OK);
        for (auto &device : devices)
            assert_int_equal(agent.add_device(std::move(device)), DTRAIN_OK);
    }

    bool operation_started(Operation &) override {
        started++;
        return true;
    }
    void operation_failed(Operation &operation, const Outcome &outcome, const char *text) override {
        operation.fail(agent, outcome, text);
    }
    void operation_stalled(Operation &) override {}
    void operation_ended(Operation &) override { ended++; }
    void peer_broken(uint32_t, Status, const char *) override {}
};

struct Job {
    std::deque<Rank> ranks;
    std::vector<uint32_t> members;

    // With a jitter that this seed draws.
    Job(uint32_t size, uint64_t random)
        : Job(size, {{"jitter", "5000"}, {"seed", std::to_string(random)}}) {}
    // rails: devices of each rank; empty: one.
    Job(uint32_t size, Settings settings, const std::vector<uint32_t> &rails = {}) : members(size) {
        static int number = 0;
        settings.push_back({"network", "executor" + std::to_string(number++)});
        std::iota(members.begin(), members.end(), 0u);
        for (uint32_t r = 0; r < size; r++)
            ranks.emplace_back().open(settings, rails.empty() ? 1 : rails[r]);
        for (Rank &rank : ranks) {
            std::vector<std::vector<PeerAddress>> peers;
            for (Rank &peer : ranks) {
                auto &addresses = peers.emplace_back();
                for (auto &device : peer.agent.devices())
                    addresses.push_back({"sim", device->address()});
            }
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
inline Schedule direct_sum(uint32_t rank, uint32_t size, uint64_t bytes, uint64_t chunk) {
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

// An all-reduce of all ranks, each with its own priority.
struct Sum {
    Job &job;
    uint32_t call;
    uint64_t chunk;
    std::vector<std::vector<uint32_t>> in, out;
    std::vector<uint32_t> expected;
    std::deque<Request> requests;

    Sum(Job &j, uint32_t number, uint64_t count, uint64_t chunk_bytes, std::mt19937_64 &random)
        : job(j), call(number), chunk(chunk_bytes), in(j.ranks.size()), out(j.ranks.size()),
          expected(count), requests(j.ranks.size()) {
        for (auto &vector : in) {
            vector.resize(count);
            for (uint64_t i = 0; i < count; i++) expected[i] += vector[i] = uint32_t(random());
        }
        for (auto &vector : out) vector.resize(count);
    }
    ScheduleRun *post(uint32_t r, int32_t priority) {
        auto size = uint32_t(job.ranks.size());
        RunParams params = job.params(r, direct_sum(r, size, 4 * expected.size(), chunk),
                                      in[r].data(), out[r].data());
        params.bits = collective_bits(call, 77);
        auto *run = new (requests[r]) ScheduleRun(&requests[r], std::move(params));
        run->priority = priority;
        job.ranks[r].agent.post(run, true);
        return run;
    }
    bool done() const {
        return std::all_of(requests.begin(), requests.end(),
                           [](const Request &request) { return request.done(); });
    }
    void verify() const {
        for (const Request &request : requests)
            assert_int_equal(request.outcome().status, DTRAIN_OK);
        for (auto &vector : out) assert_true(vector == expected);
    }
};

inline void poll_until(Job &job, std::mt19937_64 &random, const std::function<bool()> &done) {
    for (int round = 0; round < 1000000; round++) {
        if (done()) return;
        job.ranks[random() % job.ranks.size()].agent.work();
    }
    fail_msg("not done");
}

// The simulated network tells it when its last device closes.
inline void read_time(void *arg, int32_t, const char *line) {
    long long ns = 0;
    const char *at = std::strstr(line, "ended at ");
    if (at != nullptr && std::sscanf(at, "ended at %lld", &ns) == 1)
        *static_cast<int64_t *>(arg) = ns;
}

} // namespace simulated
