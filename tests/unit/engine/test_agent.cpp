// The agent with operations that need no transport: who works, deadlines, stalls, many threads.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/agent.h"
#include "engine/attendance.h"

#include <algorithm>
#include <atomic>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

struct ManualClock : Clock {
    std::atomic<int64_t> now{1000};
    int64_t now_ns() override { return now; }
};

// Finishes after so many rounds; -1: only by failing.
struct Rounds final : Operation {
    struct Seen {
        int advanced = 0, stalled = 0, timed_out = 0;
    };
    Rounds(Request *completed, int count, Seen *notes)
        : Operation(completed), left(count), seen(notes) {
        polled = true;
    }
    void start(Agent &agent) override {
        if (left == 0) agent.finish(this, {.bytes = 1}, "");
    }
    int advance(Agent &agent) override {
        if (seen != nullptr) seen->advanced++;
        if (left < 0) return 0;
        moved_ns = agent.now();
        if (--left == 0) agent.finish(this, {.bytes = 2}, "");
        return 1;
    }
    void fail(Agent &agent, const Outcome &outcome, const char *text) override {
        agent.finish(this, outcome, text);
    }
    void stalled(Agent &) override { seen->stalled++; }
    void timed_out(Agent &agent) override {
        seen->timed_out++;
        fail(agent, {.status = DTRAIN_ERR_TIMEOUT}, "too late");
    }
    int left;
    Seen *seen;
};

struct Rig {
    ManualClock clock;
    Log log;
    Agent agent{clock, log};
    Rig() { assert_int_equal(agent.open(), DTRAIN_OK); }
    void turn(int rounds) {
        for (int i = 0; i < rounds; i++) agent.work();
    }
};

void an_operation_may_end_at_once(void **) {
    Rig rig;
    Request request;
    rig.agent.post(new (request) Rounds(&request, 0, nullptr), true);
    assert_true(request.done()); // without a wait()
    assert_int_equal(request.outcome().bytes, 1);
    assert_false(rig.agent.pending());
}

void waiting_does_the_work(void **) {
    Rig rig;
    Request request;
    Rounds::Seen seen;
    rig.agent.post(new (request) Rounds(&request, 5, &seen), true);
    assert_true(rig.agent.pending());
    rig.agent.wait(request, INT64_MAX);
    assert_true(request.done());
    assert_int_equal(seen.advanced, 5);
    assert_false(rig.agent.has_poller());
}

void a_deadline_ends_it_once(void **) {
    Rig rig;
    Request request;
    Rounds::Seen seen;
    auto *operation = new (request) Rounds(&request, -1, &seen);
    operation->deadline_ns = rig.clock.now + 5 * ms;
    rig.agent.post(operation, true);
    rig.clock.now += 4 * ms;
    rig.turn(200); // the clock is read now and then
    assert_false(request.done());
    rig.clock.now += 4 * ms;
    rig.turn(200);
    assert_true(request.done());
    assert_int_equal(seen.timed_out, 1);
    assert_int_equal(request.outcome().status, DTRAIN_ERR_TIMEOUT);
    assert_string_equal(request.error(), "too late");
}

void a_stall_is_counted(void **) {
    Rig rig;
    Request request;
    Rounds::Seen seen;
    auto *operation = new (request) Rounds(&request, -1, &seen);
    rig.agent.set_stall_check(20 * ms);
    rig.agent.post(operation, true);
    rig.clock.now += 10 * ms;
    rig.turn(200);
    assert_int_equal(seen.stalled, 0);
    for (uint32_t times = 1; times <= 3; times++) {
        rig.clock.now += 20 * ms;
        rig.turn(200);
        assert_true(seen.stalled >= int(times));
        assert_int_equal(operation->stalls, uint32_t(seen.stalled));
    }
    rig.agent.locked([&] { operation->moved_ns = rig.clock.now; }); // something moved
    int before = seen.stalled;
    rig.clock.now += 10 * ms;
    rig.turn(200);
    assert_int_equal(seen.stalled, before);
    rig.clock.now += 20 * ms;
    rig.turn(200);
    assert_int_equal(operation->stalls, 1); // in a row
    rig.agent.locked([&] { operation->fail(rig.agent, {.status = DTRAIN_ERR_CANCELED}, "end"); });
    assert_true(request.done());
}

