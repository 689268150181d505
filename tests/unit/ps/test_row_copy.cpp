// Images of sparse shards that are made in turns with changes, against what was there.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_image.h"
#include "ps/storage/sparse_shard.h"

#include "check.h"
#include "complete.h"
#include "keeper.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace dtrain::ps;

namespace {

using Random = std::mt19937_64;

constexpr uint32_t dim = 3;

TableParams sparse() {
    TableParams params;
    params.dim = dim;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    return params;
}

using Rows = std::map<uint64_t, std::string>;

// Of these keys, by other means than an image.
Rows rows_of(SparseShard &shard, const TableParams &params, const std::vector<uint64_t> &keys) {
    Rows rows;
    StateArray array;
    for (const uint64_t key : keys) {
        std::string &row = rows[key];
        row = bytes_of(shard.gather(&key, 1)->at(0), dim * sizeof(float));
        for (uint32_t i = 0; find_state(params, i, array); i++)
            row += bytes_of(shard.gather_state(i, &key, 1)->at(0),
                            array.steps ? sizeof(uint32_t) : array.bytes_of(dim));
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
    const dtrain_function_t function = keeper();
    for (const uint64_t bound : {50, 700, 20001, 20000}) {
        const bool by = bound % 2 != 0; // or by a rule
        const TableParams params = by ? by_function(sparse(), function) : sparse();
        SparseShard shard(params, by ? &function : nullptr);
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
                    shard.set_state(0, keys.data(), keys.size(), numbers.data());
                else if (what == 3)
                    shard.collect(0, keys.data(), keys.size(), numbers.data());
                else
                    shard.push(keys.data(), keys.size(), numbers.data(), true);
                if (random() % 8 == 0) shard.apply({.sums = {0}, .divisor = 2});
            }
            if (random() % 50 == 0 && moments.size() < 2) {
                const std::vector<uint64_t> there = order.keys();
                Rows due = rows_of(shard, params, there);
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
    const Rows due = rows_of(*shard, sparse(), keys);
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
        cmocka_unit_test(sparse_images_are_of_their_moments),
        cmocka_unit_test(a_restore_leaves_rows_as_they_were),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
