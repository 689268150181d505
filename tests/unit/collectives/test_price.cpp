// The simulation against cases computed by hand, and the closed formulas against the simulation.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/cost/choose.h"
#include "every_rank.h"
#include "networks.h"
#include "tested.h"
#include "thorough.h"

#include <cinttypes>
#include <cmath>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

// prediction / simulation, as price.h promises. The test prints what it sees per algorithm; most
// are within 10 %. Long messages through folds, trees and Bruck are off: the formulas know less of
// what overlaps than there is.
constexpr double short_low = 0.85, short_high = 1.2; // up to 16 KiB
constexpr double long_low = 0.6, long_high = 1.7;
constexpr uint64_t short_bytes = 16384;
#ifdef __OPTIMIZE__
const size_t most_steps = is_thorough() ? 100'000 : 20'000; // of a simulation
#else
const size_t most_steps = 3'000; // with sanitizers more would take minutes
#endif

double simulate(EveryRank &ranks, Algorithm algorithm, const NetworkModel &model) {
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    double ns = -1;
    assert_int_equal(price(ranks.schedules, model, ns), DTRAIN_OK);
    return ns;
}

void assert_close(double a, double b) {
    if (std::fabs(a - b) > 1e-6 * std::fabs(b)) fail_msg("%.3f instead of %.3f", a, b);
}

void by_hand(void **) {
    NetworkModel model{1000, 10, 0.5, 0.25, 0.125};
    double hop = 10 + 1000 + 10;

    EveryRank pair(call_of(Kind::broadcast, 2, 400));
    assert_close(simulate(pair, Algorithm::direct, model), hop + 400 * 0.5);

    // The root's link out carries three messages one after the other.
    EveryRank four(call_of(Kind::broadcast, 4, 4000));
    assert_close(simulate(four, Algorithm::direct, model), hop + 3 * 4000 * 0.5);

    // Three rounds of a quarter each; with sums in the first three.
    EveryRank ring(call_of(Kind::allreduce, 4, 4000));
    assert_close(simulate(ring, Algorithm::ring, model), 6 * (hop + 1000 * 0.5) + 3 * 1000 * 0.25);

    // A chain of 3 hops, 4 chunks: the first goes through, the others follow at the link's pace.
    CollectiveSpec call = call_of(Kind::broadcast, 4, 4000);
    call.chunk_bytes = 1000;
    EveryRank chain(call);
    assert_close(simulate(chain, Algorithm::ring, model), 3 * (hop + 500) + 3 * 500);

    EveryRank alone(call_of(Kind::allreduce, 1, 4000));
    assert_close(simulate(alone, Algorithm::ring, model), 4000 * 0.125);
}

void broken_schedules(void **) {
    EveryRank ranks(call_of(Kind::broadcast, 3, 100));
    assert_int_equal(ranks.build(Algorithm::direct), DTRAIN_OK);
    ranks.schedules[0].steps.pop_back();
    double ns = -1;
    assert_int_equal(price(ranks.schedules, networks[0], ns), DTRAIN_ERR_INVALID);
    assert_true(ns == -1);
}

struct Extremes {
    double low = 1, high = 1;
    void add(double ratio) {
        low = std::min(low, ratio);
        high = std::max(high, ratio);
    }
};

// Compares at one size of one kind on one network.
void compare(EveryRank &ranks, Algorithm algorithm, size_t network, uint64_t bytes,
             Extremes &seen) {
    const CollectiveSpec &spec = ranks.specs[0];
    double simulated = -1;
    assert_int_equal(price(ranks.schedules, networks[network], simulated), DTRAIN_OK);
    double predicted = predict(spec.kind, algorithm, spec.size, spec.count * spec.element_bytes,
                               networks[network], spec.chunk_bytes);
    double ratio = predicted / simulated;
    seen.add(ratio);
    bool is_short = bytes <= short_bytes;
    if (ratio < (is_short ? short_low : long_low) || ratio > (is_short ? short_high : long_high))
        fail_msg("%s by %s, %d ranks, %" PRIu64 " bytes, %s: predicted %.0f ns, simulated %.0f ns",
                 kind_name(spec.kind), algorithm_name(algorithm), spec.size, bytes,
                 network_names[network], predicted, simulated);
}

void formulas(void **) {
    for (int kind = 0; kind < kind_count; kind++)
        for (Algorithm algorithm : tested_algorithms()) {
            if (std::isinf(predict(Kind(kind), algorithm, 2, 4, networks[0], 1 << 18)))
                continue; // not supported, or not without hosts
            Extremes short_seen, long_seen;
            for (int32_t size : {2, 3, 4, 5, 7, 8, 13, 31, 32, 64})
                for (uint64_t bytes : {4, 1024, 16384, 262144, 1 << 20, 1 << 24, 1 << 28}) {
                    CollectiveSpec call = call_of(Kind(kind), size, bytes);
                    if (!supports(Kind(kind), algorithm, size) ||
                        bytes / call.chunk_bytes * uint64_t(size) > most_steps)
                        continue;
                    EveryRank ranks(call);
                    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
                    if (ranks.schedules[0].steps.size() * size_t(size) > most_steps) continue;
                    for (size_t network = 0; network < std::size(networks); network++)
                        compare(ranks, algorithm, network, bytes,
                                bytes <= short_bytes ? short_seen : long_seen);
                }
            if (supports(Kind(kind), algorithm, 2))
                print_message("%-14s %-18s short %.2f .. %.2f  long %.2f .. %.2f\n",
                              kind_name(Kind(kind)), algorithm_name(algorithm), short_seen.low,
                              short_seen.high, long_seen.low, long_seen.high);
        }
}

// What has no formula is used when it is forced, and can be simulated.
void without_a_formula(void **) {
    for (Algorithm algorithm : tested_algorithms())
        for (const Method &method : description(algorithm).methods) {
            if (method.cost != nullptr) continue;
            assert_true(std::isinf(predict(method.kind, algorithm, 4, 1024, networks[0], 1 << 18)));
            for (int32_t size : {2, 4, 7, 16}) {
                if (!supports(method.kind, algorithm, size)) continue;
                CollectiveSpec call = call_of(method.kind, size, 1 << 20);
                assert_true(simulated(call, algorithm, networks[1]) > networks[1].latency_ns);
                Algorithm chosen = Algorithm::direct;
                assert_int_equal(choose(call, networks[1], std::nullopt, chosen), DTRAIN_OK);
                assert_true(chosen != algorithm);
                assert_int_equal(choose(call, networks[1], algorithm, chosen), DTRAIN_OK);
                assert_true(chosen == algorithm);
            }
        }
}

// Tens of thousands of ranks, without a network.
void many_ranks(void **) {
    struct {
        Kind kind;
        Algorithm algorithm;
        int32_t size;
    } cases[] = {
        {Kind::allreduce, Algorithm::recursive_doubling, 16384},
        {Kind::allreduce, Algorithm::binomial_tree, 16000},
        {Kind::broadcast, Algorithm::binomial_tree, 16384},
        {Kind::barrier, Algorithm::recursive_doubling, 10007},
        {Kind::allreduce, Algorithm::ring, 256},
    };
    for (auto &c : cases) {
        if (size_t(c.size) > most_steps) continue;
        EveryRank ranks(call_of(c.kind, c.size, 4096));
        assert_int_equal(ranks.build(c.algorithm), DTRAIN_OK);
        Extremes seen;
        compare(ranks, c.algorithm, 1, 4096, seen);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),    cmocka_unit_test(broken_schedules),
        cmocka_unit_test(formulas),   cmocka_unit_test(without_a_formula),
        cmocka_unit_test(many_ranks),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
