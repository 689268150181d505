// Agreement among many ranks: any order, fusion, the short way, priorities, joins, eviction.
// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <set>

using namespace world;

namespace {

constexpr uint32_t seed = 20240607;

TensorSpec random_spec(int i) {
    static constexpr uint8_t dtypes[] = {DTRAIN_F32, DTRAIN_F64, DTRAIN_BF16};
    static constexpr uint8_t ops[] = {DTRAIN_SUM, DTRAIN_AVG};
    return {.count = uint64_t(1 + i * 37 % 900), .dtype = dtypes[i % 3], .op = ops[i / 3 % 2]};
}

// Each rank submits each tensor once per step in an order of its own, some of them per cycle, and
// does not wait for a step to end (but a name has to be free again).
void any_order(int size, int tensors, int steps, uint64_t known, uint32_t run_seed) {
    std::mt19937 random(run_seed);
    World w(size, {.bucket_bytes = 4096, .known_tensors = known});
    std::vector<std::vector<std::pair<int, int>>> left(static_cast<size_t>(size)); // tensor, step
    for (auto &mine : left)
        for (int step = 0; step < steps; step++) {
            auto begin = mine.size();
            for (int i = 0; i < tensors; i++) mine.push_back({i, step});
            std::shuffle(mine.begin() + long(begin), mine.end(), random);
        }
    for (auto &mine : left) std::reverse(mine.begin(), mine.end());
    auto all_done = [&] {
        return std::all_of(left.begin(), left.end(), [](auto &mine) { return mine.empty(); });
    };
    while (!all_done()) {
        for (int r = 0; r < size; r++) {
            auto &mine = left[size_t(r)];
            for (auto n = random() % 6; n > 0 && !mine.empty(); n--) {
                Status s = w.submit(r, numbered(mine.back().first), random_spec(mine.back().first),
                                    mine.back().first % 4);
                if (s == DTRAIN_ERR_BUSY) break;
                assert_int_equal(s, DTRAIN_OK);
                mine.pop_back();
            }
        }
        w.cycle();
        assert_true(w.cycles < 100'000);
    }
    w.run();
    for (Rank &rank : w.ranks) {
        assert_true(rank.failed.empty() && rank.names.empty());
        for (int i = 0; i < tensors; i++) assert_int_equal(rank.finished[numbered(i)], steps);
    }
}

void any_order_on_any_number_of_ranks(void **) {
    std::printf("seed %u\n", seed);
    for (int size = 1; size <= 17; size++) any_order(size, 40, 4, 4096, seed + uint32_t(size));
}

void fewer_known_than_used(void **) {
    for (int size : {1, 2, 5}) any_order(size, 40, 4, 7, seed * 3 + uint32_t(size));
}

// What waits stays known however little is to be kept, in the worst order.
void opposite_orders_do_not_lock(void **) {
    World w(2, {.known_tensors = 4});
    for (int i = 0; i < 100; i++) {
        assert_int_equal(w.submit(0, numbered(i), f32(1)), DTRAIN_OK);
        assert_int_equal(w.submit(1, numbered(99 - i), f32(1)), DTRAIN_OK);
        if (i < 49) assert_true(w.cycle().empty());
    }
    w.run();
    assert_true(w.ranks[0].names.empty() && w.ranks[1].names.empty());
    for (int i = 0; i < 1000; i++) { // and goes when it does not wait
        for (int r = 0; r < 2; r++) w.submit(r, numbered(1000 + i), f32(1));
        w.cycle();
    }
    assert_true(w.longest_words <= 1 + words_for(100 + 4));
}

void the_same_step_again_needs_no_exchange(void **) {
    World w(4);
    auto step = [&] {
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 100; i++) w.submit(r, numbered((i * 7 + r) % 100), f32(10));
        w.run(1);
    };
    step();
    assert_int_equal(w.exchanges, 1);
    for (int i = 0; i < 10; i++) step();
    assert_int_equal(w.exchanges, 1);
    assert_int_equal(w.longest_words, 1 + words_for(100));
    assert_int_equal(w.bucket_sizes.size(), 11);
    assert_int_equal(w.ranks[2].finished["t99"], 11);
}

void fuses_up_to_the_limit(void **) {
    World w(2, {.bucket_bytes = 400});
    auto submit = [&](const std::string &name, TensorSpec spec) {
        for (int r = 0; r < 2; r++) w.submit(r, name, spec);
    };
    submit("a", f32(50));                                                 // 200 bytes
    submit("large", f32(1000));                                           // alone
    submit("b", f32(40));                                                 // with a
    submit("other", {.count = 5, .dtype = DTRAIN_F64, .op = DTRAIN_SUM}); // another dtype
    submit("average", f32(5, DTRAIN_AVG));                                // another op
    submit("c", f32(10));                                                 // with a and b: 400 bytes
    submit("d", f32(1));                                                  // too much
    using Names = std::vector<std::string>;
    assert_true(w.cycle() == (Names{"a", "b", "c"}));
    assert_true(w.cycle() == Names{"large"});
    assert_true(w.cycle() == Names{"other"});
    assert_true(w.cycle() == Names{"average"});
    assert_true(w.cycle() == Names{"d"});
    assert_true(w.cycle().empty());
}

void higher_priority_overtakes(void **) {
    World w(3, {.bucket_bytes = 64});
    auto submit = [&](int i, int32_t priority) {
        for (int r = 0; r < 3; r++) w.submit(r, numbered(i), f32(16), priority);
    };
    for (int i = 0; i < 5; i++) submit(i, 0);
    assert_true(w.cycle() == std::vector<std::string>{"t0"});
    submit(5, 10); // while others are agreed on already
    submit(6, 20);
    submit(7, -1);
    std::string order;
    for (auto names = w.cycle(); !names.empty(); names = w.cycle()) order += names.at(0);
    assert_string_equal(order.c_str(), "t6t5t1t2t3t4t7");
    // The rank that made it known may change it, the others' opinion does not matter.
    submit(0, 0);
    w.submit(0, "t1", f32(16), 5);
    w.submit(1, "t1", f32(16), 0);
    w.submit(2, "t1", f32(16), 0);
    size_t exchanges = w.exchanges;
    order.clear();
    for (auto names = w.cycle(); !names.empty(); names = w.cycle()) order += names.at(0);
    assert_int_equal(w.exchanges, exchanges + 1);
    assert_string_equal(order.c_str(), "t1t0");
}

// ---- joining ----

// Rank r has work for counts[r] steps of three tensors; the others go on without it.
void uneven(int size, uint32_t run_seed) {
    std::mt19937 random(run_seed);
    World w(size, {.bucket_bytes = 128});
    for (int epoch = 0; epoch < 3; epoch++) {
        std::vector<int> counts(static_cast<size_t>(size)), done(counts.size());
        for (int &c : counts) c = int(random() % 6);
        for (Rank &rank : w.ranks) {
            rank.last_joined = -1;
            rank.submitted.clear();
            rank.finished.clear();
        }
        auto all_joined = [&] {
            return std::all_of(w.ranks.begin(), w.ranks.end(),
                               [](Rank &rank) { return rank.last_joined >= 0; });
        };
        size_t limit = w.cycles + 10'000;
        while (!all_joined()) {
            assert_true(w.cycles < limit);
            for (int r = 0; r < size; r++) {
                Rank &rank = w.ranks[size_t(r)];
                if (rank.joined || rank.last_joined >= 0 || random() % 3 == 0) continue;
                if (done[size_t(r)] < counts[size_t(r)]) {
                    if (!rank.names.empty()) continue; // a step at a time
                    for (int i : {2, 0, 1})
                        assert_int_equal(w.submit(r, numbered(i), f32(uint64_t(20 * i + 1))),
                                         DTRAIN_OK);
                    done[size_t(r)]++;
                } else {
                    w.join(r); // some of the last step may still wait
                }
            }
            w.cycle();
        }
        for (int r = 0; r < size; r++) {
            assert_true(w.ranks[size_t(r)].failed.empty() && w.ranks[size_t(r)].names.empty());
            assert_int_equal(w.ranks[size_t(r)].last_joined, w.ranks[0].last_joined);
            for (int i = 0; i < 3; i++)
                assert_int_equal(w.ranks[size_t(r)].finished[numbered(i)], counts[size_t(r)]);
        }
    }
}

void joined_ranks_are_not_waited_for(void **) {
    for (int size = 1; size <= 17; size++) uneven(size, seed + uint32_t(size));
}

void last_to_join_is_told(void **) {
    World w(3);
    w.join(2);
    w.cycle();
    w.join(0);
    w.cycle();
    assert_int_equal(w.submit(0, "x", f32(1)), DTRAIN_ERR_STATE);
    assert_int_equal(w.submit(1, "x", f32(1)), DTRAIN_OK); // 0 and 2 never saw it
    assert_true(w.cycle() == std::vector<std::string>{"x"});
    assert_int_equal(w.ranks[1].last_joined, -1);
    w.join(1);
    w.cycle();
    for (Rank &rank : w.ranks) assert_int_equal(rank.last_joined, 1);
    for (int r = 0; r < 3; r++) assert_int_equal(w.submit(r, "y", f32(1)), DTRAIN_OK);
    assert_true(w.cycle() == std::vector<std::string>{"y"}); // all are back
}

void zeros_do_for_sums_only(void **) {
    World w(2);
    for (int r = 0; r < 2; r++) w.submit(r, "known", f32(4, DTRAIN_MAX));
    w.run();
    w.join(1);
    w.submit(0, "known", f32(4, DTRAIN_MAX));
    w.submit(0, "new", f32(4, DTRAIN_PROD));
    w.submit(0, "sum", f32(4, DTRAIN_AVG));
    assert_true(w.cycle() == std::vector<std::string>{"sum"});
    assert_int_equal(w.ranks[0].failed.at("known").first, DTRAIN_ERR_UNSUPPORTED);
    assert_int_equal(w.ranks[0].failed.at("new").first, DTRAIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(w.ranks[0].failed.at("new").second.c_str(), "rank 1 has joined; until"));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(any_order_on_any_number_of_ranks),
        cmocka_unit_test(fewer_known_than_used),
        cmocka_unit_test(opposite_orders_do_not_lock),
        cmocka_unit_test(the_same_step_again_needs_no_exchange),
        cmocka_unit_test(fuses_up_to_the_limit),
        cmocka_unit_test(higher_priority_overtakes),
        cmocka_unit_test(joined_ranks_are_not_waited_for),
        cmocka_unit_test(last_to_join_is_told),
        cmocka_unit_test(zeros_do_for_sums_only),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
