// The store of rows against std::unordered_map, at random; its memory and its limits.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_copy.h"
#include "ps/storage/row_store.h"

#include "check.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

using namespace dtrain::ps;

namespace {

void copy(const RowStore &store, uint64_t *keys, char *rows) {
    auto all_keys = std::make_shared<Buffer>(), all_rows = std::make_shared<Buffer>();
    assert_true(all_keys->allocate(store.size() * sizeof *keys));
    assert_true(all_rows->allocate(store.size() * store.row_bytes()));
    auto copy = RowCopy::begin(store, all_keys, all_rows);
    while (copy->advance(1) == GradualCopy::State::going) {
    }
    std::memcpy(keys, all_keys->at(0), store.size() * sizeof *keys);
    std::memcpy(rows, all_rows->at(0), store.size() * store.row_bytes());
}

uint64_t same(uint64_t) { return UINT64_MAX; }   // all keys in the last bucket: it wraps around
uint64_t few(uint64_t key) { return key << 61; } // eight homes
uint64_t good(uint64_t key) { return dtrain::mix(key); }

void index_is_right_however_keys_collide(void **) {
    for (auto hash : {same, few, good}) {
        std::mt19937_64 random(1);
        IndexMemory memory(3);
        RowIndex index, others[2];
        std::unordered_map<uint64_t, uint32_t> model;
        for (uint32_t i = 0; i < 6000; i++) {
            const uint64_t key = i % 2000 < 1000 ? random() % 400 : i; // old ones, or ever new
            const bool there = model.contains(key);
            assert_int_equal(index.find(key, hash(key)), there ? model[key] : RowIndex::none);
            if (random() % 3 == 0) {
                assert_int_equal(index.erase(key, hash(key)), there ? model[key] : RowIndex::none);
                model.erase(key);
            } else if (!there) {
                const bool grows = index.bytes_with(1) != index.bytes();
                const uint64_t next = index.bytes_with(1);
                assert_true(index.insert(key, hash(key), i, hash, memory));
                if (i % 3 > 0) // they use the same memory
                    assert_true(others[i % 3 - 1].insert(i, hash(i), i, hash, memory));
                assert_int_equal(index.bytes(), next);
                assert_true(grows || index.size() > 1);
                model[key] = i;
            }
            assert_int_equal(index.size(), model.size());
        }
        size_t seen = 0;
        index.for_each([&](uint64_t key, uint32_t row) {
            assert_int_equal(model.at(key), row);
            seen++;
        });
        assert_int_equal(seen, model.size());
    }
}

// Rows hold what their key and the last store say.
void rows_against_a_map(void **) {
    for (uint64_t bytes : {1u, 8u, 72u, 1000u}) {
        std::mt19937_64 random(bytes);
        RowStore store(bytes);
        std::unordered_map<uint64_t, char> model;
        std::vector<uint64_t> keys;
        for (int round = 0; round < 300; round++) {
            keys.resize(random() % 100); // some of them twice
            for (uint64_t &key : keys)
                key = random() % 2 == 0 ? random() % 3000 : 0 - random() % 50;
            if (round % 3 == 0) {
                store.find(keys.data(), keys.size(), [&](size_t i, const char *row) {
                    const auto found = model.find(keys[i]);
                    assert_int_equal(row != nullptr, found != model.end());
                    for (uint64_t b = 0; row != nullptr && b < bytes; b++)
                        assert_int_equal(row[b], found->second);
                });
            } else if (round % 7 == 0) {
                for (uint64_t key : keys) assert_int_equal(store.erase(key), model.erase(key) == 1);
            } else {
                size_t expected = 0;
                auto make = [&](uint64_t key, char *row) {
                    assert_false(model.contains(key));
                    std::memset(row, model[key] = char(key), bytes);
                };
                auto use = [&](size_t i, char *row) {
                    assert_int_equal(i, expected++);
                    assert_int_equal(row[bytes - 1], model.at(keys[i]));
                    std::memset(row, ++model[keys[i]], bytes);
                };
                assert_int_equal(store.obtain(keys.data(), keys.size(), make, use), keys.size());
            }
            assert_int_equal(store.size(), model.size());
        }
        size_t seen = 0;
        store.for_each([&](uint64_t key, const char *row) {
            assert_int_equal(row[0], model.at(key));
            seen++;
        });
        assert_int_equal(seen, model.size());
        std::vector<uint64_t> copied(store.size());
        std::vector<char> rows(store.size() * bytes);
        copy(store, copied.data(), rows.data());
        for (size_t i = 0; i < copied.size(); i++)
            for (uint64_t b = 0; b < bytes; b++)
                assert_int_equal(rows[i * bytes + b], model.at(copied[i]));
        std::sort(copied.begin(), copied.end());
        assert_true(std::unique(copied.begin(), copied.end()) == copied.end());
    }
}

void nothing(uint64_t, char *) {}
void look(size_t, char *) {}

// At every size: a row of 64 bytes and its key (8) take at most 1.3 times that.
void memory_is_bounded(void **) {
    RowStore store(64);
    for (uint64_t key = 0; key < 300000; key++) {
        assert_int_equal(store.obtain(&key, 1, nothing, look), 1);
        if (key >= 20000) assert_true(double(store.memory()) <= 1.3 * 72 * double(key + 1));
    }
}

void the_limit_holds(void **) {
    const uint64_t limit = 1 << 20;
    RowStore store(100, limit);
    std::vector<uint64_t> keys(20000);
    for (size_t i = 0; i < keys.size(); i++) keys[i] = i * i;
    size_t used = 0;
    const size_t done = store.obtain(keys.data(), keys.size(), nothing,
                                     [&](size_t i, char *) { assert_int_equal(i, used++); });
    assert_int_equal(done, used);
    assert_int_equal(done, store.size());
    assert_true(done < keys.size() && store.memory() <= limit && store.memory() > limit * 9 / 10);
    assert_int_equal(store.obtain(&keys[done], 1, nothing, look), 0);
    assert_int_equal(store.obtain(keys.data(), done, nothing, look), done); // those are there
    assert_true(store.erase(keys[0]));
    assert_int_equal(store.obtain(&keys[done], 1, nothing, look), 1); // in its place
    assert_true(store.memory() <= limit);
}

// Over several slabs (of four rows), and with rows that are gone.
void copies_are_in_the_order_of_making(void **) {
    constexpr uint64_t bytes = 16 << 20;
    RowStore store(bytes);
    const uint64_t keys[] = {9, 2, 7, 4, 5, 6, 3, 8, 1, 10};
    auto make = [](uint64_t key, char *row) { row[bytes - 1] = char(key); };
    assert_int_equal(store.obtain(keys, std::size(keys), make, look), std::size(keys));
    for (uint64_t gone : {4, 9, 10, 5}) assert_true(store.erase(gone));
    const uint64_t left[] = {2, 7, 6, 3, 8, 1};
    uint64_t copied[std::size(left)];
    std::vector<char> rows(std::size(left) * bytes);
    copy(store, copied, rows.data());
    assert_memory_equal(copied, left, sizeof left);
    for (size_t i = 0; i < std::size(left); i++)
        assert_int_equal(rows[(i + 1) * bytes - 1], left[i]);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(index_is_right_however_keys_collide),
        cmocka_unit_test(rows_against_a_map),
        cmocka_unit_test(copies_are_in_the_order_of_making),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(the_limit_holds),
    };
    return cmocka_run_group_tests_name("row_store", tests, nullptr, nullptr);
}
