// The two phases of a restore as a server sees them: what has been read is taken over or dropped.
// SPDX-License-Identifier: Apache-2.0
#include "archive_rig.h"

#include "check.h"

using namespace dtrain::ps;

namespace {

using Rig = ArchiveRig;

constexpr uint64_t bytes = Rig::table_bytes; // of the table; as many when it has been read

void nothing_changes_before_it_is_taken_over(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    rig.push(0, 0, 3);
    const RequestHeader restore = rig.header(RequestKind::restore, 0);
    assert_int_equal(rig.send(restore).size(), 0);
    assert_int_equal(rig.send(restore).size(), 0); // sent again: it is being done
    assert_int_equal(rig.shelf.jobs.size(), 1);
    rig.end_read(9);
    rig.expect(Reason::none);
    assert_int_equal(rig.out[0].header.table_version, 1);
    rig.push(1, 0, 1); // is overwritten
    assert_true(rig.value(1) == 4);
    const RequestHeader adopt = rig.header(RequestKind::adopt, 0);
    for (int repetition = 0; repetition < 2; repetition++) {
        rig.send(adopt);
        rig.expect(Reason::none);
    }
    assert_int_equal(rig.out[0].header.table_version, 77);
    assert_true(rig.value(1) == 9);
    rig.push(1, 0, 1);
    rig.send(adopt); // its answer was lost
    assert_true(rig.value(1) == 10);
}

void what_could_not_be_read_changes_nothing(void **) {
    Rig rig(DTRAIN_ASYNC, 1, true, 4 * bytes);
    rig.push(0, 0, 3);
    rig.ask(RequestKind::restore, 0);
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], bytes), bytes);
    rig.end_job(DTRAIN_ERR_CORRUPT, "damaged");
    rig.expect(Reason::told);
    rig.ask(RequestKind::adopt, 0);
    rig.expect(Reason::not_read);
    assert_true(rig.value(0) == 3);
    assert_int_equal(rig.server.memory_used(), bytes);
}

void it_is_charged_until_it_is_settled(void **) {
    for (RequestKind end : {RequestKind::adopt, RequestKind::discard}) {
        Rig rig(DTRAIN_ASYNC, 1, true, 2 * bytes);
        for (int round = 0; round < 3; round++) {
            rig.ask(RequestKind::restore, 0);
            assert_int_equal(rig.server.memory_used(), bytes);
            rig.end_read(9);
            assert_int_equal(rig.server.memory_used(), 2 * bytes);
            rig.ask(RequestKind::save, 0);
            rig.expect(Reason::memory_limit);
            rig.ask(end, 0);
            rig.expect(Reason::none);
            assert_int_equal(rig.server.memory_used(), bytes);
            assert_true(rig.value(0) == (end == RequestKind::adopt ? 9 : 0));
        }
    }
}

void it_gets_what_is_left(void **) {
    Rig rig(DTRAIN_ASYNC, 1, true, 2 * bytes - 1);
    rig.ask(RequestKind::restore, 0);
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], bytes), bytes - 1);
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], bytes), 0);
    rig.end_job(DTRAIN_ERR_LIMIT, "too little");
    assert_int_equal(rig.server.memory_used(), bytes);
}

void one_worker_at_a_time(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    rig.ask(RequestKind::restore, 0);
    auto is_refused = [&] {
        rig.ask(RequestKind::restore, 1);
        rig.expect(Reason::restoring);
        assert_int_equal(rig.out[0].header.numbers[0], 0);
        rig.ask(RequestKind::adopt, 1); // not its own
        rig.expect(Reason::not_read);
        rig.ask(RequestKind::discard, 1);
        rig.expect(Reason::none);
    };
    is_refused();
    rig.end_read(9);
    is_refused();
    rig.ask(RequestKind::adopt, 0);
    rig.expect(Reason::none);
    rig.ask(RequestKind::restore, 1);
    rig.end_read(5);
    rig.ask(RequestKind::adopt, 1);
    assert_true(rig.value(0) == 5);
}

void the_newest_of_a_worker_counts(void **) {
    Rig rig(DTRAIN_ASYNC, 1, true, 4 * bytes);
    const RequestHeader first = rig.header(RequestKind::restore, 0),
                        late_adopt = rig.header(RequestKind::adopt, 0),
                        late_discard = rig.header(RequestKind::discard, 0);
    rig.send(first);
    rig.ask(RequestKind::restore, 0);
    rig.end_job(); // the first, which is over
    rig.expect(Reason::canceled);
    rig.end_read(9);
    rig.expect(Reason::none);
    rig.send(late_adopt); // overtaken
    rig.expect(Reason::not_read);
    rig.send(late_discard);
    rig.expect(Reason::none);
    assert_true(rig.value(0) == 0);
    rig.ask(RequestKind::restore, 0); // in place of what was read
    assert_int_equal(rig.server.memory_used(), bytes);
    rig.end_read(7);
    rig.ask(RequestKind::adopt, 0);
    assert_true(rig.value(0) == 7);
    assert_int_equal(rig.server.memory_used(), bytes);
}

