// The choice against what the alternatives really cost.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/algorithms/build.h"
#include "collectives/cost/choose.h"
#include "every_rank.h"
#include "networks.h"
#include "thorough.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr double tolerance = 1.2; // times the best
// Predictions exceed the simulation by less than this (test_price.cpp): what is predicted to cost
// more than this times the choice need not be simulated.
constexpr double hopeless = 1.7 * tolerance;

// Those of networks.h and some where one resource is much slower than the others.
const std::vector<std::pair<const char *, NetworkModel>> grid_networks = [] {
    std::vector<std::pair<const char *, NetworkModel>> all;
    for (size_t i = 0; i < std::size(networks); i++)
        all.emplace_back(network_names[i], networks[i]);
    all.insert(all.end(), {{"rdma", {2000, 200, 0.04, 0.05, 0.03}},
                           {"1 Gbit/s", {50000, 2000, 8.0, 0.05, 0.03}},
                           {"costly system calls", {100, 1500, 0.3, 0.08, 0.06}},
                           {"slow sums", {1000, 2500, 0.1, 0.3, 0.1}}});
    return all;
}();

struct Grid {
    std::vector<int32_t> sizes;
    uint64_t factor;            // from one number of bytes to the next
    size_t most_steps;          // of a simulation, all ranks together
    std::vector<int32_t> large; // for small messages only
};
const Grid &grid() {
#ifdef __OPTIMIZE__
    static const Grid fast = {{2, 3, 4, 5, 6, 8, 13, 16, 17, 31, 64}, 16, 20'000, {1024}};
#else
    static const Grid fast = {{2, 3, 4, 8, 13}, 64, 3'000, {256}}; // sanitizers are slow
#endif
    static const Grid full = {{2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 31, 64, 100, 256, 1024},
                              8,
                              3'000'000,
                              {1024, 4096, 10007, 16384}};
    return is_thorough() ? full : fast;
}

// Infinite when it is too large to be simulated.
double simulate_in_pieces(const CollectiveSpec &call, Algorithm algorithm,
                          const NetworkModel &model) {
    size_t steps = 0;
    for (int32_t rank : {0, call.size / 2, call.size - 1}) {
        CollectiveSpec one = call;
        one.rank = rank;
        engine::Schedule schedule;
        assert_int_equal(build(one, algorithm, schedule), DTRAIN_OK);
        steps = std::max(steps, schedule.steps.size() * size_t(call.size));
    }
    if (steps > grid().most_steps) return std::numeric_limits<double>::infinity();
    EveryRank ranks(call);
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    double ns = 0;
    assert_int_equal(price(ranks.schedules, model, ns), DTRAIN_OK);
    return ns;
}

// In the pieces that the choice leads to.
double simulate(CollectiveSpec call, Algorithm algorithm, const NetworkModel &model) {
    call.chunk_bytes = piece_bytes(call, algorithm, model);
    return simulate_in_pieces(call, algorithm, model);
}

double predicted(const CollectiveSpec &call, Algorithm algorithm, const NetworkModel &model) {
    return predict(call.kind, algorithm, call.size, call.count * call.element_bytes, model,
                   piece_bytes(call, algorithm, model));
}

Algorithm chosen(const CollectiveSpec &call, const NetworkModel &model) {
    Algorithm algorithm = Algorithm::direct;
    assert_int_equal(choose(call, model, std::nullopt, algorithm), DTRAIN_OK);
    return algorithm;
}

// Returns how much worse the choice is than the best; 1 when it is too large to tell.
double regret(const CollectiveSpec &call, const char *network, const NetworkModel &model) {
    Algorithm choice = chosen(call, model);
    double cost = simulate(call, choice, model), best = cost;
    if (!std::isfinite(cost)) return 1;
    Algorithm winner = choice;
    for (Algorithm algorithm : all_algorithms()) {
        if (algorithm == choice || predicted(call, algorithm, model) > hopeless * cost) continue;
        double other = simulate(call, algorithm, model);
        if (other < best) best = other, winner = algorithm;
    }
    if (cost > tolerance * best)
        fail_msg("%s over %d ranks, count %" PRIu64 ", %s: %s costs %.0f ns, %s %.0f ns",
                 kind_name(call.kind), call.size, call.count, network, algorithm_name(choice), cost,
                 algorithm_name(winner), best);
    return cost / best;
}

void never_much_worse_than_the_best(void **) {
    for (int kind = 0; kind < kind_count; kind++) {
        double worst = 1;
        for (int32_t size : grid().sizes)
            for (uint64_t bytes = 4; bytes <= (1 << 28); bytes *= grid().factor)
                for (auto &[name, model] : grid_networks)
                    worst = std::max(worst, regret(call_of(Kind(kind), size, bytes), name, model));
        print_message("%-14s the choice cost at most %.2f times the best\n", kind_name(Kind(kind)),
                      worst);
    }
}

void many_ranks(void **) {
    for (Kind kind : {Kind::allreduce, Kind::reduce, Kind::broadcast, Kind::barrier})
        for (int32_t size : grid().large)
            for (uint64_t bytes : {4, 4096})
                for (auto &[name, model] : grid_networks)
                    regret(call_of(kind, size, bytes), name, model);
}

// Up to 16,384 ranks and 1 GiB: the least prediction, whatever the rank.
void same_on_all_ranks(void **) {
    for (int kind = 0; kind < kind_count; kind++)
        for (int32_t size = 2; size <= 16384; size = size * 2 + size % 3)
            for (uint64_t bytes = 4; bytes <= (1 << 30); bytes *= 8)
                for (const NetworkModel &model : networks) {
                    CollectiveSpec call = call_of(Kind(kind), size, bytes);
                    Algorithm choice = chosen(call, model);
                    const double imprecise = call.kind == Kind::reduce ? 1.7 : 1; // simulated
                    assert_true(supports(call.kind, choice, size));
                    for (Algorithm algorithm : all_algorithms())
                        assert_true(predicted(call, choice, model) <=
                                    imprecise * predicted(call, algorithm, model));
                    call.rank = size - 1;
                    call.in_place = true;
                    assert_int_equal(int(chosen(call, model)), int(choice));
                }
}

void sensible_choices(void **) {
    const NetworkModel &model = networks[1];
    assert_int_equal(int(chosen(call_of(Kind::allreduce, 2, 4), model)), int(Algorithm::direct));
    assert_int_equal(int(chosen(call_of(Kind::barrier, 1000, 0), model)),
                     int(Algorithm::recursive_doubling));
    // A rank that shares a core waits for the work of all: a tree has the least of it, and the
    // fewest connections.
    NetworkModel shared = model;
    shared.ranks_per_core = 128;
    shared.overhead_ns *= 128;
    assert_int_equal(int(chosen(call_of(Kind::barrier, 256, 0), shared)),
                     int(Algorithm::binomial_tree));
    shared.ns_per_byte *= 128;
    shared.reduce_ns_per_byte *= 128;
    shared.copy_ns_per_byte *= 128;
    for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::broadcast})
        for (const uint64_t bytes : {8, 16384})
            assert_int_equal(int(chosen(call_of(kind, 256, bytes), shared)),
                             int(Algorithm::binomial_tree));
    Algorithm large = chosen(call_of(Kind::allreduce, 8, 1 << 28), model);
    assert_true(large == Algorithm::ring || large == Algorithm::halving_doubling);
    Algorithm small = chosen(call_of(Kind::allreduce, 1024, 64), model);
    assert_true(small == Algorithm::recursive_doubling || small == Algorithm::bruck);
}

