// Schedules as of test_simulation.cpp, of tables that are stored, or travel, in fewer bytes: what
// is repeated is neither rounded nor added twice, and a server rounds what it has as it should.
// SPDX-License-Identifier: Apache-2.0
#include "sim_job.h"

#include "check.h"
#include "repeats.h"

#include <set>
#include <tuple>

namespace {

const Definition modes[] = {
    {DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 0}, {DTRAIN_SSP, 2}, {DTRAIN_QUORUM, 0, 1}};

// Any storage with any wire, but f32 with f32.
Scenario narrow(uint64_t seed, const Definition &mode) {
    constexpr uint32_t dtypes[] = {0, DTRAIN_F16, DTRAIN_BF16, DTRAIN_I8};
    std::mt19937_64 random(seed);
    Scenario s = random_scenario(seed, mode);
    const uint64_t pair = 1 + random() % (std::size(dtypes) * std::size(dtypes) - 1);
    s.storage = dtypes[pair % std::size(dtypes)];
    s.wire = dtypes[pair / std::size(dtypes)];
    s.sparse = random() % 2 == 0;
    constexpr AddedBy ways[] = {AddedBy::rule, AddedBy::function};
    s.added_by = s.pinned() ? AddedBy::segment : ways[random() % std::size(ways)];
    // Each server has an element for each worker's clocks, and often several.
    s.length = 16 * s.servers * ((s.workers * s.clocks + 15) / 16);
    if (s.mode.quorum > 0) s.chunk = 16 * s.length;
    return s;
}

template <class Change> void run_many(uint64_t schedules, Change &&change) {
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + dtrain::test::repeats(schedules); ++seed)
        for (const Definition &mode : modes) {
            Scenario s = narrow(seed, mode);
            change(s);
            SimJob job(s);
            std::string error = job.run();
            if (error.empty() && s.harmless()) error = job.first_failure();
            if (!error.empty())
                fail_msg("seed %llu, mode %u(%u, %u), storage %u, wire %u: %s",
                         static_cast<unsigned long long>(seed), s.mode.consistency,
                         s.mode.staleness, s.mode.quorum, s.storage, s.wire, error.c_str());
        }
}

void histories_fit_their_mode(void **) {
    run_many(400, [](Scenario &) {});
}
void what_is_repeated_counts_once(void **) {
    run_many(300, [](Scenario &s) { s.faults.lost = s.faults.repeated = 30; });
}
void what_is_given_up_counts_once_or_never(void **) {
    run_many(200, [](Scenario &s) { s.timeout = 5 + int64_t(s.seed % 400); });
}
void who_dies_leaves_what_is_exact(void **) {
    run_many(100, [](Scenario &s) {
        s.dies = int32_t(s.seed % s.workers);
        s.when = int64_t(s.seed / 7 % 1500);
    });
    run_many(100, [](Scenario &s) {
        s.server_dies = int32_t(s.seed % s.servers);
        s.when = int64_t(s.seed / 7 % 1500);
    });
}

// A push that comes again is taken for one that is still to come: added twice, and that one never.
void what_is_added_twice_is_found(void **) {
    using namespace dtrain::ps;
    for (const Definition &mode : {Definition{DTRAIN_ASYNC}, Definition{DTRAIN_BSP}}) {
        uint32_t red = 0;
        for (uint64_t seed = 1; seed <= 60; ++seed) {
            Scenario s = narrow(seed, mode);
            s.faults.repeated = 30;
            s.reproducible = 0;
            std::set<std::tuple<uint32_t, uint32_t, uint64_t>> seen;
            SimJob job(s);
            job.spoil([&](uint32_t server, RequestHeader &header, uint64_t) {
                const bool fresh = seen.insert({server, header.worker, header.sequence}).second;
                if (has_trait(header.kind, Trait::pushes) && !fresh) ++header.sequence;
            });
            (void)job.run(); // operations may fail or hang
            red += !job.check(s.mode).empty();
        }
        assert_true(red > 0);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(histories_fit_their_mode),
        cmocka_unit_test(what_is_repeated_counts_once),
        cmocka_unit_test(what_is_given_up_counts_once_or_never),
        cmocka_unit_test(who_dies_leaves_what_is_exact),
        cmocka_unit_test(what_is_added_twice_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
