// SPDX-License-Identifier: Apache-2.0
#include "ps/partition.h"

#include "check.h"

#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

void check_whole(uint64_t length, uint32_t servers) {
    Partition partition(length, servers);
    uint64_t next = 0, least = UINT64_MAX, most = 0;
    for (uint32_t s = 0; s < servers; ++s) {
        Range part = partition.part(s);
        assert_int_equal(part.first, next);
        if (length / servers >= 16) assert_int_equal(part.first % 16, 0);
        next = part.end();
        least = part.count < least ? part.count : least;
        most = part.count > most ? part.count : most;
        if (part.count == 0) continue;
        assert_int_equal(partition.server_of(part.first), s);
        assert_int_equal(partition.server_of(part.end() - 1), s);
    }
    assert_int_equal(next, length);
    assert_true(most - least <= (length / servers >= 16 ? 31 : 1));
}

void parts_tile_the_table(void **) {
    for (uint64_t length = 1; length < 700; ++length)
        for (uint32_t servers = 1; servers < 20; ++servers) check_whole(length, servers);
    check_whole(uint64_t{1} << 53, 1000);
    check_whole((uint64_t{1} << 53) - 1, 7);
}

void rows_stay_whole(void **) {
    for (uint64_t row = 1; row < 40; ++row)
        for (uint64_t rows = 1; rows < 20; ++rows)
            for (uint32_t servers = 1; servers < 8; ++servers) {
                Partition partition(row * rows, servers, 0, row);
                uint64_t next = 0, empty = 0;
                for (uint32_t s = 0; s < servers; ++s) {
                    Range part = partition.part(s);
                    assert_int_equal(part.first, next);
                    assert_int_equal(part.count % row, 0);
                    next = part.end();
                    empty += part.count == 0;
                }
                assert_int_equal(next, row * rows);
                assert_int_equal(empty, rows < servers ? servers - rows : 0);
            }
}

void a_range_is_cut_at_the_servers(void **) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
        uint64_t length = 1 + random() % 5000;
        Partition partition(length, 1 + static_cast<uint32_t>(random() % 9));
        uint64_t first = random() % length, count = random() % (length - first + 1);
        std::vector<uint32_t> owner(length, UINT32_MAX), expected(length, UINT32_MAX);
        for (uint64_t e = first; e < first + count; ++e) expected[e] = partition.server_of(e);
        partition.for_each_part({first, count}, [&](uint32_t server, const Range &part) {
            for (uint64_t e = part.first; e < part.end(); ++e) owner[e] = server;
        });
        assert_true(owner == expected);
    }
}

void ranges_contain_without_overflow(void **) {
    Range range = {100, 50};
    assert_true(range.contains({100, 50}));
    assert_true(range.contains({149, 1}));
    assert_false(range.contains({150, 1}));
    assert_false(range.contains({99, 2}));
    assert_false(range.contains({UINT64_MAX, 1}));
    assert_false(range.contains({101, UINT64_MAX}));
    assert_int_equal(chunks_of(0, 8), 0);
    assert_int_equal(chunks_of(8, 8), 1);
    assert_int_equal(chunks_of(9, 8), 2);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(parts_tile_the_table),
        cmocka_unit_test(rows_stay_whole),
        cmocka_unit_test(a_range_is_cut_at_the_servers),
        cmocka_unit_test(ranges_contain_without_overflow),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
