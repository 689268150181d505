// SPDX-License-Identifier: Apache-2.0
#include "ps/placement/partition.h"

#include "check.h"

#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

struct Model {
    explicit Model(uint64_t seed) : random(seed), partition(1 + uint32_t(random() % 5), 3) {
        const uint64_t sections = 1 + random() % 12;
        for (uint64_t i = 0; i < sections; ++i) {
            const auto server = uint32_t(random() % partition.servers());
            owner.resize(owner.size() + random() % 20, server);
            partition.add(owner.size(), server);
        }
        if (owner.empty()) partition.add(1, 0), owner.push_back(0);
    }
    Range some_range() {
        const uint64_t first = random() % owner.size();
        return {first, random() % (owner.size() - first + 1)};
    }
    std::mt19937_64 random;
    Partition partition;
    std::vector<uint32_t> owner; // by element
};

void every_element_has_one_server(void **) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
        Model model(seed);
        assert_int_equal(model.partition.length(), model.owner.size());
        assert_int_equal(model.partition.version(), 3);
        for (uint64_t e = 0; e < model.owner.size(); ++e)
            assert_int_equal(model.partition.server_of(e), model.owner[e]);
        uint64_t all = 0;
        for (uint32_t s = 0; s < model.partition.servers(); ++s) {
            const Part part = model.partition.part(s);
            assert_int_equal(part.count(), model.partition.count(s));
            all += part.count();
            for (size_t i = 0; i < part.ranges(); ++i)
                for (uint64_t e = part.range(i).first; e < part.range(i).end(); ++e)
                    assert_int_equal(model.owner[e], s);
        }
        assert_int_equal(all, model.owner.size());
    }
}

void a_range_is_cut_at_the_servers(void **) {
    for (uint64_t seed = 0; seed < 1000; ++seed) {
        Model model(seed);
        const Range range = model.some_range();
        uint64_t next = range.first;
        uint32_t before = UINT32_MAX;
        model.partition.for_each_part(range, [&](uint32_t server, const Range &part) {
            assert_int_equal(part.first, next);
            assert_true(part.count > 0 && server != before);
            for (uint64_t e = part.first; e < part.end(); ++e)
                assert_int_equal(model.owner[e], server);
            next = part.end();
            before = server;
        });
        assert_int_equal(next, range.end());
    }
}

// Elements of a part lie one after the other, whatever lies between them in the table.
void a_part_knows_its_places(void **) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
        Model model(seed);
        const uint32_t server = model.owner[model.random() % model.owner.size()];
        const Part part = model.partition.part(server);
        std::vector<uint64_t> elements; // by place
        for (uint64_t e = 0; e < model.owner.size(); ++e)
            if (model.owner[e] == server) elements.push_back(e);
        for (uint64_t place = 0; place < elements.size(); ++place)
            assert_int_equal(part.place_of(elements[place]), place);

        const Range range = model.some_range();
        bool all = range.count > 0;
        for (uint64_t e = range.first; e < range.end(); ++e) all &= model.owner[e] == server;
        if (range.count > 0) assert_int_equal(part.contains(range), all);
        uint64_t found = 0;
        part.for_each_overlap(range, [&](const Range &both, uint64_t place) {
            for (uint64_t i = 0; i < both.count; ++i)
                assert_int_equal(elements[place + i], both.first + i);
            assert_true(range.contains(both));
            found += both.count;
        });
        uint64_t due = 0;
        for (uint64_t e = range.first; e < range.end(); ++e) due += model.owner[e] == server;
        assert_int_equal(found, due);

        const uint64_t first = model.random() % elements.size();
        const Range places = {first, model.random() % (elements.size() - first + 1)};
        uint64_t next = first;
        part.for_each_run(places, [&](const Range &run, uint64_t place) {
            assert_int_equal(place, next);
            for (uint64_t i = 0; i < run.count; ++i)
                assert_int_equal(elements[place + i], run.first + i);
            next += run.count;
        });
        assert_int_equal(next, places.end());
    }
}

void nothing_is_in_an_empty_part(void **) {
    const Part part;
    assert_int_equal(part.count(), 0);
    assert_false(part.contains({0, 1}));
    assert_false(part.contains({0, 0}));
    part.for_each_overlap({0, 9}, [](const Range &, uint64_t) { fail_msg("%s", "some"); });
}

void ranges_contain_without_overflow(void **) {
    Range range = {100, 50};
    assert_true(range.contains({100, 50}));
    assert_true(range.contains({149, 1}));
    assert_false(range.contains({150, 1}));
    assert_false(range.contains({99, 2}));
    assert_false(range.contains({UINT64_MAX, 1}));
    assert_false(range.contains({101, UINT64_MAX}));
    assert_false(Part(range).contains({UINT64_MAX, 1}));
    assert_false(Part(range).contains({101, UINT64_MAX}));
    assert_int_equal(chunks_of(0, 8), 0);
    assert_int_equal(chunks_of(8, 8), 1);
    assert_int_equal(chunks_of(9, 8), 2);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_one_server),
        cmocka_unit_test(a_range_is_cut_at_the_servers),
        cmocka_unit_test(a_part_knows_its_places),
        cmocka_unit_test(nothing_is_in_an_empty_part),
        cmocka_unit_test(ranges_contain_without_overflow),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
