// The coordinator's small parts, one by one: heartbeats, calls, failover, names.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/clock.h"
#include "cluster/control/call_log.h"
#include "cluster/control/calls.h"
#include "cluster/control/failover.h"
#include "cluster/control/join_roster.h"
#include "cluster/control/watch.h"
#include "cluster/host/names.h"

#include <cstring>
#include <set>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

void silence_is_noticed_in_time(void **) {
    Watch watch({250 * ms, second});
    watch.start(1, 0);
    watch.start(2, 0);
    int64_t lost_at = 0;
    for (int64_t now = watch.next_deadline(); now < 3 * second; now = watch.next_deadline()) {
        watch.heard(2, now);
        Watch::Due due = watch.check(now);
        for (Watch::Silent s : due.silent) {
            assert_int_equal(s.member, 1);
            lost_at = now;
            watch.stop(1);
        }
    }
    assert_int_equal(lost_at, second);
}

void own_absence_is_no_silence(void **) {
    Watch watch({250 * ms, second});
    watch.start(1, 0);
    Watch::Due due = watch.check(7 * second); // this process was stopped
    assert_true(due.beat && due.silent.empty());
    // It had been silent for an interval before.
    for (int64_t t = 7 * second; t < 7 * second + 750 * ms; t += 50 * ms)
        assert_true(watch.check(t).silent.empty());
    assert_int_equal(watch.check(7 * second + 750 * ms).silent.size(), 1);
}

wire::Calls report(bool stalled, std::vector<CallRecord> calls) {
    return {8, {5, 6, 7}, stalled, std::move(calls)};
}

void calls_are_compared(void **) {
    CallRecord reduce{17, 100, -1, CallKind::all_reduce, DTRAIN_F32, DTRAIN_SUM};
    CallRecord cast{17, 10, 0, CallKind::broadcast, DTRAIN_BF16, 0};
    CallRecord before{16, 0, -1, CallKind::barrier, 0, 0};
    CallLog log;
    CallLog::Outcome first = log.report(6, report(true, {before, reduce}));
    assert_true(first.mismatch.empty() && first.behind.empty());
    assert_true((first.wanted == std::vector<int32_t>{5, 7}));
    CallLog::Outcome second = log.report(5, report(false, {before}));
    assert_int_equal(second.behind.size(), 1);
    assert_int_equal(second.behind[0].member, 6);
    assert_int_equal(second.behind[0].rank, 0);
    assert_int_equal(second.behind[0].seq, 16);
    CallLog::Outcome third = log.report(7, report(false, {cast}));
    assert_string_equal(
        third.mismatch.c_str(),
        "call 17: rank 2 broadcast bf16[10] root 0, rank 1 all_reduce f32[100] sum");
    log.forget(8);
    assert_true(log.report(7, report(false, {cast})).mismatch.empty());
    for (uint64_t group = 100; group < 3000; group++) { // bounded
        wire::Calls other = report(false, {cast});
        other.group = group;
        log.report(7, other);
    }
    assert_true(log.report(6, report(false, {reduce})).mismatch.empty());
    assert_string_equal(describe({1, 0, -1, CallKind(99), 99, 99}).c_str(), "? ?[0] ?");
}

// When everybody stalls, n reports must not become n * n questions.
void each_is_asked_once(void **) {
    CallRecord before{16, 0, -1, CallKind::barrier, 0, 0}, reduce = before;
    reduce.seq = 17;
    CallLog log;
    const std::vector<int32_t> none, both = {5, 7}, last = {7};
    assert_true(log.report(6, report(true, {before, reduce})).wanted == both);
    assert_true(log.report(5, report(true, {before, reduce})).wanted == none); // 7 was asked
    assert_true(log.report(5, report(true, {before, reduce})).wanted == last); // and is silent
    assert_true(log.report(7, report(false, {before})).wanted == none);
    assert_true(log.report(6, report(true, {before, reduce})).wanted == last); // since then
}

// All have to say twice that nothing moves; who moves on in between takes it back.
void a_stuck_group_is_found(void **) {
    const CallRecord reduce{17, 100, -1, CallKind::all_reduce, DTRAIN_F32, DTRAIN_SUM};
    const auto stuck = [&](CallLog &log, int32_t member, bool it_is = true) {
        wire::Calls calls = report(true, {reduce});
        calls.stuck = it_is;
        return log.report(member, calls).stuck;
    };
    CallLog log;
    for (int32_t member : {5, 6, 7, 5, 6, 6}) assert_false(stuck(log, member));
    assert_true(stuck(log, 7));
    log.forget(8);
    for (int32_t member : {5, 6, 7, 5, 6}) assert_false(stuck(log, member));
    assert_false(stuck(log, 5, false)); // it goes on
    for (int32_t member : {5, 6, 7, 5, 6}) assert_false(stuck(log, member));
    assert_true(stuck(log, 7));
}

