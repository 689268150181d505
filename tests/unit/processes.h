// What processes of a job have of the engine, all in one thread on transports for tests: each an
// agent and a mesh, polled in turn, with a clock that only the test moves.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "engine/mesh.h"
#include "transport/host.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class TestClock final : public dtrain::Clock {
  public:
    int64_t now_ns() override { return now; }
    int64_t now = dtrain::second;
};

struct Process {
    using Settings = std::initializer_list<std::pair<const char *, std::string>>;

    // transports: names; settings: options of those.
    Process(TestClock &clock, std::initializer_list<const char *> transports, Settings settings)
        : host(options, log, clock), agent(clock, log), mesh(agent) {
        assert_int_equal(options.set("plugin.path", PLUGIN_FOLDER), DTRAIN_OK);
        for (auto &[key, value] : settings) assert_int_equal(options.set(key, value), DTRAIN_OK);
        assert_int_equal(agent.open(), DTRAIN_OK);
        for (const char *name : transports) {
            std::vector<std::unique_ptr<dtrain::transport::Device>> devices;
            if (dtrain::transport::Device::open(host, name, options, devices) != DTRAIN_OK)
                fail_msg("%s", dtrain::error_text());
            for (auto &device : devices)
                assert_int_equal(agent.add_device(std::move(device)), DTRAIN_OK);
        }
    }

    dtrain::Options options;
    dtrain::Log log;
    dtrain::transport::Host host;
    dtrain::engine::Agent agent;
    dtrain::engine::Mesh mesh;
};

// Every process of `job` is a member, in that order; `listener` is the first one's.
inline void connect(std::initializer_list<Process *> job,
                    dtrain::engine::Mesh::Listener *listener = nullptr) {
    std::vector<std::vector<dtrain::engine::PeerAddress>> addresses;
    for (Process *process : job) {
        auto &list = addresses.emplace_back();
        for (auto &device : process->agent.devices())
            list.push_back({device->name(), device->address()});
    }
    for (Process *process : job) {
        auto *its = process == *job.begin() ? listener : nullptr;
        assert_int_equal(process->mesh.prepare(addresses, its), DTRAIN_OK);
    }
}

// Enough rounds for messages to go back and forth; an agent reads its clock now and then only.
inline void poll(std::initializer_list<Process *> job, int rounds = 200) {
    while (rounds-- > 0)
        for (Process *process : job) process->agent.work();
}
