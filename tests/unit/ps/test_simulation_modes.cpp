// Schedules as of test_simulation.cpp, with changes of mode, weights and versions to wait for; and
// servers that decide wrongly, each of which is found.
// SPDX-License-Identifier: Apache-2.0
#include "sim_job.h"

#include "check.h"
#include "repeats.h"

using dtrain::ps::RequestHeader;
using dtrain::ps::RequestKind;

namespace {

constexpr uint32_t any = 1; // a quorum: of some workers

void run_or_fail(const Scenario &scenario, uint64_t seed) {
    SimJob job(scenario);
    std::string error = job.run();
    if (error.empty() && scenario.harmless()) error = job.first_failure();
    if (error.empty() && scenario.harmless() && !job.changed()) error = "a mode was not reached";
    if (!error.empty())
        fail_msg("seed %llu, mode %u(%u, %u), %zu changes: %s",
                 static_cast<unsigned long long>(seed), scenario.mode.consistency,
                 scenario.mode.staleness, scenario.mode.quorum, scenario.later.size(),
                 error.c_str());
}

template <class Make> void run_many(uint64_t schedules, Make &&make) {
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + dtrain::test::repeats(schedules); ++seed)
        run_or_fail(make(seed), seed);
}

Definition some_mode(uint64_t number, uint32_t workers) {
    const uint32_t quorum = 1 + uint32_t(number / 5 % workers);
    const Definition modes[] = {
        {DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 0}, {DTRAIN_SSP, 2}, {DTRAIN_QUORUM, 0, quorum}};
    return modes[number % std::size(modes)];
}

// From any mode to any other, and on to a third. A quorum is of one or all where workers wait for
// each other afterwards: else it could be that too few are left to end a step that one waits for.
Scenario changing(uint64_t seed) {
    std::mt19937_64 random(seed);
    Scenario s = random_scenario(seed, some_mode(random(), any));
    auto passing = [&] {
        Definition mode = some_mode(random(), s.workers);
        if (mode.quorum > 1) mode.quorum = s.workers;
        return mode;
    };
    s.mode = passing();
    if (random() % 2 == 0) s.later.push_back(passing());
    s.later.push_back(some_mode(random(), s.workers));
    s.clocks = 1 + uint32_t(random() % 4);
    s.reproducible = 0;
    s.sparse = random() % 3 == 0;
    if (random() % 2 == 0) s.chunk = 16 * s.length;
    return s;
}

Scenario with_weights(uint64_t seed, Definition mode) {
    std::mt19937_64 random(seed);
    Scenario s = random_scenario(seed, mode);
    s.weights = true;
    s.length = 16 * s.servers * ((s.workers * s.clocks + 15) / 16);
    s.sparse = random() % 3 == 0;
    if (s.mode.quorum > 0) s.chunk = 16 * s.length;
    return s;
}

Scenario over_pushers(uint64_t seed, Definition mode) {
    Scenario s = with_weights(seed, mode);
    s.pushers = s.sparse = true;
    if (s.mode.quorum > 0) s.servers = 1; // so that steps can be told
    s.length = 16 * s.servers * ((s.workers * s.clocks + 15) / 16);
    if (s.mode.quorum > 0) s.chunk = 16 * s.length;
    s.keeps = seed % 4 == 0;
    return s;
}

Scenario with_versions(uint64_t seed, Definition mode) {
    std::mt19937_64 random(seed);
    Scenario s = random_scenario(seed, mode);
    s.min_versions = true;
    s.length = 16 * s.servers * (1 + random() % 3);
    s.chunk = 16 * s.length;
    s.sparse = s.servers == 1 && random() % 2 == 0;
    return s;
}

const Definition weighing[] = {{DTRAIN_BSP}, {DTRAIN_QUORUM, 0, any}};
const Definition all_modes[] = {
    {DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 0}, {DTRAIN_SSP, 2}, {DTRAIN_QUORUM, 0, any}};

Scenario and_timeouts(Scenario s) {
    s.timeout = 5 + int64_t(s.seed % 400);
    return s;
}
Scenario and_a_death(Scenario s) {
    s.workers += 1;
    s.dies = int32_t(s.seed % s.workers);
    s.when = int64_t(s.seed / 7 % 1500);
    return s;
}
Scenario and_a_dead_server(Scenario s) {
    s.server_dies = int32_t(s.seed % s.servers);
    s.when = int64_t(s.seed / 7 % 1500);
    return s;
}