void waiting_ends_at_its_deadline(void **) {
    Rig rig;
    Request request;
    Rounds::Seen seen;
    auto *operation = new (request) Rounds(&request, -1, &seen);
    rig.agent.post(operation, true);
    rig.agent.wait(request, rig.clock.now - 1);
    assert_false(request.done());
    assert_false(rig.agent.has_poller());
    rig.agent.locked([&] { operation->fail(rig.agent, {.status = DTRAIN_ERR_CANCELED}, "end"); });
    assert_int_equal(request.outcome().status, DTRAIN_ERR_CANCELED);
}

void waiting_for_a_condition(void **) {
    Rig rig;
    int asked = 0, moved = 0;
    rig.agent.wait_until([&] { return ++asked == 3; }, INT64_MAX);
    assert_int_equal(asked, 3);
    Rounds::Seen seen;
    Request request;
    rig.agent.post(new (request) Rounds(&request, 100, &seen), true); // progress is made meanwhile
    rig.agent.wait_until([&] { return (moved = seen.advanced) >= 100; }, INT64_MAX);
    assert_int_equal(moved, 100);
    rig.agent.wait_until([] { return false; }, rig.clock.now);
}

// A network library may move large data without a completion until its end. Who is woken by it
// looks for a while before it falls asleep again.
void an_event_keeps_the_poller_awake(void **) {
    constexpr int looks = 2000, least_between = 8;
    Rig rig;
    int sleeps = 0;
    rig.agent.set_helper({.serve = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &sleeps});
    rig.agent.set_policy({.spin_ns = 1, .yield_ns = 1});
    const int moving = eventfd(1, EFD_CLOEXEC); // stays readable
    epoll_event event = {.events = EPOLLIN, .data = {}};
    assert_int_equal(epoll_ctl(rig.agent.poll_fd(), EPOLL_CTL_ADD, moving, &event), 0);
    Rounds::Seen seen;
    Request request;
    auto *operation = new (request) Rounds(&request, -1, &seen);
    rig.agent.post(operation, true);
    rig.agent.wait_until([&] { return seen.advanced >= looks; }, INT64_MAX);
    assert_in_range(sleeps, 1, looks / least_between);
    rig.agent.locked([&] { operation->fail(rig.agent, {.status = DTRAIN_ERR_CANCELED}, "end"); });
    close(moving);
}

void the_helper_is_called_when_nobody_waits(void **) {
    Rig rig;
    int calls = 0;
    rig.agent.set_helper({.wake = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &calls});
    Request with, without, polled;
    rig.agent.post(new (with) Rounds(&with, 3, nullptr), true);
    assert_int_equal(calls, 0);
    rig.agent.wait(with, INT64_MAX);
    assert_int_equal(calls, 0);
    rig.agent.post(new (without) Rounds(&without, 3, nullptr), false);
    assert_int_equal(calls, 1);
    assert_true(rig.agent.become_poller());
    assert_false(rig.agent.become_poller()); // one at a time
    rig.agent.post(new (polled) Rounds(&polled, 3, nullptr), false);
    assert_int_equal(calls, 1); // somebody polls
    rig.agent.resign_poller();
    assert_int_equal(calls, 2); // with something left to do
    rig.turn(10);
    assert_true(without.done() && polled.done());
}

// Somebody polls while a thread waits for something else, though nothing is pending here.
void the_helper_polls_for_who_attends(void **) {
    Rig rig;
    int calls = 0;
    rig.agent.set_helper({.wake = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &calls});
    {
        const Attendance attendance(rig.agent);
        assert_true(calls == 1 && rig.agent.pending());
        const Fd event(eventfd(1, EFD_CLOEXEC));
        pollfd fd = {event.get(), POLLIN, 0};
        rig.agent.stand_in({&fd, 1}, 3600 * second); // the helper does the rest
        assert_true(fd.revents == POLLIN);
        assert_true(rig.agent.become_poller());
        rig.agent.resign_poller();
        assert_int_equal(calls, 2);
    }
    assert_false(rig.agent.pending());
}

void it_attends_for_some_time(void **) {
    Rig rig;
    int calls = 0;
    rig.agent.set_helper({.wake = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &calls});
    const auto attend = [&] { rig.agent.locked([&] { rig.agent.attend_for(100 * ms); }); };
    attend();
    rig.clock.now += 50 * ms;
    rig.turn(200);
    attend(); // for longer
    rig.clock.now += 90 * ms;
    rig.turn(200);
    assert_true(rig.agent.pending() && calls == 1);
    rig.clock.now += 20 * ms;
    rig.turn(200);
    assert_false(rig.agent.pending());
    attend();
    assert_true(rig.agent.pending() && calls == 2);
}

