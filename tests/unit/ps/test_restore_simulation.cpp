// Thousands of restores with delays, losses, repetitions, crashes and parts that cannot be read:
// after each, all servers have all of a checkpoint, or none has anything of it.
// SPDX-License-Identifier: Apache-2.0
#include "sim_restore.h"

#include "check.h"
#include "repeats.h"
#include "sim_scenario.h"

namespace {

RestoreScenario random_restore(uint64_t seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](uint64_t below) { return random() % below; };
    RestoreScenario s;
    s.seed = random();
    s.servers = 1 + uint32_t(pick(3));
    s.restorers = 1 + uint32_t(pick(2));
    s.faults.longest_delay = 1 + int64_t(pick(50));
    if (pick(2) == 0) s.faults.lost = uint32_t(pick(30));
    if (pick(2) == 0) s.faults.repeated = uint32_t(pick(30));
    if (pick(3) == 0) s.faults.busy = uint32_t(pick(50));
    return s;
}

// Returns how many restores there were.
template <class Change> uint64_t run_many(uint64_t restores, Change &&change) {
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    uint64_t restored = 0;
    for (uint64_t seed = start; seed < start + dtrain::test::repeats(restores); ++seed) {
        RestoreScenario scenario = random_restore(seed);
        change(scenario);
        SimRestore job(scenario);
        const std::string error = job.run();
        if (!error.empty())
            fail_msg("seed %llu: %s", static_cast<unsigned long long>(seed), error.c_str());
        restored += job.restored();
    }
    return restored;
}

// Whether a job that is changed like this is found out.
template <class Change> bool found_out(Change &&change) {
    for (uint64_t seed = 1; seed < 200; ++seed) {
        RestoreScenario scenario = random_restore(seed);
        change(scenario);
        if (!SimRestore(scenario).run().empty()) return true;
    }
    return false;
}

void what_can_be_read_is_restored(void **) {
    const uint64_t restored = run_many(1000, [](RestoreScenario &s) { s.restorers = 1; });
    assert_int_equal(restored, dtrain::test::repeats(1000));
}

void two_at_a_time(void **) {
    const uint64_t restored = run_many(1000, [](RestoreScenario &s) { s.restorers = 2; });
    assert_true(restored >
                dtrain::test::repeats(500)); // both may be refused, each by another server
}

void parts_that_cannot_be_read(void **) {
    const uint64_t restored = run_many(1500, [](RestoreScenario &s) { s.unreadable = 20; });
    assert_true(restored > dtrain::test::repeats(100) && restored < dtrain::test::repeats(1400));
}

void callers_that_give_up(void **) {
    run_many(1500, [](RestoreScenario &s) {
        s.timeout = 5 + int64_t(s.seed % 400);
        s.unreadable = s.seed % 3 == 0 ? 10 : 0;
    });
}

void workers_that_die(void **) {
    run_many(1500, [](RestoreScenario &s) {
        s.dies = 0;
        s.when = int64_t(s.seed / 7 % 600);
        s.unreadable = s.seed % 3 == 0 ? 10 : 0;
    });
}

void servers_that_die(void **) {
    run_many(1500, [](RestoreScenario &s) {
        s.server_dies = int32_t(s.seed % s.servers);
        s.when = int64_t(s.seed / 7 % 600);
        s.unreadable = s.seed % 3 == 0 ? 10 : 0;
    });
}

void taking_over_too_early_is_found(void **) {
    assert_true(found_out([](RestoreScenario &s) {
        s.unreadable = 20;
        s.eager = true;
    }));
}

void a_server_that_does_not_drop_is_found(void **) {
    assert_true(found_out([](RestoreScenario &s) {
        s.unreadable = 20;
        s.spoil = [](uint32_t, dtrain::ps::RequestHeader &header, uint64_t) {
            if (header.kind == dtrain::ps::RequestKind::discard)
                header.kind = dtrain::ps::RequestKind::adopt;
        };
    }));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_read_is_restored),
        cmocka_unit_test(two_at_a_time),
        cmocka_unit_test(parts_that_cannot_be_read),
        cmocka_unit_test(callers_that_give_up),
        cmocka_unit_test(workers_that_die),
        cmocka_unit_test(servers_that_die),
        cmocka_unit_test(taking_over_too_early_is_found),
        cmocka_unit_test(a_server_that_does_not_drop_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
