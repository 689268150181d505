// How far apart the ranks' cores are: a line between threads, and a clock that the test sets.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/window/distance.h"

#include <array>
#include <atomic>
#include <barrier>
#include <sched.h>
#include <thread>

namespace {

using dtrain::collectives::Counter;
using dtrain::collectives::Distance;

// Each look at it takes the same time.
struct SteppingClock final : dtrain::Clock {
    explicit SteppingClock(int64_t step_ns) : step(step_ns) {}
    int64_t now_ns() override { return now += step; }
    const int64_t step;
    int64_t now = 0;
};

// Time passes as the line goes to and fro, whatever else the machine does; and others may run.
struct LineClock final : dtrain::Clock {
    LineClock(const Counter &own, int64_t round_ns) : line(own), round(round_ns) {}
    int64_t now_ns() override {
        sched_yield();
        return int64_t(line.value) * round + ++looks;
    }
    const Counter &line;
    const int64_t round;
    int64_t looks = 0;
};

// Ranks that measure together, until all know, or so often.
std::vector<bool> far_after_measuring(uint32_t ranks, int64_t round_ns) {
    constexpr int tries = 10;
    std::vector<Counter> lines(ranks);
    std::vector<Counter *> pointers;
    for (Counter &line : lines) pointers.push_back(&line);
    std::vector<std::atomic<bool>> far(ranks);
    std::vector<std::thread> threads;
    std::barrier all{ptrdiff_t(ranks)};
    for (uint32_t r = 0; r < ranks; r++)
        threads.emplace_back([&, r] {
            LineClock clock(lines[r], round_ns);
            Distance distance(std::vector<Counter *>(pointers), r, true, clock);
            for (int i = 0; i < tries; i++) {
                all.arrive_and_wait();
                distance.measure();
                if (distance.is_far()) far[r] = true;
            }
        });
    for (std::thread &thread : threads) thread.join();
    return {far.begin(), far.end()};
}

// Of a round trip, each way takes half.
void test_far(void **) {
    for (const bool far : far_after_measuring(2, 300)) assert_true(far);
}

void test_near(void **) {
    for (const bool far : far_after_measuring(2, 4)) assert_false(far);
}

void test_a_chain_of_neighbors(void **) {
    const std::vector<bool> far = far_after_measuring(3, 300);
    assert_int_equal(far.size(), 3);
    for (const bool each : far) assert_true(each);
}

// A rank whose neighbor does not answer goes on after 100 us, and knows what it knew.
void test_alone(void **) {
    std::array<Counter, 2> lines{};
    SteppingClock clock(1000);
    Distance distance({&lines[0], &lines[1]}, 0, true, clock);
    for (int64_t i = 0; i < 3; i++) {
        const int64_t begun = clock.now;
        distance.measure();
        assert_in_range(clock.now - begun, 100'000, 110'000);
        assert_false(distance.is_far());
    }
    assert_int_equal(lines[1].value, 0); // it writes its own line only
}

// A neighbor that comes late finds old numbers, none of which is one of its own.
void test_late(void **) {
    std::array<Counter, 2> lines{};
    SteppingClock clock(1000);
    Distance first({&lines[0], &lines[1]}, 0, true, clock);
    for (int i = 0; i < 3; i++) first.measure(); // alone
    Distance second({&lines[0], &lines[1]}, 1, true, clock);
    const int64_t begun = clock.now;
    second.measure();
    assert_true(clock.now - begun < 110'000);
    assert_false(second.is_far());
}

void test_when_it_is_due(void **) {
    std::array<Counter, 2> lines{};
    SteppingClock clock(1);
    Distance distance({&lines[0], &lines[1]}, 0, true, clock),
        crowded({&lines[0], &lines[1]}, 1, false, clock);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(distance.is_due(), i % 256 == 0);
        assert_false(crowded.is_due());
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_a_chain_of_neighbors),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_when_it_is_due),
    };
    return cmocka_run_group_tests_name("distance", tests, nullptr, nullptr);
}
