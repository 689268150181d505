// Thousands of schedules with delays, losses, repetitions and crashes; each history is verified
// against the definition of its consistency mode.
// SPDX-License-Identifier: Apache-2.0
#include "sim_job.h"

#include "check.h"
#include "repeats.h"

namespace {

const Definition modes[] = {{DTRAIN_ASYNC},  {DTRAIN_BSP},    {DTRAIN_SSP, 0},
                            {DTRAIN_SSP, 1}, {DTRAIN_SSP, 3}, {DTRAIN_QUORUM, 0, 1}};

void run_or_fail(const Scenario &scenario, uint64_t seed) {
    SimJob job(scenario);
    std::string error = job.run();
    if (error.empty() && scenario.harmless()) error = job.first_failure();
    if (!error.empty())
        fail_msg("seed %llu, mode %u(%u, %u): %s", static_cast<unsigned long long>(seed),
                 scenario.mode.consistency, scenario.mode.staleness, scenario.mode.quorum,
                 error.c_str());
}

template <class Change> void run_many(uint64_t schedules, Change &&change) {
    uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + dtrain::test::repeats(schedules); ++seed)
        for (const Definition &mode : modes) {
            Scenario scenario = random_scenario(seed, mode);
            change(scenario);
            scenario.reproducible &= mode.quorum == 0 || scenario.mode.quorum == scenario.workers;
            run_or_fail(scenario, seed);
        }
}

void histories_fit_their_mode(void **) {
    run_many(600, [](Scenario &) {});
}

void a_lost_worker_is_an_error_and_never_a_hang(void **) {
    run_many(200, [](Scenario &s) {
        s.workers += 1;
        s.dies = int32_t(s.seed % s.workers);
        s.when = int64_t(s.seed / 7 % 1500);
    });
}

void a_lost_server_is_an_error_and_never_a_hang(void **) {
    run_many(200, [](Scenario &s) {
        s.server_dies = int32_t(s.seed % s.servers);
        s.when = int64_t(s.seed / 7 % 1500);
    });
}

void a_worker_that_leaves_no_longer_counts(void **) {
    run_many(150, [](Scenario &s) {
        s.workers += 1;
        s.leaves_early = int32_t(s.seed % s.workers);
    });
}

void abandoned_operations_leave_the_rest_correct(void **) {
    run_many(200, [](Scenario &s) { s.timeout = 5 + int64_t(s.seed % 400); });
}

void rows_fit_their_mode(void **) {
    run_many(400, [](Scenario &s) { s.sparse = true; });
    run_many(200, [](Scenario &s) { s.sparse = s.keeps = true; });
    run_many(100, [](Scenario &s) {
        s.sparse = true;
        s.keeps = s.seed % 2 == 0;
        s.timeout = 5 + int64_t(s.seed % 400);
    });
    run_many(100, [](Scenario &s) {
        s.sparse = true;
        s.keeps = s.seed % 2 == 0;
        s.workers += 1;
        s.dies = int32_t(s.seed % s.workers);
        s.when = int64_t(s.seed / 7 % 1500);
    });
}

// A function that adds and a segment that adds are no other than the rule.
void functions_and_segments_fit_their_mode(void **) {
    for (AddedBy by : {AddedBy::function, AddedBy::segment})
        for (bool sparse : {false, true}) {
            auto set = [&](Scenario &s) {
                s.added_by = by;
                s.sparse = sparse;
            };
            run_many(100, set);
            run_many(50, [&](Scenario &s) {
                set(s);
                s.timeout = 5 + int64_t(s.seed % 400);
            });
        }
}

// How many of the schedules, run in one mode, the checker finds wrong under another one.
uint32_t count_red(Definition runs, Definition believed) {
    uint32_t red = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        Scenario scenario = random_scenario(seed, runs);
        scenario.workers = 3;
        scenario.clocks = 8;
        scenario.mode = runs;
        scenario.reproducible = 0;
        scenario.length = std::max<uint64_t>(scenario.length, 16 * scenario.servers);
        if (runs.quorum > 0) scenario.chunk = 16 * scenario.length;
        SimJob job(scenario);
        assert_string_equal(job.run().c_str(), "");
        red += job.check(believed) != "";
    }
    return red;
}

// The servers compare clocks as another mode would: by one clock too many, or not at all.
void a_wrong_comparison_of_clocks_is_found(void **) {
    assert_true(count_red({DTRAIN_SSP, 1}, {DTRAIN_SSP, 0}) > 0);
    assert_true(count_red({DTRAIN_SSP, 3}, {DTRAIN_SSP, 2}) > 0);
    assert_true(count_red({DTRAIN_SSP, 0}, {DTRAIN_BSP, 0}) > 0);
    assert_true(count_red({DTRAIN_ASYNC, 0}, {DTRAIN_SSP, 3}) > 0);
    assert_true(count_red({DTRAIN_BSP, 0}, {DTRAIN_ASYNC, 0}) > 0);
    assert_true(count_red({DTRAIN_QUORUM, 0, 2}, {DTRAIN_QUORUM, 0, 1}) > 0);
    assert_true(count_red({DTRAIN_QUORUM, 0, 2}, {DTRAIN_QUORUM, 0, 3}) > 0);
    assert_true(count_red({DTRAIN_QUORUM, 0, 2}, {DTRAIN_BSP, 0}) > 0);
    assert_true(count_red({DTRAIN_ASYNC, 0}, {DTRAIN_QUORUM, 0, 2}) > 0);
    // And a mode that promises more is not found wrong.
    assert_int_equal(count_red({DTRAIN_SSP, 1}, {DTRAIN_SSP, 3}), 0);
    assert_int_equal(count_red({DTRAIN_SSP, 0}, {DTRAIN_ASYNC, 0}), 0);
}

void an_update_applied_twice_or_never_is_found(void **) {
    Record push, pull;
    push.kind = Did::push;
    push.range = {0, 1};
    push.started = 0;
    push.finished = 10;
    pull.kind = Did::pull;
    pull.range = {0, 1};
    pull.started = 20;
    pull.finished = 30;
    for (uint64_t applied = 0; applied < 3; ++applied) {
        pull.received = {applied};
        std::string error = HistoryChecker({&push, &pull}, 1, {DTRAIN_ASYNC, 0}).check();
        assert_int_equal(error.empty(), applied == 1);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(histories_fit_their_mode),
        cmocka_unit_test(a_lost_worker_is_an_error_and_never_a_hang),
        cmocka_unit_test(a_lost_server_is_an_error_and_never_a_hang),
        cmocka_unit_test(a_worker_that_leaves_no_longer_counts),
        cmocka_unit_test(abandoned_operations_leave_the_rest_correct),
        cmocka_unit_test(rows_fit_their_mode),
        cmocka_unit_test(functions_and_segments_fit_their_mode),
        cmocka_unit_test(a_wrong_comparison_of_clocks_is_found),
        cmocka_unit_test(an_update_applied_twice_or_never_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
