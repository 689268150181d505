// All-reduce over hosts, racks and so on: proved by the checker, priced, and chosen where it pays.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/call/topology.h"
#include "collectives/check/check.h"
#include "collectives/cost/choose.h"
#include "every_rank.h"
#include "networks.h"

#include <algorithm>
#include <cinttypes>
#include <random>
#include <string>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr uint64_t seed = 20261121;

constexpr Kind kinds[] = {Kind::allreduce, Kind::reduce, Kind::broadcast, Kind::allgather,
                          Kind::reduce_scatter};
constexpr bool has_root(Kind kind) { return kind == Kind::reduce || kind == Kind::broadcast; }
constexpr bool has_blocks(Kind kind) {
    return kind == Kind::allgather || kind == Kind::reduce_scatter;
}

using Paths = std::vector<std::vector<std::string>>;

// hosts[i]: ranks of host i, in rank order; two hosts to a rack.
Topology hosts_of(const std::vector<int> &hosts, bool racks = false) {
    Paths paths;
    for (size_t h = 0; h < hosts.size(); h++)
        for (int i = 0; i < hosts[h]; i++) {
            paths.push_back({"h" + std::to_string(h)});
            if (racks) paths.back().push_back("r" + std::to_string(h / 2));
        }
    return Topology(paths);
}

Topology random_topology(std::mt19937_64 &random, int32_t size) {
    Paths paths;
    size_t levels = 1 + random() % 3;
    for (int32_t rank = 0; rank < size; rank++) {
        paths.emplace_back();
        for (size_t level = 0; level < levels; level++)
            paths.back().push_back(std::to_string(random() % (2 + size_t(size) / (level + 1) / 3)));
    }
    return Topology(paths);
}

CollectiveSpec call_on(const Topology &topology, int32_t size, uint64_t count) {
    CollectiveSpec call;
    call.kind = Kind::allreduce;
    call.size = size;
    call.element_bytes = 4;
    call.count = count;
    call.topology = &topology;
    return call;
}

void prove(const CollectiveSpec &call, Algorithm algorithm, bool in_place) {
    EveryRank ranks(call);
    for (CollectiveSpec &spec : ranks.specs) spec.in_place = in_place && spec.rank % 3 != 1;
    Status status = ranks.build(algorithm);
    if (status == DTRAIN_OK) status = check(ranks.specs, ranks.schedules, seed + call.count);
    if (status != DTRAIN_OK)
        fail_msg("%s by %s, %d ranks, root %d, count %" PRIu64 ", seed %" PRIu64 ": %s",
                 kind_name(call.kind), algorithm_name(algorithm), call.size, call.root, call.count,
                 seed, error_text());
}

void right_on_any_topology(void **) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 150; round++) {
        auto size = int32_t(2 + random() % 30);
        Topology topology = random_topology(random, size);
        CollectiveSpec call = call_on(topology, size, random() % (3 * uint64_t(size)));
        call.chunk_bytes = 12;
        for (Kind kind : kinds) {
            call.kind = kind;
            call.average = random() % 2 != 0;
            call.root = has_root(kind) ? int32_t(random() % uint64_t(size)) : 0;
            std::vector<uint64_t> counts;
            if (has_blocks(kind)) call.count = random() % 6;
            for (int32_t r = 0; has_blocks(kind) && round % 2 == 0 && r < size; r++)
                counts.push_back(random() % 6);
            call.counts = counts;
            for (Algorithm algorithm : {Algorithm::hierarchical, Algorithm::hierarchical_tree})
                for (bool in_place : {false, true})
                    if (supports(kind, algorithm, size)) prove(call, algorithm, in_place);
            call.counts = {};
        }
    }
}

void levels_that_say_nothing_are_left_out(void **) {
    assert_int_equal(hosts_of({1, 1, 1}).levels(), 0);
    assert_int_equal(hosts_of({5}).levels(), 0);
    assert_int_equal(hosts_of({2, 2}, true).levels(), 1);
    Topology racks = hosts_of({2, 3, 2, 2}, true);
    assert_int_equal(racks.levels(), 2);
    assert_int_equal(racks.group_count(0), 4);
    assert_int_equal(racks.largest_group(0), 3);
    assert_int_equal(racks.smallest_group(0), 2);
    assert_int_equal(racks.group_count(1), 2);
    // The same name elsewhere is another group.
    Topology same = Topology(Paths{{"a", "x"}, {"a", "x"}, {"a", "y"}, {"a", "y"}});
    assert_int_equal(same.group_count(0), 2);
}