void what_was_given_up_before_it_came_is_not_done(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    const RequestHeader restore = rig.header(RequestKind::restore, 0);
    rig.ask(RequestKind::discard, 0); // overtakes it
    rig.expect(Reason::none);
    rig.send(restore);
    rig.expect(Reason::canceled);
    assert_int_equal(rig.shelf.jobs.size(), 0);
    rig.ask(RequestKind::restore, 1); // nobody's
    assert_int_equal(rig.shelf.jobs.size(), 1);
}

void it_is_given_up_while_it_is_read(void **) {
    Rig rig(DTRAIN_ASYNC, 2, true, 4 * bytes);
    rig.ask(RequestKind::restore, 0);
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], bytes), bytes);
    rig.ask(RequestKind::discard, 0);
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], bytes), 0);
    rig.ask(RequestKind::restore, 1); // need not wait for the disk
    assert_int_equal(rig.shelf.jobs.size(), 2);
    rig.end_job();
    rig.expect(Reason::canceled);
    assert_int_equal(rig.server.memory_used(), bytes);
    rig.end_read(9);
    rig.ask(RequestKind::adopt, 1);
    assert_true(rig.value(0) == 9);
}

void it_goes_with_its_worker(void **) {
    auto loses = [](Rig &rig) { rig.server.on_worker_lost(0, rig.out); };
    auto leaves = [](Rig &rig) { rig.server.on_worker_left(0, rig.out); };
    auto destroys = [](Rig &rig) { rig.ask(RequestKind::destroy, 0); };
    auto goes = [](auto &&end, bool while_it_is_read) {
        Rig rig(DTRAIN_ASYNC, 2, true, 2 * bytes);
        rig.ask(RequestKind::restore, 0);
        if (!while_it_is_read) rig.end_read(9);
        end(rig);
        if (while_it_is_read) {
            rig.end_job();
            assert_int_equal(rig.out.size(), 0);
        }
        assert_int_equal(rig.server.memory_used(), bytes);
        assert_true(rig.value(1) == 0);
        rig.ask(RequestKind::restore, 1);
        rig.end_read(5);
        rig.ask(RequestKind::adopt, 1);
        assert_true(rig.value(1) == 5);
    };
    for (bool while_it_is_read : {false, true}) {
        goes(loses, while_it_is_read);
        goes(leaves, while_it_is_read);
        goes(destroys, while_it_is_read);
    }
}

void a_table_that_is_gone_gets_no_memory(void **) {
    Rig rig(DTRAIN_ASYNC, 1);
    rig.ask(RequestKind::restore, 0);
    rig.ask(RequestKind::destroy, 0);
    assert_false(rig.server.holds(0));
    assert_int_equal(rig.server.reserve(*rig.shelf.jobs[0], 1), 0);
    rig.end_job();
    assert_int_equal(rig.out.size(), 0);
}

void open_clocks_keep_their_sums(void **) {
    Rig rig(DTRAIN_BSP, 2);
    rig.push(0, 0, 3);
    rig.end_clock(0, 0, 1);
    rig.ask(RequestKind::restore, 0);
    rig.end_read(9);
    rig.ask(RequestKind::adopt, 0);
    assert_true(rig.value(0, 0) == 9);
    rig.end_clock(1, 0, 0);
    assert_true(rig.value(0, 1) == 12);
}

void a_save_meanwhile_has_what_was_there(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    rig.push(0, 0, 3);
    rig.ask(RequestKind::restore, 0);
    rig.end_read(9);
    rig.ask(RequestKind::save, 1);
    rig.ask(RequestKind::adopt, 0);
    assert_true(rig.saved() == 3);
    rig.end_job();
    rig.expect(Reason::none);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes_before_it_is_taken_over),
        cmocka_unit_test(what_could_not_be_read_changes_nothing),
        cmocka_unit_test(it_is_charged_until_it_is_settled),
        cmocka_unit_test(it_gets_what_is_left),
        cmocka_unit_test(one_worker_at_a_time),
        cmocka_unit_test(the_newest_of_a_worker_counts),
        cmocka_unit_test(what_was_given_up_before_it_came_is_not_done),
        cmocka_unit_test(it_is_given_up_while_it_is_read),
        cmocka_unit_test(it_goes_with_its_worker),
        cmocka_unit_test(a_table_that_is_gone_gets_no_memory),
        cmocka_unit_test(open_clocks_keep_their_sums),
        cmocka_unit_test(a_save_meanwhile_has_what_was_there),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
