// Ranks on a simulated network, all in one thread, and schedules for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "engine/executor.h"
#include "engine/tag.h"
#include "transport/host.h"

#include <cstdlib>
#include <deque>
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
    Staging staging{4096};
    Request request;
    int started = 0, ended = 0;

    void open(const Settings &settings) {
        assert_int_equal(options.set("plugin.path", PLUGIN_FOLDER), DTRAIN_OK);
        assert_int_equal(options.set("plugin.sim.eager", "1024"), DTRAIN_OK);
        for (auto &[key, value] : settings)
            assert_int_equal(options.set("plugin.sim." + key, value), DTRAIN_OK);
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

    // With a jitter that this seed draws.
    Job(uint32_t size, uint64_t random)
        : Job(size, {{"jitter", "5000"}, {"seed", std::to_string(random)}}) {}
    Job(uint32_t size, Settings settings) : members(size) {
        static int number = 0;
        settings.push_back({"network", "executor" + std::to_string(number++)});
        std::iota(members.begin(), members.end(), 0u);
        for (uint32_t r = 0; r < size; r++) ranks.emplace_back().open(settings);
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

} // namespace simulated
