// Schedules of neighbors: correct for every graph, and the checker is red for faults in them.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/check/check.h"
#include "collectives/cost/price.h"
#include "every_rank.h"
#include "networks.h"
#include "random_graph.h"

#include "dtrain.h"

using namespace dtrain;
using namespace dtrain::collectives;
using engine::Step;
using engine::StepKind;

namespace {

constexpr uint64_t seed = 20261;
constexpr Kind kinds[] = {Kind::neighbor_average, Kind::neighbor_allgather,
                          Kind::neighbor_alltoall};

EveryRank built(Kind kind, const Graph &graph, uint64_t count, bool in_place, uint64_t chunk) {
    CollectiveSpec call;
    call.kind = kind;
    call.size = graph.size();
    call.root = 1000; // the graph's number
    call.count = count;
    call.element_bytes = 2;
    call.in_place = in_place;
    call.chunk_bytes = chunk;
    call.graph = &graph;
    EveryRank ranks(call);
    assert_int_equal(ranks.build(Algorithm::direct), DTRAIN_OK);
    return ranks;
}

void expect_good(const EveryRank &ranks, uint64_t number) {
    if (check(ranks.specs, ranks.schedules, number) != DTRAIN_OK)
        fail_msg("seed %lu, graph %lu: %s", seed, number, error_text());
    double ns = -1;
    assert_int_equal(price(ranks.schedules, networks[2], ns), DTRAIN_OK);
    assert_true(ns >= 0);
}

void every_graph(void **) {
    std::mt19937_64 random(seed);
    for (uint64_t number = 0; number < 150; number++) {
        auto size = int32_t(1 + number % 17);
        Graph graph({}, {});
        uint32_t kind = uint32_t(random() % 6);
        if (kind < DTRAIN_GRAPH_RING || kind > DTRAIN_GRAPH_FULL)
            graph = random_graph(random, size, random() % 2);
        else
            assert_int_equal(make_graph(kind, size, graph), DTRAIN_OK);
        uint64_t count = random() % 60, chunk = 2 + random() % 30;
        for (Kind what : kinds) expect_good(built(what, graph, count, false, chunk), number);
        expect_good(built(Kind::neighbor_average, graph, count, true, chunk), number);
    }
}

void memory_is_bounded(void **) {
    std::mt19937_64 random(seed);
    Graph graph = random_graph(random, 9, true);
    EveryRank ranks = built(Kind::neighbor_average, graph, 1 << 20, true, 4096);
    for (int32_t r = 0; r < 9; r++)
        assert_true(ranks.schedules[size_t(r)].scratch_bytes == graph.into(r).size() * 4 * 4096);
}

void expect_red(const EveryRank &ranks, const char *text) {
    int32_t status = check(ranks.specs, ranks.schedules, 1);
    if (status != DTRAIN_ERR_INVALID || !strstr(error_text(), text))
        fail_msg("expected \"%s\", got %s: %s", text, status_name(status), error_text());
}

void faults(void **) {
    std::mt19937_64 random(seed);
    Graph graph = random_graph(random, 6, false);
    const EveryRank good = built(Kind::neighbor_average, graph, 40, true, 8);
    EveryRank bad = good;
    bad.schedules[2].terms[1].weight += 1e-9;
    expect_red(bad, "rank 2: element");
    bad = good;
    std::swap(bad.schedules[3].terms[0], bad.schedules[3].terms[1]); // another order
    expect_red(bad, "rank 3: element");
    bad = good;
    bad.schedules[0].terms[0].src.offset += 1 << 20;
    expect_red(bad, "source out of bounds");
    bad = good;
    for (Step &step : bad.schedules[1].steps)
        if (step.kind == StepKind::weigh) step.terms_count = 1 << 20;
    expect_red(bad, "terms out of range");
    bad = good;
    size_t dropped = 0;
    for (Step &step : bad.schedules[4].steps) {
        if (step.deps_count != 1) continue;
        step.deps_count = 0;
        expect_red(bad, "may run while step");
        step.deps_count = 1;
        dropped++;
    }
    assert_true(dropped > 0);
}

void not_without_a_graph(void **) {
    CollectiveSpec call;
    call.kind = Kind::neighbor_average;
    assert_int_equal(validate(call), DTRAIN_ERR_INVALID);
    std::mt19937_64 random(seed);
    Graph graph = random_graph(random, 3, true);
    call.graph = &graph;
    assert_int_equal(validate(call), DTRAIN_ERR_INVALID); // of 1 rank
    call.size = 3;
    assert_int_equal(validate(call), DTRAIN_OK);
    call.kind = Kind::neighbor_allgather;
    call.in_place = true;
    assert_int_equal(validate(call), DTRAIN_ERR_INVALID);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_graph),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(faults),
        cmocka_unit_test(not_without_a_graph),
    };
    return cmocka_run_group_tests_name("neighbors", tests, nullptr, nullptr);
}
