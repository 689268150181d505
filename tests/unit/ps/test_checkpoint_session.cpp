// The charges of saves and restores, and which restore a request belongs to.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/checkpoint_session.h"
#include "ps/storage/shard_image.h"

#include "check.h"

#include <memory>
#include <utility>

using namespace dtrain::ps;

namespace {

RequestHeader request(RequestKind kind, uint32_t worker, uint64_t sequence) {
    RequestHeader h;
    h.kind = kind;
    h.worker = worker;
    h.sequence = sequence;
    return h;
}

std::unique_ptr<ArchiveJob> job_of(const RequestHeader &header) {
    TableParams params;
    params.length = 8;
    params.dtype = DTRAIN_F32;
    auto job = std::make_unique<ArchiveJob>();
    job->request = header;
    job->image = std::make_unique<ShardImage>(params, Range{0, 8});
    return job;
}

std::unique_ptr<ArchiveJob> begin(CheckpointSession &session, uint32_t worker, uint64_t sequence) {
    const RequestHeader header = request(RequestKind::restore, worker, sequence);
    assert_int_equal(session.admit_restore(header).reason, Reason::none);
    session.begin_restore(header);
    return job_of(header);
}

void a_save_is_charged_until_it_ends(void **) {
    CheckpointSession session(1);
    auto job = job_of(request(RequestKind::save, 0, 1));
    job->charged = 100;
    session.begin_save(100);
    assert_int_equal(session.bytes(), 100);
    assert_false(session.end(*job, true));
    assert_int_equal(session.bytes(), 0);
}

void a_restore_is_charged_until_it_is_taken_over(void **) {
    CheckpointSession session(2);
    auto job = begin(session, 0, 1);
    assert_int_equal(session.reserve(*job, 32), 32);
    assert_null(session.take(request(RequestKind::adopt, 0, 2)).get()); // it has not been read
    const Answer busy = session.admit_restore(request(RequestKind::restore, 1, 1));
    assert_int_equal(busy.reason, Reason::restoring);
    assert_int_equal(busy.numbers[0], 0);
    assert_true(session.end(*job, true));
    session.keep(std::move(job));
    assert_int_equal(session.bytes(), 32);
    assert_null(session.take(request(RequestKind::adopt, 1, 2)).get()); // of another worker
    assert_null(session.take(request(RequestKind::adopt, 0, 1)).get()); // sent before the restore
    assert_non_null(session.take(request(RequestKind::adopt, 0, 2)).get());
    assert_int_equal(session.bytes(), 0);
    begin(session, 1, 1);
}

void a_failed_or_canceled_restore_keeps_nothing(void **) {
    for (bool failed : {false, true}) {
        CheckpointSession session(2);
        auto job = begin(session, 0, 1);
        session.reserve(*job, 32);
        if (failed) job->status = DTRAIN_ERR_IO;
        assert_false(session.end(*job, failed));
        assert_int_equal(session.bytes(), 0);
        begin(session, 1, 1);
    }
}

void a_later_restore_of_the_worker_replaces_the_earlier_one(void **) {
    CheckpointSession session(1);
    auto old = begin(session, 0, 1);
    session.reserve(*old, 32);
    auto job = begin(session, 0, 2);
    assert_int_equal(session.reserve(*old, 8), 0); // so its reading stops
    assert_false(session.end(*old, true));
    assert_int_equal(session.bytes(), 0);
    assert_int_equal(session.reserve(*job, 32), 32);
    assert_int_equal(session.admit_restore(request(RequestKind::restore, 0, 1)).reason,
                     Reason::canceled);
}

void a_discard_also_stops_restores_that_come_after_it(void **) {
    CheckpointSession session(1);
    auto job = begin(session, 0, 3);
    session.reserve(*job, 32);
    assert_true(session.end(*job, true));
    session.keep(std::move(job));
    session.discard(request(RequestKind::discard, 0, 2)); // of an earlier restore
    assert_int_equal(session.bytes(), 32);
    session.discard(request(RequestKind::discard, 0, 5));
    assert_int_equal(session.bytes(), 0);
    assert_int_equal(session.admit_restore(request(RequestKind::restore, 0, 4)).reason,
                     Reason::canceled);
    begin(session, 0, 6);
}

void the_restore_of_a_worker_that_is_gone_is_dropped(void **) {
    CheckpointSession session(2);
    auto job = begin(session, 0, 1);
    session.reserve(*job, 32);
    assert_true(session.end(*job, true));
    session.keep(std::move(job));
    session.leave(1);
    assert_int_equal(session.bytes(), 32);
    session.leave(0);
    assert_int_equal(session.bytes(), 0);
    begin(session, 1, 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_save_is_charged_until_it_ends),
        cmocka_unit_test(a_restore_is_charged_until_it_is_taken_over),
        cmocka_unit_test(a_failed_or_canceled_restore_keeps_nothing),
        cmocka_unit_test(a_later_restore_of_the_worker_replaces_the_earlier_one),
        cmocka_unit_test(a_discard_also_stops_restores_that_come_after_it),
        cmocka_unit_test(the_restore_of_a_worker_that_is_gone_is_dropped),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
