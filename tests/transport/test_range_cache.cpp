// What is kept for ranges of addresses, by random operations against a slow model.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "common/range_cache.h"
#include "rig.h"

#include <list>
#include <random>
#include <set>

using namespace dtrain::test;

namespace {

struct Value {
    Value(std::set<int> &all, int id) : alive(all), number(id) { alive.insert(number); }
    ~Value() { alive.erase(number); }
    std::set<int> &alive;
    const int number;
};
using Cache = dtrain::tp::RangeCache<Value>;

// The same in the simplest way: a list, from the longest unused to the latest.
struct Model {
    struct Item {
        int number;
        uint64_t start, end;
        int users = 0;
        bool kept = true;
    };
    std::list<Item> items;
    const uint64_t limit;

    uint64_t bytes() const {
        uint64_t sum = 0;
        for (const Item &item : items) sum += item.kept ? item.end - item.start : 0;
        return sum;
    }
    uint64_t count() const {
        return uint64_t(
            std::count_if(items.begin(), items.end(), [](const Item &item) { return item.kept; }));
    }
    Item *find(uint64_t start, uint64_t end) {
        for (Item &item : items)
            if (item.kept && item.start <= start && end <= item.end) return &item;
        return nullptr;
    }
    Item *number(int number) {
        for (Item &item : items)
            if (item.number == number) return &item;
        return nullptr;
    }
    void forget(uint64_t start, uint64_t end) {
        for (Item &item : items) item.kept &= item.end <= start || end <= item.start;
        sweep();
    }
    void sweep() {
        items.remove_if([](const Item &item) { return !item.kept && !item.users; });
    }
    void trim() {
        for (Item &item : items)
            if (bytes() > limit && !item.users) item.kept = false;
        sweep();
    }
    void release(int which) {
        for (auto at = items.begin(); at != items.end(); ++at)
            if (at->number == which && !--at->users) {
                items.splice(items.end(), items, at);
                break;
            }
        sweep();
        trim();
    }
};

void it_does_what_a_list_would(void **) {
    std::mt19937_64 random(choose_seed());
    for (int round = 0; round < 200; round++) {
        std::set<int> alive;
        Cache cache(60);
        Model model{.items = {}, .limit = 60};
        std::vector<Cache::Entry *> used;
        uint64_t added = 0;
        for (int step = 1; step <= 300; step++) {
            const uint64_t start = random() % 90, length = 1 + random() % 20, end = start + length;
            switch (random() % 5) {
            case 0:
            case 1: {
                Cache::Entry *found = cache.find(start, length);
                Model::Item *expected = model.find(start, end);
                assert_int_equal(!found, !expected);
                if (!found) {
                    found = cache.add(start, length, std::make_unique<Value>(alive, step));
                    added++;
                    model.forget(start, end);
                    model.items.push_back({step, start, end, 1});
                    model.trim();
                } else {
                    assert_int_equal(found->value()->number, expected->number);
                    expected->users++;
                }
                used.push_back(found);
                break;
            }
            case 2:
            case 3:
                if (!used.empty()) {
                    std::swap(used[random() % used.size()], used.back());
                    model.release(used.back()->value()->number);
                    cache.release(used.back());
                    used.pop_back();
                }
                break;
            default: cache.forget(start, length); model.forget(start, end);
            }
            std::set<int> expected;
            for (const Model::Item &item : model.items) expected.insert(item.number);
            assert_true(alive == expected);
            assert_int_equal(cache.bytes(), model.bytes());
            assert_int_equal(cache.count(), model.count());
            assert_int_equal(cache.evictions(), added - cache.count());
        }
        for (Cache::Entry *entry : used) cache.release(entry);
        cache.forget(0, UINT64_MAX);
        assert_true(alive.empty());
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(it_does_what_a_list_would)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
