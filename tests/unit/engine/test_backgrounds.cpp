// The control thread: it serves tasks when they ask for it, though the agent's lock is held and its
// thread never ends a round.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/agent.h"
#include "engine/backgrounds.h"
#include "engine/helper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <sched.h>
#include <sys/eventfd.h>
#include <thread>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

constexpr int64_t patience = 60 * second;

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

bool soon(const std::function<bool()> &is_so) {
    const int64_t end = monotonic_clock().now_ns() + patience;
    while (!is_so() && monotonic_clock().now_ns() < end) nap();
    return is_so();
}

// Asks by its deadline, every 5 ms, or by its descriptor.
struct Task final : Background {
    explicit Task(bool is_timed) : timed(is_timed) {}
    int event_fd() override { return fd.get(); }
    int64_t next_deadline_ns() override { return timed ? next_ns.load() : INT64_MAX; }
    void work() override {
        eventfd_t ignored;
        eventfd_read(fd.get(), &ignored);
        next_ns = monotonic_clock().now_ns() + 5 * ms;
        served++;
        if (starves) throw std::bad_alloc();
    }
    void out_of_memory() override { starved++; }
    const bool timed;
    Fd fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::atomic<int64_t> next_ns{0};
    std::atomic<int> served{0}, starved{0};
    std::atomic<bool> starves{false};
};

void a_task_asks_by_its_deadline_or_its_descriptor(void **) {
    Backgrounds backgrounds(monotonic_clock());
    assert_int_equal(backgrounds.start("control"), DTRAIN_OK);
    Task timed(true), called(false);
    backgrounds.add(&timed);
    backgrounds.add(&called);
    assert_true(soon([&] { return timed.served > 3; }));
    backgrounds.remove(&timed);
    const int at_end = timed.served;
    const int before = called.served;
    assert_int_equal(eventfd_write(called.fd.get(), 1), 0);
    assert_true(soon([&] { return called.served > before; }));
    assert_int_equal(timed.served, at_end);
    backgrounds.remove(&called);
}

void one_that_lacks_memory_is_told(void **) {
    Backgrounds backgrounds(monotonic_clock()); // without a thread
    Task task(false);
    backgrounds.add(&task);
    assert_int_equal(backgrounds.serve(), 1);
    assert_int_equal(task.starved, 0);
    task.starves = true;
    assert_int_equal(backgrounds.serve(), 1);
    assert_int_equal(task.starved, 1);
    backgrounds.remove(&task);
    assert_int_equal(backgrounds.serve(), 0);
}

// A function of a server may take long, and so may a thread that has lost its processor.
struct Endless final : Operation {
    Endless(Request *completed, const std::atomic<bool> &ends) : Operation(completed), over(ends) {
        polled = true;
    }
    void start(Agent &) override {}
    int advance(Agent &agent) override {
        is_running = true;
        while (!over) nap();
        agent.finish(this, {}, "");
        return 1;
    }
    void fail(Agent &agent, const Outcome &outcome, const char *text) override {
        agent.finish(this, outcome, text);
    }
    void timed_out(Agent &) override {}
    const std::atomic<bool> &over;
    std::atomic<bool> is_running{false};
};

void a_round_that_does_not_end_keeps_nobody_waiting(void **) {
    Log log;
    Agent agent(monotonic_clock(), log);
    assert_int_equal(agent.open(), DTRAIN_OK);
    Backgrounds backgrounds(monotonic_clock());
    assert_int_equal(backgrounds.start("control"), DTRAIN_OK);
    Helper helper(agent);
    assert_int_equal(helper.start(false), DTRAIN_OK);
    Task task(true);
    backgrounds.add(&task);
    Request request;
    std::atomic<bool> over{false};
    auto *endless = new (request) Endless(&request, over);
    agent.post(endless, false); // the helper does it
    assert_true(soon([&] { return endless->is_running.load(); }));
    const int before = task.served;
    assert_true(soon([&] { return task.served > before + 3; }));
    over = true;
    agent.wait(request, INT64_MAX);
    backgrounds.remove(&task);
}

// Ends when somebody polls after it is over.
struct Pending final : Operation {
    explicit Pending(Request *completed) : Operation(completed) { polled = true; }
    void start(Agent &) override {}
    int advance(Agent &agent) override {
        if (!over) return 0;
        agent.finish(this, {}, "");
        return 1;
    }
    void fail(Agent &agent, const Outcome &outcome, const char *text) override {
        agent.finish(this, outcome, text);
    }
    void timed_out(Agent &) override {}
    std::atomic<bool> over{false};
};

// A thread that is created now gets the core of this thread only when this one sleeps.
class OneCore {
  public:
    OneCore() {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        assert_int_equal(sched_getaffinity(0, sizeof all_, &all_), 0);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &none_), 0);
    }
    void come_first() const { assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none_), 0); }
    ~OneCore() { sched_setaffinity(0, sizeof all_, &all_); }

  private:
    const sched_param none_ = {};
    cpu_set_t all_;
};

// The helper sleeps as the one that polls; what was pending ends in another thread, and the helper
// is told to end before it has noticed. It must not rest for a second then. One try of several is
// quick, even on a busy machine.
void a_helper_that_sleeps_ends_at_once(void **) {
    int64_t quickest = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        Log log;
        Agent agent(monotonic_clock(), log);
        assert_int_equal(agent.open(), DTRAIN_OK);
        agent.set_policy({.spin_ns = 50 * us, .yield_ns = 0, .sleep_ns = patience});
        const OneCore core;
        auto helper = std::make_unique<Helper>(agent);
        assert_int_equal(helper->start(false), DTRAIN_OK);
        core.come_first();
        Request request;
        auto *pending = new (request) Pending(&request);
        agent.post(pending, false);
        std::this_thread::sleep_for(std::chrono::milliseconds(50)); // the helper goes to sleep
        pending->over = true;
        agent.wait(request, INT64_MAX);
        const int64_t begin = monotonic_clock().now_ns();
        helper.reset();
        quickest = std::min(quickest, monotonic_clock().now_ns() - begin);
    }
    assert_true(quickest < 500 * ms);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_task_asks_by_its_deadline_or_its_descriptor),
        cmocka_unit_test(one_that_lacks_memory_is_told),
        cmocka_unit_test(a_round_that_does_not_end_keeps_nobody_waiting),
        cmocka_unit_test(a_helper_that_sleeps_ends_at_once),
    };
    return cmocka_run_group_tests_name("backgrounds", tests, nullptr, nullptr);
}
