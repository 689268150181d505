// On a busy machine a yield lasts as long as others keep the core: up to 100 ms, with the kernel's
// groups of tasks. Deadlines are looked after all the same, though data keeps arriving meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/agent.h"

#include <atomic>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

std::atomic<int64_t> the_time{1000};
std::atomic<int> yields{0};

struct ManualClock : Clock {
    int64_t now_ns() override { return the_time; }
};

// Moves in every second round.
struct Trickle final : Operation {
    explicit Trickle(Request *completed) : Operation(completed) { polled = true; }
    void start(Agent &) override {}
    int advance(Agent &agent) override {
        moved_ns = agent.now();
        return ++rounds % 2;
    }
    void fail(Agent &agent, const Outcome &outcome, const char *text) override {
        agent.finish(this, outcome, text);
    }
    void timed_out(Agent &agent) override {
        fail(agent, {.status = DTRAIN_ERR_TIMEOUT}, "too late");
    }
    int rounds = 0;
};

struct Rig {
    ManualClock clock;
    Log log;
    Agent agent{clock, log};
    Rig() {
        assert_int_equal(agent.open(), DTRAIN_OK);
        agent.set_policy({.spin_ns = 0, .yield_ns = 1 * second}); // ranks share cores
    }
};

void a_deadline_is_seen(void **) {
    Rig rig;
    Request request;
    auto *operation = new (request) Trickle(&request);
    operation->time_limit_ns = 250 * ms;
    rig.agent.post(operation, true);
    yields = 0;
    rig.agent.wait(request, INT64_MAX);
    assert_int_equal(request.outcome().status, DTRAIN_ERR_TIMEOUT);
    assert_in_range(yields, 3, 4);
}

} // namespace

extern "C" int sched_yield() noexcept {
    the_time += 100 * ms;
    yields++;
    return 0;
}

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(a_deadline_is_seen)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