void changes_of_mode_fit_all_of_them(void **) { run_many(1500, changing); }
void a_change_that_times_out_is_made(void **) {
    run_many(600, [](uint64_t seed) { return and_timeouts(changing(seed)); });
}
void who_dies_in_a_change_holds_nobody_up(void **) {
    run_many(1000, [](uint64_t seed) { return and_a_death(changing(seed)); });
    run_many(500, [](uint64_t seed) { return and_a_dead_server(changing(seed)); });
}

// Kills a worker at each step of a change, and counts the runs after which servers disagree. spoil:
// what they are told instead.
uint32_t count_disagreements(const Spoil &spoil) {
    uint32_t disagreements = 0, made = 0, refused = 0;
    for (uint64_t seed = first_seed(); seed < first_seed() + 12; ++seed)
        for (int64_t when = 1; when < 500; ++when) {
            Scenario s = random_scenario(seed, {DTRAIN_ASYNC});
            s.workers = 3;
            s.servers = 2 + uint32_t(seed % 2);
            s.clocks = 1;
            s.length = 16 * s.servers;
            s.chunk = 16 * s.length;
            s.later = {{DTRAIN_SSP, 1}};
            s.dies = int32_t(seed % s.workers);
            s.when = when;
            SimJob job(s);
            if (spoil) job.spoil(spoil);
            const std::string error = job.run();
            if (!error.empty() && !spoil)
                fail_msg("seed %llu, dies at %lld: %s", static_cast<unsigned long long>(seed),
                         static_cast<long long>(when), error.c_str());
            const size_t changed = job.network().changed();
            made += changed == s.servers;
            refused += changed == 0;
            disagreements += changed != 0 && changed != s.servers;
        }
    print_message("made %u times, not made %u times, %u times by some servers only\n", made,
                  refused, disagreements);
    assert_true(made > 0 && refused > 0);
    return disagreements;
}

void servers_agree_whoever_dies(void **) {
    assert_int_equal(count_disagreements(nullptr), 0);
    // A worker that has heard that a server has made it does not tell.
    assert_true(count_disagreements([](uint32_t, RequestHeader &header, uint64_t) {
                    if (header.kind == RequestKind::set_mode)
                        header.argument &= ~dtrain::ps::mode_decided;
                }) > 0);
}

void weighted_averages_fit(void **) {
    for (const Definition &mode : weighing) {
        run_many(500, [&](uint64_t seed) { return with_weights(seed, mode); });
        run_many(200, [&](uint64_t seed) { return and_timeouts(with_weights(seed, mode)); });
        run_many(200, [&](uint64_t seed) {
            Scenario s = with_weights(seed, mode);
            s = and_a_death(s);
            s.length = 16 * s.servers * ((s.workers * s.clocks + 15) / 16);
            return s;
        });
    }
}

void averages_over_pushers_fit(void **) {
    for (const Definition &mode : weighing) {
        run_many(400, [&](uint64_t seed) { return over_pushers(seed, mode); });
        run_many(150, [&](uint64_t seed) { return and_timeouts(over_pushers(seed, mode)); });
        run_many(150, [&](uint64_t seed) {
            Scenario s = and_a_death(over_pushers(seed, mode));
            s.length = 16 * s.servers * ((s.workers * s.clocks + 15) / 16);
            return s;
        });
    }
}

void pulls_see_the_version_that_they_wait_for(void **) {
    for (const Definition &mode : all_modes) {
        run_many(250, [&](uint64_t seed) { return with_versions(seed, mode); });
        run_many(80, [&](uint64_t seed) { return and_timeouts(with_versions(seed, mode)); });
        run_many(80, [&](uint64_t seed) { return and_a_death(with_versions(seed, mode)); });
    }
}

// Whether the checker finds a history wrong that such servers have made.
template <class Make> bool found(Make &&make, const Spoil &spoil) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        const Scenario scenario = make(seed);
        SimJob wrong(scenario);
        wrong.spoil(spoil);
        (void)wrong.run(); // operations may fail or hang
        if (!wrong.check(scenario.mode).empty()) return true;
        SimJob right(scenario);
        assert_string_equal(right.run().c_str(), "");
    }
    return false;
}
bool is(const RequestHeader &header, uint8_t traits) {
    return dtrain::ps::has_trait(header.kind, traits);
}
bool pulls_only(const RequestHeader &header) {
    return header.kind == RequestKind::pull || header.kind == RequestKind::pull_rows;
}

Scenario of_three(uint64_t seed, Definition mode) {
    Scenario s = random_scenario(seed, mode);
    s.mode = mode;
    s.workers = 3;
    s.clocks = 8;
    s.reproducible = 0;
    s.length = 16 * s.servers;
    s.chunk = 16 * s.length;
    return s;
}

