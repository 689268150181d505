// Which requests for elements or rows are valid, and the room that pushes of rows keep.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/kept_rooms.h"
#include "ps/server/request_check.h"

#include "check.h"

#include <vector>

using namespace dtrain::ps;

namespace {

TableParams table(bool sparse) {
    TableParams params;
    params.dtype = DTRAIN_F32;
    params.length = sparse ? 0 : 64;
    params.dim = sparse ? 2 : 0;
    if (sparse) params.placement.policy = DTRAIN_PLACE_HASH;
    return params;
}

RequestHeader about(RequestKind kind, uint64_t first, uint64_t count) {
    RequestHeader h;
    h.kind = kind;
    h.first = first;
    h.count = count;
    return h;
}

void a_range_lies_in_the_part_and_has_its_bytes(void **) {
    const TableParams params = table(false);
    const RequestCheck check(params, KeyPartition(2, 3), Range{8, 8}, 0);
    RequestHeader h = about(RequestKind::push, 8, 8);
    assert_int_equal(check.check(h, nullptr, 32).reason, Reason::wrong_partition);
    auto expect = [&](RequestKind kind, uint64_t first, uint64_t count, uint64_t bytes,
                      Reason reason) {
        h = about(kind, first, count);
        h.partition = 3;
        assert_int_equal(check.check(h, nullptr, bytes).reason, reason);
    };
    expect(RequestKind::push, 8, 8, 32, Reason::none);
    expect(RequestKind::push, 8, 8, 28, Reason::bad_size);
    expect(RequestKind::push, 7, 2, 8, Reason::bad_range);
    expect(RequestKind::push, 15, 2, 8, Reason::bad_range);
    expect(RequestKind::pull, 15, 1, 0, Reason::none);
    expect(RequestKind::pull, 15, 1, 4, Reason::bad_size);
    expect(RequestKind::pull_state, 8, 1, 0, Reason::unknown_state);
    expect(RequestKind::pull_rows, 0, 1, 8, Reason::wrong_kind);
    expect(RequestKind::count_rows, 0, 0, 0, Reason::wrong_kind);
    expect(RequestKind::clock, 0, 0, 0, Reason::none);
}

void keys_belong_to_the_server(void **) {
    const TableParams params = table(true);
    const KeyPartition partition(2);
    const RequestCheck check(params, partition, Part(), 1);
    std::vector<uint64_t> keys;
    for (uint64_t key = 0; keys.size() < 4; ++key)
        if (partition.server_of(key) == 1) keys.push_back(key);
    const RequestHeader h = about(RequestKind::pull_rows, 0, 4);
    assert_int_equal(check.check(h, keys.data(), 32).reason, Reason::none);
    assert_int_equal(check.check(h, keys.data(), 24).reason, Reason::bad_size);
    assert_int_equal(check.check(about(RequestKind::pull, 0, 4), keys.data(), 0).reason,
                     Reason::wrong_kind);
    uint64_t other = 0;
    while (partition.server_of(other) == 1) ++other;
    keys[2] = other;
    const Answer answer = check.check(h, keys.data(), 32);
    assert_int_equal(answer.reason, Reason::wrong_server);
    assert_int_equal(answer.numbers[0], other);
    assert_int_equal(answer.numbers[1], 0);
}

void a_worker_keeps_room_for_few_pushes(void **) {
    SparseShard rows(table(true));
    KeptRooms rooms;
    for (uint64_t push = 1; push <= most_kept; ++push)
        assert_int_equal(rooms.keep(rows, push, {}, &push, 1), Reason::none);
    const uint64_t key = 1000;
    assert_int_equal(rooms.keep(rows, most_kept, {}, &key, 1), Reason::none); // more of the same
    assert_int_equal(rooms.keep(rows, most_kept + 1, {}, &key, 1), Reason::window);
    assert_int_equal(rooms.newest(), most_kept);
    const uint64_t kept = rows.kept_bytes();
    assert_true(kept > 0);
    rooms.end(&rows, 1);
    rooms.end(&rows, 1); // repeated
    assert_int_equal(rooms.keep(rows, most_kept + 1, {}, &key, 1), Reason::none);
    rooms.end_all(&rows);
    assert_true(rooms.empty());
    assert_int_equal(rows.kept_bytes(), 0);
}

void rooms_may_outlive_the_rows(void **) {
    KeptRooms rooms;
    {
        SparseShard rows(table(true));
        const uint64_t key = 1;
        assert_int_equal(rooms.keep(rows, 1, {}, &key, 1), Reason::none);
        assert_int_equal(rooms.keep(rows, 2, {}, &key, 1), Reason::none);
    }
    rooms.end(nullptr, 1);
    rooms.end_all(nullptr);
    assert_true(rooms.empty());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_range_lies_in_the_part_and_has_its_bytes),
        cmocka_unit_test(keys_belong_to_the_server),
        cmocka_unit_test(a_worker_keeps_room_for_few_pushes),
        cmocka_unit_test(rooms_may_outlive_the_rows),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
