// Images of dense shards that are made in turns with changes, against what was there.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard.h"

#include "check.h"
#include "complete.h"
#include "keeper.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace dtrain::ps;

namespace {

using Random = std::mt19937_64;

TableParams dense(uint32_t rule, uint32_t storage, uint64_t row_length) {
    TableParams params;
    params.length = 30000; // arrays of many pages, the last of which is cut
    params.dtype = DTRAIN_F32;
    params.rule = rule;
    params.storage_dtype = storage;
    params.row_length = row_length;
    params.initial = 0.5;
    return params;
}

// All that is in an image, taken by other means.
std::vector<std::string> contents(Shard &shard, const TableParams &params) {
    std::vector<std::string> all;
    const Range range = shard.part().range(0);
    constexpr uint64_t most = 2000;
    std::string values;
    for (uint64_t at = range.first; at < range.end(); at += most) {
        const Range part = {at, std::min(most, range.end() - at)};
        const auto sent = shard.lie_as_sent() ? nullptr : shard.as_sent(part);
        values += sent != nullptr ? bytes_of(sent->at(0), part.count * sizeof(float))
                                  : bytes_of(shard.at(at), part.count * sizeof(float));
    }
    all.push_back(values);
    StateArray array;
    for (uint32_t i = 0; find_state(params, i, array); i++) {
        const Shard::Pulled state = shard.state(i, range);
        all.push_back(bytes_of(state.numbers, array.bytes_of(range.count)));
    }
    return all;
}

std::vector<std::string> contents(const ShardImage &image) {
    std::vector<std::string> all;
    const uint64_t count = image.part.count();
    if (image.values.narrow()) {
        std::vector<float> wide(count);
        image.values.read({0, count}, wide.data());
        all.push_back(bytes_of(wide.data(), count * sizeof(float)));
    } else {
        all.push_back(bytes_of(image.values.at(0), count * sizeof(float)));
    }
    StateArray array;
    for (uint32_t i = 0; find_state(image.params, i, array); i++) {
        if (array.steps) {
            std::vector<uint64_t> counts(array.numbers_of(count));
            image.steps.read({0, counts.size()}, counts.data());
            all.push_back(bytes_of(counts.data(), array.bytes_of(count)));
        } else {
            all.push_back(bytes_of(image.slots[i]->at(0), array.bytes_of(count)));
        }
    }
    return all;
}

// Changes a dense shard at random places, in all ways there are.
struct DenseChanges {
    Shard &shard;
    TableParams params;
    Random &random;
    std::vector<float> numbers = std::vector<float>(30000);