void wrong_quorums_are_found(void **) {
    using dtrain::ps::Trait;
    auto two = [](uint64_t seed) { return of_three(seed, {DTRAIN_QUORUM, 0, 2}); };
    // A push for a step that is over goes into the current one.
    assert_true(found(two, [](uint32_t, RequestHeader &header, uint64_t applied) {
        if (is(header, Trait::pushes)) header.clock = std::max(header.clock, applied);
    }));
    // A clock does not wait for its pushes.
    assert_true(found(two, [](uint32_t, RequestHeader &header, uint64_t) {
        if (header.kind == RequestKind::clock) header.pushes = 0;
    }));
    // A step is skipped by those who wait for it.
    assert_true(found(two, [](uint32_t, RequestHeader &header, uint64_t) {
        if (pulls_only(header) && header.clock > 0) --header.clock;
    }));
}

void weights_that_do_not_count_are_found(void **) {
    using dtrain::ps::Trait;
    for (const Definition &mode : weighing) {
        auto weighted = [&](uint64_t seed) { return with_weights(seed, mode); };
        // Pushes are added as they are.
        assert_true(found(weighted, [](uint32_t, RequestHeader &header, uint64_t) {
            if (is(header, Trait::pushes)) header.argument = 0;
        }));
        // Everyone counts 1.
        assert_true(found(weighted, [](uint32_t, RequestHeader &header, uint64_t) {
            if (header.kind == RequestKind::clock && header.argument != 0)
                header.argument = std::bit_cast<uint64_t>(1.0);
        }));
        // Nobody has said a weight.
        assert_true(found(weighted, [](uint32_t, RequestHeader &header, uint64_t) {
            if (header.kind == RequestKind::clock) header.flags &= uint16_t(~dtrain::ps::weighted);
        }));
    }
}

void averages_over_all_are_not_those_over_pushers(void **) {
    using dtrain::ps::Trait;
    for (const Definition &mode : weighing) {
        uint32_t different = 0;
        for (uint64_t seed = 1; seed <= 50; ++seed) {
            const Scenario scenario = over_pushers(seed, mode);
            SimJob job(scenario);
            assert_string_equal(job.run().c_str(), "");
            different += !job.check(scenario.mode, {}, false).empty();
        }
        print_message("%u of 50 histories are not those of means over all\n", different);
        assert_true(different > 5);
        auto over = [&](uint64_t seed) { return over_pushers(seed, mode); };
        // Pushes are added, and count, without their weights.
        assert_true(found(over, [](uint32_t, RequestHeader &header, uint64_t) {
            if (is(header, Trait::pushes)) header.argument = 0;
        }));
    }
}

void versions_that_are_too_old_are_found(void **) {
    for (const Definition &mode : all_modes) {
        auto waiting = [&](uint64_t seed) { return with_versions(seed, mode); };
        // One update too early.
        assert_true(found(waiting, [](uint32_t, RequestHeader &header, uint64_t) {
            if (pulls_only(header) && header.argument > 0) --header.argument;
        }));
    }
}

void a_change_that_a_server_does_not_make_is_found(void **) {
    using dtrain::ps::TableParams;
    const Definition before[] = {{DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 2}};
    for (const Definition &mode : before)
        for (const Definition &wanted : {Definition{DTRAIN_BSP, 0, 0}, Definition{DTRAIN_SSP, 0},
                                         Definition{DTRAIN_QUORUM, 0, 2}}) {
            auto change = [&](uint64_t seed) {
                Scenario s = of_three(seed, mode);
                s.clocks = 5;
                s.later = {wanted};
                return s;
            };
            // It stays, or becomes, what promises less.
            assert_true(found(change, [](uint32_t, RequestHeader &header, uint64_t) {
                TableParams params;
                if (header.kind == RequestKind::set_mode)
                    header.argument = dtrain::ps::mode_bits(params) |
                                      (header.argument & dtrain::ps::mode_only_asks);
            }));
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_mode_fit_all_of_them),
        cmocka_unit_test(a_change_that_times_out_is_made),
        cmocka_unit_test(who_dies_in_a_change_holds_nobody_up),
        cmocka_unit_test(servers_agree_whoever_dies),
        cmocka_unit_test(weighted_averages_fit),
        cmocka_unit_test(averages_over_pushers_fit),
        cmocka_unit_test(pulls_see_the_version_that_they_wait_for),
        cmocka_unit_test(wrong_quorums_are_found),
        cmocka_unit_test(weights_that_do_not_count_are_found),
        cmocka_unit_test(averages_over_all_are_not_those_over_pushers),
        cmocka_unit_test(versions_that_are_too_old_are_found),
        cmocka_unit_test(a_change_that_a_server_does_not_make_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