void locations_are_paths(void **) {
    const std::string hosts[] = {"a", "a", "b", "b", "c", "c", "d", "d"};
    const std::string west = "west/r1", east = "/east//r1/";
    const std::string locations[] = {west, west, west, west, east, east, east, east};
    Topology topology = Topology::of(hosts, locations);
    assert_int_equal(topology.levels(), 2);
    assert_int_equal(topology.group_count(0), 4);
    assert_int_equal(topology.group_count(1), 2); // r1 and r1 are two racks, as the zones tell
    assert_int_equal(topology.group(1, 3), 0);
    assert_int_equal(topology.group(1, 4), 1);
    assert_int_equal(Topology::of(hosts, std::vector<std::string>(8)).levels(), 1);
}

// Every byte leaves and enters a host as rarely as the ring between hosts allows.
void least_bytes_between_hosts(void **) {
    constexpr uint64_t count = 4 * 3 * 1000;
    for (bool racks : {false, true}) {
        Topology topology = hosts_of({3, 3, 3, 3}, racks);
        CollectiveSpec call = call_on(topology, 12, count);
        EveryRank ranks(call);
        assert_int_equal(ranks.build(Algorithm::hierarchical), DTRAIN_OK);
        std::vector<uint64_t> leaving(4), leaving_rack(2);
        for (int32_t rank = 0; rank < 12; rank++)
            for (const engine::Step &step : ranks.schedules[size_t(rank)].steps) {
                if (step.kind != engine::StepKind::send) continue;
                int32_t from = rank / 3, to = step.peer / 3;
                if (from != to) leaving[size_t(from)] += step.bytes;
                if (from / 2 != to / 2) leaving_rack[size_t(from / 2)] += step.bytes;
            }
        if (!racks)
            for (uint64_t bytes : leaving) assert_int_equal(bytes, count * 4 * 2 * 3 / 4);
        else
            for (uint64_t bytes : leaving_rack) assert_int_equal(bytes, count * 4);
    }
}

double simulate(CollectiveSpec call, Algorithm algorithm, const NetworkModel &model) {
    call.chunk_bytes = piece_bytes(call, algorithm, model);
    EveryRank ranks(call);
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    double ns = 0;
    assert_int_equal(price(ranks.schedules, model, ns, call.topology), DTRAIN_OK);
    return ns;
}

// The worst choice of this kind over a grid of hosts, sizes and networks, times the best.
double worst_choice(Kind kind) {
    double worst = 1;
    for (const std::vector<int> &hosts : {std::vector<int>{2, 2, 2, 2},
                                          {4, 4},
                                          {8, 8, 8, 8},
                                          {4, 4, 4, 4, 4, 4},
                                          {3, 2, 4},
                                          {1, 4, 4}})
        for (uint64_t bytes = 4; bytes <= (16 << 20); bytes *= 8)
            for (NetworkModel model : networks) {
                model.host_latency_ns = 300, model.host_overhead_ns = 200;
                model.host_ns_per_byte = std::min(model.ns_per_byte, 0.1);
                Topology topology = hosts_of(hosts);
                int32_t size = 0;
                for (int ranks : hosts) size += ranks;
                CollectiveSpec call = call_of(kind, size, bytes);
                call.topology = &topology;
                Algorithm choice = Algorithm::direct, winner = choice;
                assert_int_equal(choose(call, model, std::nullopt, choice), DTRAIN_OK);
                double cost = simulate(call, choice, model), best = cost;
                for (Algorithm algorithm : all_algorithms()) {
                    if (!supports(kind, algorithm, size)) continue;
                    double other = simulate(call, algorithm, model);
                    if (other < best) best = other, winner = algorithm;
                }
                if (cost / best > worst)
                    print_message("%s, %d hosts, %d ranks, %" PRIu64 " bytes, latency %.0f: %s "
                                  "%.2f times %s\n",
                                  kind_name(kind), int(hosts.size()), size, bytes, model.latency_ns,
                                  algorithm_name(choice), cost / best, algorithm_name(winner));
                worst = std::max(worst, cost / best);
            }
    print_message("%s: the choice cost at most %.2f times the best\n", kind_name(kind), worst);
    return worst;
}

void never_much_worse_than_the_best(void **) {
    for (Kind kind : kinds) assert_true(worst_choice(kind) <= 1.2);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(right_on_any_topology),
        cmocka_unit_test(levels_that_say_nothing_are_left_out),
        cmocka_unit_test(locations_are_paths),
        cmocka_unit_test(least_bytes_between_hosts),
        cmocka_unit_test(never_much_worse_than_the_best),
    };
    return cmocka_run_group_tests_name("hierarchical", tests, nullptr, nullptr);
}