    Range some() {
        const bool parts = params.rule == DTRAIN_RULE_ADAGRAD; // of rows, too
        const uint64_t unit = parts ? 1 : std::max<uint64_t>(params.row_length, 1);
        const uint64_t all = 30000 / unit;
        const uint64_t first = random() % all, longest = random() % 2 == 0 ? 3 : 4000 / unit + 1;
        const uint64_t count = std::min(1 + random() % longest, all - first);
        return {first * unit, count * unit};
    }
    void change() {
        const Range range = some();
        for (uint64_t i = 0; i < range.count; i++) numbers[i] = float(random() % 1000) / 500 - 1;
        StateArray array;
        switch (random() % 6) {
        case 0: return shard.set(range, numbers.data());
        case 1:
            if (uint32_t i = random() % 2; find_state(params, i, array) && !array.steps)
                assert_int_equal(shard.set_state(i, range, numbers.data()), Reason::none);
            return;
        case 2:
            assert_int_equal(shard.collect(0, range, numbers.data()), Reason::none);
            assert_int_equal(shard.apply({.sums = {0}, .divisor = 2}), Reason::none);
            return;
        default: assert_int_equal(shard.push(range, numbers.data(), true), Reason::none);
        }
    }
};

struct Moment {
    std::unique_ptr<ShardImage> image;
    std::vector<std::string> due;
    void check(Shard &shard) {
        image = complete(std::move(image));
        assert_true(contents(*image) == due);
        shard.end(*image->copy);
    }
};

void dense_images_are_of_their_moments(void **) {
    const dtrain_function_t function = keeper();
    std::vector<TableParams> kinds = {dense(DTRAIN_RULE_ADD, 0, 0),
                                      dense(DTRAIN_RULE_ADAM, 0, 0),
                                      dense(DTRAIN_RULE_ADAM, DTRAIN_F16, 0),
                                      dense(DTRAIN_RULE_ADAGRAD, DTRAIN_I8, 0),
                                      dense(DTRAIN_RULE_LAMB, 0, 300),
                                      dense(DTRAIN_RULE_ADAGRAD_ROWS, 0, 75),
                                      dense(DTRAIN_RULE_ADAM, DTRAIN_I8, 300),
                                      dense(DTRAIN_RULE_ADAGRAD, DTRAIN_I8, 300)};
    for (const uint32_t storage : {0u, uint32_t(DTRAIN_I8)})
        kinds.push_back(by_function(dense(DTRAIN_RULE_ADD, storage, 50), function));
    kinds.push_back(dense(DTRAIN_RULE_ADD, 0, 10));
    kinds.back().segments.resize(2);
    kinds.back().segments[0] = {.first = 0, .count = 4, .rule = DTRAIN_RULE_FTRL};
    kinds.back().segments[1] = {.first = 4, .count = 6, .rule = DTRAIN_RULE_ADAGRAD_ROWS};
    Random random(7);
    for (const TableParams &params : kinds) {
        auto shard = Shard::create(params, Range{0, params.length},
                                   has_function(params) ? &function : nullptr);
        DenseChanges changes{*shard, params, random};
        std::deque<Moment> moments; // at most two
        for (int step = 0; step < 600; step++) {
            changes.change();
            if (random() % 40 == 0 && moments.size() < 2) {
                const std::vector<std::string> due = contents(*shard, params);
                moments.push_back({shard->image(), due});
            }
            if (moments.empty()) continue;
            Moment &one = moments[random() % moments.size()];
            one.image->copy->advance(random() % 20000);
            if (random() % 30 != 0) continue;
            Moment &oldest = moments.front();
            oldest.check(*shard);
            if (random() % 2 == 0) shard->keep(oldest.image); // full of what it was
            moments.pop_front();
        }
        for (Moment &moment : moments) moment.check(*shard);
    }
}

// What has no state yet has zeros, whatever is in the memory of the image before.
void state_that_is_not_there_is_zero(void **) {
    const TableParams params = dense(DTRAIN_RULE_ADAM, 0, 0);
    auto used = Shard::create(params, Range{0, params.length}),
         fresh = Shard::create(params, Range{0, params.length});
    const std::vector<float> g(params.length, 3);
    used->push({0, params.length}, g.data(), true);
    auto kept = complete(used->image());
    fresh->keep(kept);
    auto image = fresh->image();
    fresh->push({0, 5000}, g.data(), true); // now there is
    image = complete(std::move(image));
    for (const auto &slot : image->slots)
        for (uint64_t i = 0; i < params.length * sizeof(float); i++)
            assert_int_equal(*slot->at(i), 0);
}

void a_restore_leaves_an_image_as_it_was(void **) {
    const TableParams params = dense(DTRAIN_RULE_ADAM, 0, 0);
    const Range all = {0, params.length};
    auto shard = Shard::create(params, all), other = Shard::create(params, all);
    const std::vector<float> g(params.length, 3);
    shard->push(all, g.data(), true);
    const auto due = contents(*shard, params);
    auto image = shard->image();
    image->copy->advance(1);
    shard->adopt(std::move(*complete(other->image())));
    shard->push(all, g.data(), true);
    auto next = shard->image();
    image->copy->advance(10000);
    shard->push({0, 5000}, g.data(), true);
    image = complete(std::move(image));
    assert_true(contents(*image) == due);
    assert_int_equal(next->copy->advance(1), GradualCopy::State::going);
    shard.reset();
    assert_int_equal(next->copy->advance(1), GradualCopy::State::canceled);
    assert_int_equal(image->copy->state(), GradualCopy::State::done);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(dense_images_are_of_their_moments),
        cmocka_unit_test(state_that_is_not_there_is_zero),
        cmocka_unit_test(a_restore_leaves_an_image_as_it_was),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
