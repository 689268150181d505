// The choice against what the alternatives really cost.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/choose.h"
#include "every_rank.h"
#include "networks.h"

#include <algorithm>
#include <cinttypes>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr double tolerance = 1.2; // times the best
// Predictions exceed the simulation by less than this (test_price.cpp): what is predicted to cost
// more than this times the choice need not be simulated.
constexpr double hopeless = 1.7 * tolerance;
constexpr size_t most_steps = 100'000; // of a simulation

double simulate(const CollectiveSpec &call, Algorithm algorithm, const NetworkModel &model) {
    EveryRank ranks(call);
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    double ns = 0;
    assert_int_equal(price(ranks.schedules, model, ns), DTRAIN_OK);
    return ns;
}

double predicted(const CollectiveSpec &call, Algorithm algorithm, const NetworkModel &model) {
    return predict(call.kind, algorithm, call.size, call.count * call.element_bytes, model,
                   call.chunk_bytes);
}

Algorithm chosen(const CollectiveSpec &call, const NetworkModel &model) {
    Algorithm algorithm = Algorithm::direct;
    assert_int_equal(choose(call, model, std::nullopt, algorithm), DTRAIN_OK);
    return algorithm;
}

// Returns how much worse the choice is than the best.
double regret(const CollectiveSpec &call, size_t network) {
    const NetworkModel &model = networks[network];
    Algorithm choice = chosen(call, model);
    double cost = simulate(call, choice, model), best = cost;
    Algorithm winner = choice;
    for (int i = 0; i < algorithm_count; i++) {
        if (Algorithm(i) == choice || predicted(call, Algorithm(i), model) > hopeless * cost)
            continue;
        double other = simulate(call, Algorithm(i), model);
        if (other < best) best = other, winner = Algorithm(i);
    }
    if (cost > tolerance * best)
        fail_msg("%s over %d ranks, count %" PRIu64 ", %s: %s costs %.0f ns, %s %.0f ns",
                 kind_name(call.kind), call.size, call.count, network_names[network],
                 algorithm_name(choice), cost, algorithm_name(winner), best);
    return cost / best;
}

void never_much_worse_than_the_best(void **) {
    double worst = 1;
    for (int kind = 0; kind < kind_count; kind++)
        for (int32_t size : {2, 3, 4, 6, 8, 13, 16, 31, 64})
            for (uint64_t bytes = 4; bytes <= (1 << 28); bytes *= 16)
                for (size_t network = 0; network < std::size(networks); network++) {
                    CollectiveSpec call = call_of(Kind(kind), size, bytes);
                    uint64_t chunks = bytes / call.chunk_bytes * uint64_t(size);
                    if (chunks * 8 > most_steps) continue;
                    worst = std::max(worst, regret(call, network));
                }
    print_message("the choice cost at most %.2f times the best\n", worst);
}

// Up to 16,384 ranks and 1 GiB: the least prediction, whatever the rank.
void same_on_all_ranks(void **) {
    for (int kind = 0; kind < kind_count; kind++)
        for (int32_t size = 2; size <= 16384; size = size * 2 + size % 3)
            for (uint64_t bytes = 4; bytes <= (1 << 30); bytes *= 8)
                for (const NetworkModel &model : networks) {
                    CollectiveSpec call = call_of(Kind(kind), size, bytes);
                    Algorithm choice = chosen(call, model);
                    assert_true(supports(call.kind, choice, size));
                    for (int i = 0; i < algorithm_count; i++)
                        assert_true(predicted(call, choice, model) <=
                                    predicted(call, Algorithm(i), model));
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
    Algorithm large = chosen(call_of(Kind::allreduce, 8, 1 << 28), model);
    assert_true(large == Algorithm::ring || large == Algorithm::halving_doubling);
    Algorithm small = chosen(call_of(Kind::allreduce, 1024, 64), model);
    assert_true(small == Algorithm::recursive_doubling || small == Algorithm::bruck);
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
        cmocka_unit_test(same_on_all_ranks),
        cmocka_unit_test(sensible_choices),
        cmocka_unit_test(forced),
        cmocka_unit_test(counts_that_differ),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
