// Images of shards that are made in turns with changes, against copies that are made at once.
// SPDX-License-Identifier: Apache-2.0
#include "ps/archive.h"
#include "ps/dtype.h"
#include "ps/placement_map.h"
#include "ps/shard.h"
#include "ps/sparse_shard.h"

#include "check.h"
#include "complete.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace dtrain::ps;

namespace {

using Random = std::mt19937_64;

std::string bytes_of(const void *from, uint64_t bytes) {
    return {static_cast<const char *>(from), bytes};
}

// ---- dense ----

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
        const Shard::State state = shard.state(i, range);
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
        const uint64_t unit = std::max<uint64_t>(params.row_length, 1), all = 30000 / unit;
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
    struct Kind {
        uint32_t rule, storage;
        uint64_t row_length;
    };
    const Kind kinds[] = {{DTRAIN_RULE_ADD, 0, 0},           {DTRAIN_RULE_ADAM, 0, 0},
                          {DTRAIN_RULE_ADAM, DTRAIN_F16, 0}, {DTRAIN_RULE_ADAGRAD, DTRAIN_I8, 0},
                          {DTRAIN_RULE_LAMB, 0, 300},        {DTRAIN_RULE_ADAGRAD_ROWS, 0, 75},
                          {DTRAIN_RULE_ADAM, DTRAIN_I8, 300}};
    Random random(7);
    for (const Kind &kind : kinds) {
        const TableParams params = dense(kind.rule, kind.storage, kind.row_length);
        auto shard = Shard::create(params, Range{0, params.length});
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

// ---- sparse ----

constexpr uint32_t dim = 3;

TableParams sparse() {
    TableParams params;
    params.dim = dim;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    return params;
}

using Rows = std::map<uint64_t, std::string>;

// Of all keys below a bound, by other means than an image.
Rows rows_of(SparseShard &shard, const std::vector<uint64_t> &keys) {
    const uint32_t arrays = 3; // the moments, the counts
    Rows rows;
    for (const uint64_t key : keys) {
        std::string &row = rows[key];
        row = bytes_of(shard.gather(&key, 1)->at(0), dim * sizeof(float));
        for (uint32_t i = 0; i < arrays; i++)
            row += bytes_of(shard.gather_state(i, &key, 1)->at(0),
                            i < 2 ? dim * sizeof(float) : sizeof(uint32_t));
    }
    return rows;
}

std::vector<uint64_t> keys_of(const RowImage &image) {
    std::vector<uint64_t> keys(image.count);
    if (!keys.empty()) std::memcpy(keys.data(), image.keys->at(0), keys.size() * sizeof keys[0]);
    return keys;
}

Rows rows_of(const RowImage &image) {
    Rows rows;
    const std::vector<uint64_t> keys = keys_of(image);
    for (uint64_t i = 0; i < keys.size(); i++) {
        std::string &row = rows[keys[i]];
        for (const RowImage::Column &column : RowImage::columns_of(image.params))
            row += bytes_of(image.rows->at(i * image.layout.bytes + column.at), column.bytes);
    }
    return rows;
}

// Which keys a sparse shard has, in the order in which their rows were made: an erased row's place
// goes to the next key.
struct Order {
    std::vector<std::pair<bool, uint64_t>> places;
    std::vector<size_t> free;
    std::map<uint64_t, size_t> at;

    void add(uint64_t key) {
        if (at.contains(key)) return;
        size_t place = places.size();
        if (!free.empty()) {
            place = free.back();
            free.pop_back();
        } else {
            places.emplace_back();
        }
        places[place] = {true, key};
        at[key] = place;
    }
    void erase(uint64_t key) {
        auto found = at.find(key);
        if (found == at.end()) return;
        places[found->second].first = false;
        free.push_back(found->second);
        at.erase(found);
    }
    std::vector<uint64_t> keys() const {
        std::vector<uint64_t> all;
        for (const auto &[used, key] : places)
            if (used) all.push_back(key);
        return all;
    }
};

struct RowMoment {
    std::unique_ptr<RowImage> image;
    std::vector<uint64_t> keys;
    Rows due;
    void check(SparseShard &shard) {
        image = complete(std::move(image));
        assert_true(keys_of(*image) == keys);
        assert_true(rows_of(*image) == due);
        shard.end(*image->copy);
    }
};

// Keys come and go, so that the index grows, is built anew, and rows are used again.
void sparse_images_are_of_their_moments(void **) {
    Random random(11);
    for (const uint64_t bound : {50, 700, 20000}) {
        SparseShard shard(sparse());
        Order order;
        std::deque<RowMoment> moments;
        std::vector<float> numbers(200 * dim);
        for (int step = 0; step < 1500; step++) {
            std::vector<uint64_t> keys(1 + random() % std::min<uint64_t>(bound, 200));
            for (uint64_t &key : keys) key = random() % bound * 0x9e3779b97f4a7c15;
            for (float &number : numbers) number = float(random() % 1000) / 500 - 1;
            const uint64_t what = random() % 6;
            if (what == 0) {
                shard.erase(keys.data(), keys.size());
                for (uint64_t key : keys) order.erase(key);
            } else {
                for (uint64_t key : keys) order.add(key);
                if (what == 1)
                    shard.set(keys.data(), keys.size(), numbers.data());
                else if (what == 2)
                    shard.set_state(1, keys.data(), keys.size(), numbers.data());
                else if (what == 3)
                    shard.collect(0, keys.data(), keys.size(), numbers.data());
                else
                    shard.push(keys.data(), keys.size(), numbers.data(), true);
                if (what == 3) shard.apply({.sums = {0}, .divisor = 2});
            }
            if (random() % 50 == 0 && moments.size() < 2) {
                const std::vector<uint64_t> there = order.keys();
                Rows due = rows_of(shard, there);
                moments.push_back({shard.image(), there, std::move(due)});
            }
            if (moments.empty()) continue;
            moments[random() % moments.size()].image->copy->advance(random() % 3000);
            if (random() % 40 != 0) continue;
            moments.front().check(shard);
            if (random() % 2 == 0) shard.keep(moments.front().image);
            moments.pop_front();
        }
        for (RowMoment &moment : moments) moment.check(shard);
    }
}

void a_restore_leaves_rows_as_they_were(void **) {
    auto shard = std::make_unique<SparseShard>(sparse());
    std::vector<uint64_t> keys(5000);
    for (size_t i = 0; i < keys.size(); i++) keys[i] = i * i + 1;
    const std::vector<float> g(keys.size() * dim, 2);
    shard->push(keys.data(), keys.size(), g.data(), true);
    const Rows due = rows_of(*shard, keys);
    auto one = shard->image(), two = shard->image(), three = shard->image();
    one->copy->advance(1000);
    RowImage read(sparse());
    shard->adopt(std::move(read));
    shard->push(keys.data(), 100, g.data(), true);
    assert_true(rows_of(*complete(std::move(one))) == due);
    two->copy->advance(1);
    shard->end(*three->copy);
    shard.reset();
    assert_int_equal(two->copy->advance(1), GradualCopy::State::canceled);
    assert_int_equal(three->copy->state(), GradualCopy::State::canceled);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(dense_images_are_of_their_moments),
        cmocka_unit_test(state_that_is_not_there_is_zero),
        cmocka_unit_test(a_restore_leaves_an_image_as_it_was),
        cmocka_unit_test(sparse_images_are_of_their_moments),
        cmocka_unit_test(a_restore_leaves_rows_as_they_were),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