// Where there is no helper, the thread does all of its work, and looks again soon, though nothing
// happens at its descriptor.
void who_waits_stands_in_for_a_helper(void **) {
    Rig rig;
    int served = 0;
    Rounds::Seen seen;
    Request request;
    auto *service = new (request) Rounds(&request, -1, &seen);
    rig.agent.post(service, true);
    rig.agent.locked([&] { rig.agent.rest(service, true); });
    seen.advanced = 0;
    rig.agent.set_helper({.serve = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &served});
    const Attendance attendance(rig.agent);
    const Fd event(eventfd(0, EFD_CLOEXEC));
    pollfd fd = {event.get(), POLLIN, 0};
    for (int turn = 1; turn <= 3; turn++) {
        rig.agent.stand_in({&fd, 1}, 3600 * second);
        assert_true(served == turn && seen.advanced >= turn);
    }
    rig.agent.locked([&] { rig.agent.finish(service, {}, ""); });
}

// One that always finds something to do never sleeps, and one whose calls are done at once never
// even polls. Others wait for answers of both.
void who_never_sleeps_serves_others(void **) {
    constexpr int rounds = 10'000;
    constexpr int64_t round_ns = 100 * us;
    Rig rig;
    int served = 0;
    rig.agent.set_helper({.serve = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &served});
    Rounds::Seen seen;
    Request request;
    rig.agent.post(new (request) Rounds(&request, rounds, &seen), true);
    const auto is_over = [&] {
        rig.clock.now += round_ns;
        return seen.advanced >= rounds;
    };
    rig.agent.wait_until(is_over, INT64_MAX);
    const int most = int(rounds * round_ns / (10 * ms));
    assert_in_range(served, most / 2, most);
    served = 0;
    for (int i = 0; i < rounds; i++) {
        rig.clock.now += round_ns;
        rig.agent.serve_others();
    }
    assert_in_range(served, most - 1, most);
}

// A thread that stops polling calls nobody for what only rests.
void one_that_rests_is_not_pending(void **) {
    Rig rig;
    int calls = 0;
    rig.agent.set_helper({.wake = [](void *arg) { ++*static_cast<int *>(arg); }, .arg = &calls});
    Request request;
    Rounds::Seen seen;
    auto *service = new (request) Rounds(&request, -1, &seen);
    rig.agent.post(service, true);
    for (bool resting : {true, true, false, true}) {
        rig.agent.locked([&] { rig.agent.rest(service, resting); });
        assert_int_equal(rig.agent.pending(), !resting);
        const int before = calls;
        seen.advanced = 0;
        Request other;
        rig.agent.post(new (other) Rounds(&other, 3, nullptr), true);
        rig.agent.wait(other, INT64_MAX);
        assert_int_equal(calls - before, !resting);
        assert_true(seen.advanced > 0); // who polls advances it all the same
    }
    rig.agent.locked([&] { rig.agent.finish(service, {}, ""); });
    assert_false(rig.agent.pending());
}

