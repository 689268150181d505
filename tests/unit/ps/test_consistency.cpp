// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/consistency.h"
#include "ps/table/protocol.h"

#include "check.h"

using namespace dtrain::ps;

namespace {

void a_clock_ends_when_its_pushes_are_seen(void **) {
    Clocks clocks({DTRAIN_SSP, 0}, 1);
    assert_int_equal(clocks.announce(0, 0, 2), Verdict::go);
    assert_int_equal(clocks.pull(1), Verdict::wait);
    clocks.count_push(0, 0);
    assert_int_equal(clocks.pull(1), Verdict::wait);
    clocks.count_push(0, 0);
    assert_int_equal(clocks.pull(1), Verdict::go);
    assert_int_equal(clocks.finished(0), 1);
}

void later_clocks_may_come_first(void **) {
    Clocks clocks({DTRAIN_SSP, 0}, 1);
    assert_int_equal(clocks.announce(0, 1, 0), Verdict::go);
    clocks.count_push(0, 2);
    assert_int_equal(clocks.finished(0), 0);
    assert_int_equal(clocks.announce(0, 0, 0), Verdict::go);
    assert_int_equal(clocks.finished(0), 2);
    assert_int_equal(clocks.announce(0, 2, 1), Verdict::go);
    assert_int_equal(clocks.finished(0), 3);
}

void contradictions_are_refused(void **) {
    Clocks clocks({DTRAIN_ASYNC, 0}, 1);
    assert_int_equal(clocks.announce(0, 0, 0), Verdict::go);
    assert_int_equal(clocks.announce(0, 0, 0), Verdict::passed);
    assert_int_equal(clocks.push(0, 0), Verdict::passed);
    assert_int_equal(clocks.announce(0, 1, 5), Verdict::go);
    assert_int_equal(clocks.announce(0, 1, 6), Verdict::passed);
    clocks.count_push(0, 2);
    assert_int_equal(clocks.announce(0, 2, 0), Verdict::passed);
    assert_int_equal(clocks.push(0, 1 + request_window), Verdict::ahead);
    assert_int_equal(clocks.announce(0, UINT64_MAX, 0), Verdict::ahead);
}

void staleness_is_counted_from_the_slowest(void **) {
    Clocks clocks({DTRAIN_SSP, 2}, 3);
    for (uint64_t clock = 0; clock < 5; ++clock) clocks.announce(0, clock, 0);
    for (uint64_t clock = 0; clock < 3; ++clock) clocks.announce(1, clock, 0);
    assert_int_equal(clocks.pull(2), Verdict::go);
    assert_int_equal(clocks.pull(3), Verdict::wait); // worker 2 is at clock 0
    assert_int_equal(clocks.slowest_before(3).value(), 2);
    assert_false(clocks.slowest_before(0).has_value());
    clocks.announce(2, 0, 0);
    assert_int_equal(clocks.pull(3), Verdict::go);
    clocks.leave(2);
    assert_int_equal(clocks.pull(5), Verdict::go); // worker 1 is at clock 3
    assert_int_equal(clocks.pull(6), Verdict::wait);
    assert_int_equal(clocks.slowest_before(6).value(), 1);
    clocks.lose(1);
    assert_int_equal(clocks.slowest_before(6).value(), 0);
    assert_int_equal(clocks.pull(5), Verdict::go);
    assert_int_equal(clocks.pull(6), Verdict::lost);
    assert_int_equal(clocks.lost_worker(), 1);
    assert_int_equal(clocks.pull(UINT64_MAX), Verdict::lost);
}

void bsp_applies_clock_by_clock(void **) {
    Clocks clocks({DTRAIN_BSP, 0}, 2);
    assert_int_equal(clocks.pull(0), Verdict::go);
    assert_int_equal(clocks.push(0, 1), Verdict::go);
    assert_int_equal(clocks.push(0, 2), Verdict::wait); // two clocks are open
    clocks.announce(0, 0, 0);
    assert_false(clocks.ready());
    clocks.announce(1, 0, 0);
    assert_true(clocks.ready());
    assert_int_equal(clocks.participants(0), 2);
    assert_int_equal(clocks.pull(1), Verdict::wait); // over, but not applied
    clocks.advance();
    assert_false(clocks.ready());
    assert_int_equal(clocks.pull(1), Verdict::go);
    assert_int_equal(clocks.pull(0), Verdict::passed);
    assert_int_equal(clocks.push(0, 2), Verdict::go);
    clocks.lose(1);
    assert_int_equal(clocks.push(0, 1), Verdict::lost); // could never be applied
    assert_int_equal(clocks.pull(1), Verdict::go);
    assert_int_equal(clocks.pull(2), Verdict::lost);
}

void a_quorum_ends_a_clock_for_all(void **) {
    Clocks clocks({DTRAIN_QUORUM, 0, 2, 1}, 3);
    clocks.count_push(2, 0); // of three
    assert_int_equal(clocks.push(0, 1), Verdict::wait);
    clocks.announce(0, 0, 0);
    assert_false(clocks.ready());
    clocks.announce(1, 0, 0);
    assert_true(clocks.ready());
    assert_true(clocks.took_part(1, 0) && !clocks.took_part(2, 0));
    assert_int_equal(clocks.pull(1), Verdict::wait);
    clocks.announce(2, 1, 1); // ahead of its clock 0
    clocks.advance();
    assert_false(clocks.ready());
    assert_int_equal(clocks.push(2, 0), Verdict::stale);
    assert_int_equal(clocks.announce(2, 0, 3), Verdict::stale);
    assert_int_equal(clocks.pull(0), Verdict::go);
    assert_int_equal(clocks.pull(1), Verdict::go);
    clocks.count_push(2, 1); // goes on where the others are
    assert_int_equal(clocks.finished(2), 2);
    clocks.announce(1, 1, 0);
    assert_true(clocks.ready());
    assert_true(clocks.took_part(2, 1) && !clocks.took_part(0, 1));
}

void lost_workers_matter_when_too_few_are_left(void **) {
    Clocks clocks({DTRAIN_QUORUM, 0, 2, 1}, 4);
    clocks.lose(0);
    assert_int_equal(clocks.pull(1), Verdict::wait);
    clocks.announce(1, 0, 0);
    clocks.lose(1);
    assert_int_equal(clocks.pull(9), Verdict::wait);
    clocks.lose(2);
    assert_int_equal(clocks.pull(1), Verdict::wait); // workers 1 and 3 can end it
    assert_int_equal(clocks.push(3, 0), Verdict::go);
    assert_int_equal(clocks.pull(2), Verdict::lost);
    assert_int_equal(clocks.push(3, 1), Verdict::lost);
    clocks.announce(3, 0, 0);
    assert_true(clocks.ready());
    clocks.advance();
    assert_int_equal(clocks.pull(1), Verdict::go);
    assert_int_equal(clocks.push(3, 1), Verdict::lost);
}

void who_left_is_not_waited_for(void **) {
    Clocks clocks({DTRAIN_QUORUM, 0, 3, 1}, 3);
    clocks.announce(2, 0, 0);
    clocks.leave(2);
    clocks.announce(0, 0, 0);
    assert_false(clocks.ready()); // it counts in the clock that it ended
    clocks.announce(1, 0, 0);
    assert_true(clocks.ready());
    clocks.advance();
    clocks.announce(0, 1, 0);
    assert_false(clocks.ready());
    clocks.leave(1);
    assert_true(clocks.ready());
    clocks.advance();
    clocks.leave(0);
    assert_false(clocks.ready());
}

void who_left_took_part_up_to_there(void **) {
    Clocks clocks({DTRAIN_BSP, 0}, 3);
    clocks.announce(2, 0, 0);
    clocks.leave(2);
    clocks.announce(0, 0, 0);
    clocks.announce(1, 0, 0);
    assert_int_equal(clocks.participants(0), 3);
    clocks.advance();
    clocks.announce(0, 1, 0);
    assert_false(clocks.ready());
    clocks.announce(1, 1, 0);
    assert_true(clocks.ready());
    assert_int_equal(clocks.participants(1), 2);
    clocks.advance();
    clocks.leave(0);
    clocks.leave(1);
    assert_false(clocks.ready());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_ends_when_its_pushes_are_seen),
        cmocka_unit_test(later_clocks_may_come_first),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(staleness_is_counted_from_the_slowest),
        cmocka_unit_test(bsp_applies_clock_by_clock),
        cmocka_unit_test(who_left_took_part_up_to_there),
        cmocka_unit_test(a_quorum_ends_a_clock_for_all),
        cmocka_unit_test(lost_workers_matter_when_too_few_are_left),
        cmocka_unit_test(who_left_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
