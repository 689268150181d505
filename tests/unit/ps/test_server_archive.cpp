// Saving and restoring as a server sees it: when it may begin, and what comes of it.
// SPDX-License-Identifier: Apache-2.0
#include "archive_rig.h"

#include "check.h"

#include <cstring>
#include <string>

using namespace dtrain::ps;

namespace {

using Rig = ArchiveRig;

void an_image_is_of_one_moment(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    rig.push(0, 0, 1);
    RequestHeader save = rig.header(RequestKind::save, 0);
    assert_int_equal(rig.send(save).size(), 0);
    rig.push(1, 0, 1);
    assert_true(rig.saved() == 1);
    assert_int_equal(rig.shelf.jobs[0]->request.argument, 42);
    assert_string_equal(rig.shelf.jobs[0]->name.c_str(), "t");
    assert_int_equal(rig.send(save).size(), 0); // sent again: it is being done
    assert_int_equal(rig.shelf.jobs.size(), 1);
    rig.end_job();
    rig.expect(Reason::none);
    rig.send(save); // its answer was lost
    rig.expect(Reason::none);
    assert_int_equal(rig.shelf.jobs.size(), 0);
}

void a_failure_is_told_again_as_it_was(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    const RequestHeader first = rig.header(RequestKind::save, 0),
                        second = rig.header(RequestKind::save, 1);
    rig.send(first);
    rig.end_job(DTRAIN_ERR_IO, "the disk is full");
    rig.send(second);
    rig.end_job(DTRAIN_ERR_IO, "the disk is gone");
    auto text = [&](const RequestHeader &header) {
        rig.send(header);
        rig.expect(Reason::told);
        return std::string(static_cast<const char *>(rig.out[0].payload), rig.out[0].bytes);
    };
    assert_string_equal(text(first).c_str(), "the disk is full");
    assert_string_equal(text(second).c_str(), "the disk is gone");
    assert_string_equal(text(first).c_str(), "the disk is full");
}

void a_copy_counts_as_long_as_it_is_there(void **) {
    for (uint64_t limit : {63, 64, 95}) { // the table has 32 bytes
        Rig rig(DTRAIN_ASYNC, 1, true, limit);
        rig.push(0, 0, 1);
        for (int round = 0; round < 2; ++round) {
            rig.send(rig.header(RequestKind::save, 0));
            assert_int_equal(rig.shelf.jobs.size(), limit < 64 ? 0 : 1);
            if (limit >= 64) {
                assert_int_equal(rig.server.memory_used(), 64);
                rig.send(rig.header(RequestKind::save, 0)); // there is no room for another
            }
            rig.expect(Reason::memory_limit);
            assert_int_equal(rig.out[0].header.numbers[0], 32);
            if (limit >= 64) rig.end_job();
            assert_int_equal(rig.server.memory_used(), 32);
        }
        rig.push(0, 0, 1); // nothing else has happened
        rig.expect(Reason::none);
    }
}

void bsp_waits_for_its_clock(void **) {
    Rig rig(DTRAIN_BSP, 2);
    rig.push(0, 0, 1);
    rig.end_clock(0, 0, 1);
    assert_int_equal(rig.send(rig.header(RequestKind::save, 0, 1)).size(), 0);
    assert_int_equal(rig.shelf.jobs.size(), 0);
    rig.push(1, 0, 4);
    rig.end_clock(1, 0, 1);
    assert_int_equal(rig.shelf.jobs.size(), 1);
    assert_true(rig.saved() == 5);
    rig.end_job();
    rig.expect(Reason::none);
    rig.send(rig.header(RequestKind::save, 1, 0)); // cannot be any more
    rig.expect(Reason::clock_passed);
}

void ssp_takes_no_push_of_the_clock(void **) {
    Rig rig(DTRAIN_SSP, 2);
    rig.push(0, 0, 1);
    rig.end_clock(0, 0, 1);
    assert_int_equal(rig.send(rig.header(RequestKind::save, 0, 1)).size(), 0);
    rig.end_clock(1, 0, 0);
    assert_int_equal(rig.shelf.jobs.size(), 1);
    rig.push(1, 1, 1); // whenever it comes, the image is of before
    assert_true(rig.saved() == 1);
    rig.end_job();
    rig.send(rig.header(RequestKind::save, 0, 1));
    rig.expect(Reason::not_at_clock);
    rig.end_clock(1, 1, 1);
    rig.send(rig.header(RequestKind::save, 0, 1)); // nor after the clock's end
    rig.expect(Reason::not_at_clock);
}

// What a save would wait for is never: it has what there is, and its clock.
void a_worker_that_it_waits_for_is_lost(void **) {
    for (uint32_t consistency : {DTRAIN_BSP, DTRAIN_SSP}) {
        Rig rig(consistency, 2);
        for (uint32_t worker : {0, 1}) {
            rig.push(worker, 0, 1);
            rig.end_clock(worker, 0, 1);
        }
        rig.push(0, 1, 4);
        rig.end_clock(0, 1, 1);
        assert_int_equal(rig.send(rig.header(RequestKind::save, 0, 2)).size(), 0);
        assert_int_equal(rig.shelf.jobs.size(), 0);
        rig.out.clear();
        rig.server.on_worker_lost(1, rig.out);
        const bool bsp = consistency == DTRAIN_BSP;
        assert_int_equal(rig.shelf.jobs.size(), 1);
        assert_true(rig.saved() == (bsp ? 2 : 6));
        assert_int_equal(rig.shelf.jobs[0]->image->clock, bsp ? 1 : 2);
        rig.end_job();
        rig.expect(Reason::none);
        rig.send(rig.header(RequestKind::save, 0, 2)); // again and again
        assert_int_equal(rig.shelf.jobs.size(), 1);
        rig.end_job();
        rig.expect(Reason::none);
    }
}

void a_failure_is_told(void **) {
    Rig rig(DTRAIN_ASYNC, 1);
    RequestHeader save = rig.header(RequestKind::save, 0);
    rig.send(save);
    rig.end_job(DTRAIN_ERR_IO, "cannot write /x: No space left on device");
    for (int repetition = 0; repetition < 2; repetition++) {
        rig.expect(Reason::told);
        const Response &response = rig.out[0];
        assert_true(check_response(response.header, save, 0));
        assert_int_equal(told_status(response.header.numbers[0]), DTRAIN_ERR_IO);
        assert_int_equal(response.bytes, response.header.count);
        std::string text(static_cast<const char *>(response.payload), response.bytes);
        assert_string_equal(text.c_str(), "cannot write /x: No space left on device");
        rig.send(save);
    }
    rig.send(rig.header(RequestKind::save, 0));
    rig.end_job(DTRAIN_ERR_IO, std::string(3 * max_told, 'x').c_str());
    assert_int_equal(rig.out[0].bytes, max_told);
    rig.push(0, 0, 1); // it lives on
    rig.expect(Reason::none);
}

void nobody_can_tell_a_text_elsewhere(void **) {
    ResponseHeader response;
    response.reason = Reason::told;
    response.count = 4;
    for (RequestKind kind : {RequestKind::clock, RequestKind::set, RequestKind::pull_state,
                             RequestKind::set_state_rows, RequestKind::count_rows}) {
        RequestHeader request;
        request.kind = response.kind = kind;
        request.count = has_trait(kind, Trait::ranged);
        assert_false(check_response(response, request, 0));
    }
    RequestHeader save;
    save.kind = response.kind = RequestKind::save;
    assert_true(check_response(response, save, 0));
    response.count = max_told + 1;
    assert_false(check_response(response, save, 0));
    assert_int_equal(told_status(0), DTRAIN_ERR_CORRUPT);
    assert_int_equal(told_status(UINT64_MAX), DTRAIN_ERR_CORRUPT);
}

void without_a_folder(void **) {
    Rig rig(DTRAIN_ASYNC, 1, false);
    for (RequestKind kind : {RequestKind::save, RequestKind::restore}) {
        rig.send(rig.header(kind, 0));
        rig.expect(Reason::told);
        assert_int_equal(told_status(rig.out[0].header.numbers[0]), DTRAIN_ERR_CONFIG);
    }
}

void a_worker_that_is_gone_changes_nothing(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    rig.send(rig.header(RequestKind::restore, 0));
    rig.server.on_worker_lost(0, rig.out);
    rig.end_job();
    assert_int_equal(rig.out.size(), 0);
    rig.send(rig.header(RequestKind::save, 1));
    RequestHeader destroy = rig.header(RequestKind::destroy, 1);
    rig.send(destroy);
    assert_false(rig.server.holds(0));
    rig.end_job(); // of a table that is gone
    assert_int_equal(rig.out.size(), 0);
}

void ready_is_waited_for(void **) {
    Rig rig(DTRAIN_ASYNC, 3);
    RequestHeader waits = rig.header(RequestKind::wait_ready, 1);
    assert_int_equal(rig.send(waits).size(), 0);
    assert_int_equal(rig.send(waits).size(), 0); // sent again
    assert_int_equal(rig.send(rig.header(RequestKind::wait_ready, 2)).size(), 0);
    assert_int_equal(rig.send(rig.header(RequestKind::set_ready, 0)).size(), 3);
    for (const Response &response : rig.out) assert_int_equal(response.header.reason, Reason::none);
    rig.send(rig.header(RequestKind::wait_ready, 0));
    rig.expect(Reason::none);
    rig.server.on_worker_lost(0, rig.out);
    rig.send(rig.header(RequestKind::wait_ready, 1)); // it was said before
    rig.expect(Reason::none);
}

void ready_may_never_come(void **) {
    Rig rig(DTRAIN_ASYNC, 2);
    assert_int_equal(rig.send(rig.header(RequestKind::wait_ready, 1)).size(), 0);
    rig.server.on_worker_lost(0, rig.out);
    rig.expect(Reason::worker_lost);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_of_one_moment),
        cmocka_unit_test(a_failure_is_told_again_as_it_was),
        cmocka_unit_test(a_copy_counts_as_long_as_it_is_there),
        cmocka_unit_test(bsp_waits_for_its_clock),
        cmocka_unit_test(ssp_takes_no_push_of_the_clock),
        cmocka_unit_test(a_worker_that_it_waits_for_is_lost),
        cmocka_unit_test(a_failure_is_told),
        cmocka_unit_test(nobody_can_tell_a_text_elsewhere),
        cmocka_unit_test(without_a_folder),
        cmocka_unit_test(a_worker_that_is_gone_changes_nothing),
        cmocka_unit_test(ready_is_waited_for),
        cmocka_unit_test(ready_may_never_come),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
