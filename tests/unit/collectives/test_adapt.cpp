// Adaptation with a wrong model: times come from the simulation of another network.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/communicator/adapt.h"
#include "every_rank.h"
#include "networks.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

int64_t simulate(const CollectiveSpec &call, Algorithm algorithm, const NetworkModel &model) {
    EveryRank ranks(call);
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    double ns = 0;
    assert_int_equal(price(ranks.schedules, model, ns), DTRAIN_OK);
    return int64_t(ns);
}

constexpr NetworkModel wrong = {100, 100, 0.8, 0.1, 0.05}, right = {1000, 30000, 0.02, 0.02, 0.02};

void ends_with_the_fastest_of_those_tried(void **) {
    CollectiveSpec call = call_of(Kind::allreduce, 8, 64 << 10);
    Adaptation rank0(wrong), rank1(wrong);
    std::set<Algorithm> tried;
    uint64_t sequence = 0;
    double predicted = candidates(call, wrong)[0].ns;
    while (!rank0.due(call)) {
        assert_false(rank1.due(call));
        CollectiveSpec other = call; // what ranks need not agree on
        other.rank = 1;
        other.in_place = true;
        sequence++;
        Algorithm algorithm = *rank0.next(call, sequence);
        assert_int_equal(int(*rank1.next(other, sequence)), int(algorithm));
        assert_true(predict(call.kind, algorithm, call.size, 64 << 10, wrong, call.chunk_bytes) <=
                    Adaptation::most_ratio * predicted);
        tried.insert(algorithm);
        // Now and then a rank is late: the fastest try counts.
        rank0.ended(sequence, simulate(call, algorithm, right) * (sequence % 4 == 0 ? 9 : 1));
        if (sequence % 5 != 0) rank1.ended(sequence, simulate(call, algorithm, right) + 1);
    }
    assert_true(rank1.due(call));
    assert_true(tried.size() >= 2 && tried.size() <= Adaptation::most_candidates);
    assert_int_equal(sequence, Adaptation::tries * tried.size());
    Adaptation::Times agreed = rank0.measured(call), other = rank1.measured(call);
    for (size_t i = 0; i < agreed.size(); i++) agreed[i] = std::max(agreed[i], other[i]);
    Algorithm chosen = rank0.decide(call, agreed);
    assert_int_equal(int(rank1.decide(call, agreed)), int(chosen));
    int64_t best = std::numeric_limits<int64_t>::max();
    for (Algorithm algorithm : tried) best = std::min(best, simulate(call, algorithm, right));
    assert_int_equal(simulate(call, chosen, right), best);
    // The wrong model would have taken another one, forever.
    assert_true(chosen != candidates(call, wrong)[0].algorithm);
    for (int i = 0; i < 100; i++) {
        assert_false(rank0.due(call));
        assert_int_equal(int(*rank0.next(call, ++sequence)), int(chosen));
    }
}

void without_times_the_prediction_stays(void **) {
    CollectiveSpec call = call_of(Kind::allreduce, 16, 64 << 10);
    Adaptation adaptation(wrong);
    for (uint64_t sequence = 1; !adaptation.due(call); sequence++) adaptation.next(call, sequence);
    Algorithm chosen = adaptation.decide(call, adaptation.measured(call));
    assert_int_equal(int(chosen), int(candidates(call, wrong)[0].algorithm));
}

void shapes_are_bounded(void **) {
    Adaptation adaptation(wrong);
    for (uint64_t i = 1; i <= 2 * Adaptation::most_shapes; i++) {
        CollectiveSpec call = call_of(Kind::allreduce, 16, 1024 * i);
        assert_int_equal(adaptation.next(call, i).has_value(), i <= Adaptation::most_shapes);
        assert_false(adaptation.due(call));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_the_fastest_of_those_tried),
        cmocka_unit_test(without_times_the_prediction_stays),
        cmocka_unit_test(shapes_are_bounded),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