// A path of n ranks is filled by n - 1 pieces before the last rank has anything.
void vectors_are_passed_on_in_smaller_pieces(void **) {
    const NetworkModel &model = networks[2];
    for (const Kind kind : {Kind::broadcast, Kind::reduce})
        for (const Algorithm algorithm : {Algorithm::ring, Algorithm::double_tree}) {
            if (!supports(kind, algorithm, 8)) continue;
            CollectiveSpec call = call_of(kind, 8, 1 << 20);
            const double usual = simulate_in_pieces(call, algorithm, model);
            assert_true(piece_bytes(call, algorithm, model) < usual_chunk);
            assert_true(usual > 1.25 * simulate(call, algorithm, model));
        }
    // At most as large as the option says; where each piece costs more, they are larger.
    CollectiveSpec call = call_of(Kind::broadcast, 8, 1 << 20);
    for (const uint64_t chunk : {4 << 10, 100 << 10, 1 << 20}) {
        call.chunk_bytes = chunk;
        const uint64_t piece = piece_bytes(call, Algorithm::ring, model);
        assert_in_range(piece, std::min<uint64_t>(chunk, std::max<uint64_t>(chunk / 8, 32 << 10)),
                        chunk);
    }
    const auto has_usual_ones = [](const CollectiveSpec &one, const NetworkModel &on) {
        return piece_bytes(one, Algorithm::ring, on) == usual_chunk;
    };
    NetworkModel costly = model, shared = model;
    costly.overhead_ns = 1e6;
    shared.ranks_per_core = 2;
    assert_true(has_usual_ones(call_of(Kind::broadcast, 8, 1 << 20), costly));
    assert_true(has_usual_ones(call_of(Kind::broadcast, 8, 1 << 20), shared));
    assert_true(has_usual_ones(call_of(Kind::broadcast, 2, 1 << 20), model));
    assert_true(has_usual_ones(call_of(Kind::allreduce, 8, 1 << 20), model));
}

void forced(void **) {
    CollectiveSpec call = call_of(Kind::allreduce, 8, 4);
    Algorithm algorithm = Algorithm::direct;
    assert_int_equal(choose(call, networks[0], Algorithm::double_tree, algorithm), DTRAIN_OK);
    assert_int_equal(int(algorithm), int(Algorithm::double_tree));
    call.kind = Kind::gather;
    assert_int_equal(choose(call, networks[0], Algorithm::double_tree, algorithm),
                     DTRAIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(error_text(), "gather over 8 ranks cannot use"));
}

void counts_that_differ(void **) {
    std::vector<uint64_t> counts = {0, 5, 1000, 7};
    for (Kind kind : {Kind::reduce_scatter, Kind::allgather, Kind::gather, Kind::alltoall}) {
        CollectiveSpec call = call_of(kind, 4, 0);
        call.counts = counts;
        Algorithm choice = chosen(call, networks[2]);
        assert_true(supports(kind, choice, 4, false));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(never_much_worse_than_the_best),
        cmocka_unit_test(many_ranks),
        cmocka_unit_test(same_on_all_ranks),
        cmocka_unit_test(sensible_choices),
        cmocka_unit_test(vectors_are_passed_on_in_smaller_pieces),
        cmocka_unit_test(forced),
        cmocka_unit_test(counts_that_differ),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