void the_larger_side_goes_on(void **) {
    struct {
        int32_t came, ended, found_ended, gone; // each of others; the last ones, as all were told
        bool dead, goes_on;
        bool clean = false, absent = false;
    } const cases[] = {
        // of 5 others than the old coordinator
        {5, 0, 0, 0, false, true},
        {4, 0, 0, 0, false, true},
        {3, 0, 0, 0, false, false},
        {3, 0, 0, 0, true, true},
        {2, 0, 0, 0, true, false},
        {2, 2, 0, 0, true, true},
        {2, 2, 0, 0, false, false},
        // Those that have ended may have gone on with the old coordinator, unless that is dead.
        {4, 1, 0, 0, false, true},
        {3, 2, 0, 0, false, false},
        {3, 0, 2, 0, false, false},
        {3, 2, 0, 0, true, true},
        {1, 4, 0, 0, false, false},
        {1, 0, 4, 0, false, false},
        {1, 4, 0, 0, true, true},
        {2, 1, 0, 2, false, false},
        {2, 0, 0, 3, false, true},
        // Of two, each goes on.
        {1, 0, 0, 4, false, true},
        // Those that have ended while this process was absent may have gone on without it.
        {1, 4, 0, 0, true, false, false, true},
        {1, 0, 4, 0, true, false, false, true},
        {1, 4, 0, 0, false, true, true, false},
        {1, 4, 0, 0, false, false, true, true},
        {1, 0, 4, 0, false, false, true, true},
        {1, 2, 2, 0, false, false, true, true},
        {3, 2, 0, 0, false, true, true, true},
        {3, 0, 2, 0, true, true, false, true},
        {1, 0, 0, 4, false, true, true, true},
    };
    for (const auto &c : cases) {
        Membership state;
        state.epoch = 7;
        state.peers.resize(6);
        state.gone[0] = state.lost(0, "it was silent", true);
        const Pace pace{250 * ms, second, 0};
        Absence absence;
        absence.ran(c.absent ? -10 * second : -250 * ms, pace, false);
        absence.ran(0, pace, true);
        absence.lost_coordinator(0, pace);
        int32_t m = 5;
        for (int32_t i = 0; i < c.gone; i++, m--) {
            state.gone[m] = state.lost(m, "its process has ended", false);
            state.gone[m].epoch = state.epoch;
        }
        for (int32_t i = 0; i < c.found_ended; i++, m--) {
            state.gone[m] =
                c.clean ? state.left(m, false) : state.lost(m, "its process has ended", false);
            absence.found_ended(0, pace);
        }
        Failover reunion(state, pace, c.clean, c.dead, absence, 0);
        m = 1;
        for (int32_t i = 0; i < c.came; i++) reunion.came(m++);
        for (int32_t i = 0; i < c.ended; i++) reunion.ended(m++, 0, false);
        assert_int_equal(reunion.over(0), reunion.missing().empty());
        assert_true(reunion.over(second));
        assert_int_equal(reunion.goes_on(), c.goes_on);
    }
}

// A link that holds back the coordinator's answer holds back whatever else it has to say, perhaps
// that the job goes on without this process.
void an_answer_held_back_was_given_long_ago(void **) {
    const Pace pace{250 * ms, second, 0};
    const struct {
        int64_t answered, heard, lost; // when; the question was at 0
        size_t ended_late;
    } cases[] = {
        {10 * second, 0, 10 * second + ms, 1},
        {10 * second, 10 * second + ms, 10 * second + 2 * ms, 1}, // held back as well
        {10 * second, 10 * second + 251 * ms, 10 * second + 252 * ms, 0},
        {ms, 0, 2 * ms, 0},
    };
    for (const auto &c : cases) {
        Absence absence;
        for (int64_t now = 0; now <= c.lost; now += ms) absence.ran(now, pace, true);
        absence.answered(0, c.answered, pace);
        if (c.heard != 0) absence.heard(c.heard, pace);
        absence.lost_coordinator(c.lost, pace);
        absence.found_ended(c.lost + 50 * ms, pace);
        assert_int_equal(absence.ended_late(), c.ended_late);
    }
}

void names(void **) {
    const int32_t many[] = {0, 1, 2, 5, 7, 8, 9};
    assert_string_equal(member_list(many, 8).c_str(), "ranks 0-2,5,7 and servers 0-1");
    assert_string_equal(member_list({}, 8).c_str(), "nobody");
    assert_string_equal(member_list(std::span(many).last(1), 8).c_str(), "server 1");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_noticed_in_time),
        cmocka_unit_test(own_absence_is_no_silence),
        cmocka_unit_test(calls_are_compared),
        cmocka_unit_test(each_is_asked_once),
        cmocka_unit_test(a_stuck_group_is_found),
        cmocka_unit_test(the_larger_side_goes_on),
        cmocka_unit_test(an_answer_held_back_was_given_long_ago),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
