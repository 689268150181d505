// Random collectives in random interleavings, proved by the checker: DTRAIN_TEST_ROUNDS of them
// from DTRAIN_TEST_SEED on (./dev soak runs a million).
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/call/topology.h"
#include "collectives/check/check.h"
#include "every_rank.h"
#include "tested.h"

#include <cinttypes>
#include <cstdlib>
#include <random>
#include <string>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

uint64_t number(const char *variable, uint64_t otherwise) {
    const char *text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Choice {
    CollectiveSpec call;
    Algorithm algorithm = Algorithm::direct;
    Topology topology;
    std::vector<uint64_t> counts;
};

Topology random_hosts(std::mt19937_64 &random, int32_t size) {
    std::vector<std::vector<std::string>> paths;
    for (int32_t rank = 0; rank < size; rank++)
        paths.push_back({std::to_string(random() % 4), std::to_string(random() % 2)});
    return Topology(paths);
}

// The same for the same seed. Neighbors' kinds have tests of their own: they need a graph.
void choose_call(uint64_t seed, Choice &c) {
    std::mt19937_64 random(seed);
    CollectiveSpec &call = c.call;
    call.size = int32_t(1 + random() % 17);
    call.kind = Kind(random() % (size_t(Kind::barrier) + 1));
    call.element_bytes = call.kind == Kind::barrier ? 1 : 4;
    call.root = int32_t(random() % uint64_t(call.size));
    call.count = call.kind == Kind::barrier ? 0 : random() % 40;
    call.average = random() % 2 != 0;
    call.chunk_bytes = 4 * (1 + random() % 12);
    bool ragged = (call.kind == Kind::reduce_scatter || call.kind == Kind::allgather ||
                   call.kind == Kind::gather || call.kind == Kind::scatter) &&
                  random() % 3 == 0;
    for (int32_t rank = 0; ragged && rank < call.size; rank++) c.counts.push_back(random() % 9);
    call.counts = c.counts;
    if (random() % 2 != 0) {
        c.topology = random_hosts(random, call.size);
        call.topology = &c.topology;
    }
    std::vector<Algorithm> able;
    for (Algorithm algorithm : tested_algorithms())
        if (supports(call.kind, algorithm, call.size, !ragged)) able.push_back(algorithm);
    if (!able.empty()) c.algorithm = able[random() % able.size()]; // else direct, which can do all
}

void prove(uint64_t seed) {
    Choice c;
    choose_call(seed, c);
    std::mt19937_64 random(seed + 1);
    EveryRank ranks(c.call);
    for (CollectiveSpec &spec : ranks.specs)
        spec.in_place = c.call.kind != Kind::barrier && random() % 2 != 0;
    Status s = ranks.build(c.algorithm);
    if (s == DTRAIN_OK) s = check(ranks.specs, ranks.schedules, seed);
    if (s != DTRAIN_OK)
        fail_msg("DTRAIN_TEST_SEED=%" PRIu64 ": %s by %s, %d ranks, root %d, count %" PRIu64
                 ", chunks of %" PRIu64 ": %s",
                 seed, kind_name(c.call.kind), algorithm_name(c.algorithm), c.call.size,
                 c.call.root, c.call.count, c.call.chunk_bytes, error_text());
}

void random_calls(void **) {
    const uint64_t first = number("DTRAIN_TEST_SEED", 1),
                   rounds = number("DTRAIN_TEST_ROUNDS", 3000);
    print_message("%" PRIu64 " schedules from seed %" PRIu64 "\n", rounds, first);
    for (uint64_t i = 0; i < rounds; i++) prove(first + i);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(random_calls)};
    return cmocka_run_group_tests_name("random", tests, nullptr, nullptr);
}