// Each thread posts and waits; some do not wait at once. No operation may be lost.
void many_threads(void **) {
    Rig rig;
    rig.agent.set_policy({.spin_ns = 0, .yield_ns = 2 * us});
    constexpr int threads = 4, rounds = 3000;
    std::atomic<uint64_t> bytes{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([&, t] {
            for (int i = 0; i < rounds; i++) {
                Request first, second;
                rig.agent.post(new (first) Rounds(&first, 1 + (i + t) % 3, nullptr), false);
                rig.agent.post(new (second) Rounds(&second, (i + t) % 2, nullptr), true);
                rig.agent.wait(second, INT64_MAX);
                rig.agent.wait(first, INT64_MAX);
                bytes += first.outcome().bytes;
            }
        });
    for (std::thread &thread : all) thread.join();
    assert_int_equal(bytes, 2 * threads * rounds);
    assert_false(rig.agent.pending());
    assert_false(rig.agent.has_poller());
}

// Data keep moving, so the thread that moves them unlocks for an instant only. Whoever has an event
// to tell still gets the lock after a round or two.
void an_event_does_not_wait_for_moving_data(void **) {
    constexpr int events = 21;
    struct Moving final : Operation {
        explicit Moving(Request *completed) : Operation(completed) { polled = true; }
        void start(Agent &) override {}
        int advance(Agent &) override {
            rounds++;
            const int64_t end = monotonic_clock().now_ns() + 200 * us;
            while (monotonic_clock().now_ns() < end) {
            }
            return 1;
        }
        void fail(Agent &agent, const Outcome &outcome, const char *text) override {
            agent.finish(this, outcome, text);
        }
        void stalled(Agent &) override {}
        void timed_out(Agent &) override {}
        std::atomic<int> rounds{0};
    };
    Rig rig;
    Request request;
    auto *moving = new (request) Moving(&request);
    rig.agent.post(moving, true);
    std::thread mover([&] { rig.agent.wait(request, INT64_MAX); });
    std::atomic<bool> over{false};
    std::vector<std::thread> others; // keep the cores busy: the thread that is woken runs later
    for (int i = 0; i < 6; i++)
        others.emplace_back([&] {
            while (!over) {
            }
        });
    std::vector<int> waited;
    for (int i = 0; i < events; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const int before = moving->rounds;
        rig.agent.locked([&] { waited.push_back(moving->rounds - before); });
    }
    rig.agent.locked([&] { moving->fail(rig.agent, {.status = DTRAIN_ERR_CANCELED}, "end"); });
    mover.join();
    over = true;
    for (std::thread &other : others) other.join();
    std::ranges::sort(waited);
    assert_in_range(waited[events * 9 / 10], 0, 2);
}

// A thread that loses its processor may keep the lock for seconds. What is handed in then happens
// once it has unlocked, in order, with what was posted.
void what_is_handed_in_does_not_wait(void **) {
    struct Note final : Posted {
        Note(std::vector<int> &list, int text) : notes(list), number(text) {}
        void take(Agent &) override { notes.push_back(number); }
        std::vector<int> &notes;
        const int number;
    };
    Rig rig;
    std::vector<int> notes;
    Note first(notes, 1), second(notes, 2);
    Request request;
    std::atomic<bool> is_locked{false}, is_handed_in{false};
    std::thread holder([&] {
        rig.agent.locked([&] {
            is_locked = true;
            while (!is_handed_in) std::this_thread::yield();
            assert_true(notes.empty());
            assert_false(request.done());
        });
    });
    while (!is_locked) std::this_thread::yield();
    rig.agent.hand_in(&first);
    rig.agent.post(new (request) Rounds(&request, 0, nullptr), true);
    rig.agent.hand_in(&second);
    is_handed_in = true;
    holder.join(); // it takes them
    assert_true(request.done());
    assert_true((notes == std::vector<int>{1, 2}));
    Note third(notes, 3);
    rig.agent.hand_in(&third); // nobody is at work
    assert_int_equal(notes.size(), 3);
}

// While the higher one moves, the lower one waits; while it cannot, it does not.
void a_higher_priority_moves_first(void **) {
    Rig rig;
    Request low, high, stuck;
    Rounds::Seen low_seen, high_seen, stuck_seen;
    auto post = [&](Request &request, int rounds, int32_t priority, Rounds::Seen &seen) {
        auto *operation = new (request) Rounds(&request, rounds, &seen);
        operation->priority = priority;
        rig.agent.post(operation, true);
        return operation;
    };
    post(low, 10, 0, low_seen);
    post(high, 5, 3, high_seen);
    Operation *last = post(stuck, -1, 7, stuck_seen);
    rig.turn(5);
    assert_true(high.done());
    assert_int_equal(low_seen.advanced, 0);
    assert_int_equal(stuck_seen.advanced, 5);
    rig.turn(10);
    assert_true(low.done());
    rig.agent.locked([&] { last->fail(rig.agent, {.status = DTRAIN_ERR_CANCELED}, "no"); });
    assert_true(stuck.done());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_may_end_at_once),
        cmocka_unit_test(waiting_does_the_work),
        cmocka_unit_test(a_deadline_ends_it_once),
        cmocka_unit_test(a_stall_is_counted),
        cmocka_unit_test(waiting_ends_at_its_deadline),
        cmocka_unit_test(waiting_for_a_condition),
        cmocka_unit_test(an_event_keeps_the_poller_awake),
        cmocka_unit_test(the_helper_is_called_when_nobody_waits),
        cmocka_unit_test(the_helper_polls_for_who_attends),
        cmocka_unit_test(it_attends_for_some_time),
        cmocka_unit_test(who_waits_stands_in_for_a_helper),
        cmocka_unit_test(who_never_sleeps_serves_others),
        cmocka_unit_test(one_that_rests_is_not_pending),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(an_event_does_not_wait_for_moving_data),
        cmocka_unit_test(what_is_handed_in_does_not_wait),
        cmocka_unit_test(a_higher_priority_moves_first),
    };
    return cmocka_run_group_tests_name("agent", tests, nullptr, nullptr);
}
