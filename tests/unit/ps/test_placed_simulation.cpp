// Schedules with faults over tables whose parts are many ranges, or that lie on one server: the
// histories fit their mode as those of any other table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/placement.h"
#include "sim_job.h"

#include "check.h"
#include "repeats.h"

#include <iterator>

namespace {

using dtrain::ps::Placement;

constexpr uint32_t policies[] = {DTRAIN_PLACE_RANGE, DTRAIN_PLACE_HASH, DTRAIN_PLACE_CONSISTENT,
                                 DTRAIN_PLACE_GREEDY, DTRAIN_PLACE_USER};

Placement random_placement(std::mt19937_64 &random, const Scenario &s) {
    Placement placement = {.policy = policies[random() % std::size(policies)]};
    if (placement.policy == DTRAIN_PLACE_CONSISTENT) placement.virtual_nodes = 16;
    if (placement.policy == DTRAIN_PLACE_GREEDY) {
        placement.home = uint32_t(random() % (s.servers + 1));
        return placement;
    }
    dtrain::ps::TableParams params; // as SimJob makes it
    params.length = s.sparse ? 0 : s.length;
    params.dim = s.sparse ? 1 : 0;
    if (!s.sparse && placement.policy != DTRAIN_PLACE_RANGE)
        placement.block = 1 + random() % std::min<uint64_t>(s.length, 9);
    params.placement = placement;
    if (placement.policy == DTRAIN_PLACE_USER)
        for (uint64_t b = 0; b < blocks_of(params).count; ++b)
            placement.owners.push_back(uint16_t(random() % s.servers));
    else if (random() % 2 == 0)
        for (uint32_t server = 0; server < s.servers; ++server)
            placement.weights.push_back(server == 0 ? 1 : uint32_t(random() % 3));
    return placement;
}

// Some of the operations are given up.
Scenario placed_scenario(uint64_t seed, Definition mode, bool sparse) {
    Scenario s = random_scenario(seed, mode);
    std::mt19937_64 random(seed);
    s.sparse = sparse;
    s.servers += 1;
    if (random() % 4 == 0) s.timeout = 5 + int64_t(random() % 400);
    s.placement = random_placement(random, s);
    return s;
}

void run_many(bool sparse) {
    const Definition modes[] = {
        {DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 1}, {DTRAIN_QUORUM, 0, 1}};
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + dtrain::test::repeats(200); ++seed)
        for (const Definition &mode : modes) {
            const Scenario scenario = placed_scenario(seed, mode, sparse);
            SimJob job(scenario);
            std::string error = job.run();
            if (error.empty() && scenario.timeout == INT64_MAX) error = job.first_failure();
            if (!error.empty())
                fail_msg("seed %llu, mode %u, placement %u: %s",
                         static_cast<unsigned long long>(seed), mode.consistency,
                         scenario.placement.policy, error.c_str());
        }
}
void dense_tables(void **) { run_many(false); }
void sparse_tables(void **) { run_many(true); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(dense_tables),
        cmocka_unit_test(sparse_tables),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
