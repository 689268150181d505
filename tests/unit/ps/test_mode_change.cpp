// The meeting in which workers change a table's mode: each event and the decision that follows.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/mode_change.h"
#include "ps/table/table_params.h"

#include "check.h"

#include <string>

using namespace dtrain::ps;

namespace {

using Outcome = ModeChange::Decision::Verdict;

uint64_t mode(uint32_t consistency, uint32_t staleness = 0, uint32_t quorum = 0) {
    TableParams params;
    params.consistency = consistency;
    params.staleness = staleness;
    params.quorum = quorum;
    return mode_bits(params);
}

struct Rig {
    explicit Rig(uint32_t workers) : members(workers), clocks({}, workers), change(workers) {}

    RequestHeader request(uint32_t worker, uint32_t number, uint64_t clock = 5,
                          uint64_t bits = mode(DTRAIN_BSP)) {
        RequestHeader h;
        h.kind = RequestKind::set_mode;
        h.worker = worker;
        h.sequence = ++sequence;
        h.pushes = number;
        h.clock = clock;
        h.argument = bits;
        return h;
    }
    void expect(Outcome verdict, Reason reason = Reason::none, uint64_t number0 = 0,
                uint64_t number1 = 0) {
        const ModeChange::Decision decision = change.decide(members, clocks);
        assert_int_equal(decision.verdict, verdict);
        assert_int_equal(decision.answer.reason, reason);
        assert_int_equal(decision.answer.numbers[0], number0);
        assert_int_equal(decision.answer.numbers[1], number1);
    }
    void lose(uint32_t worker) {
        members.lose(worker);
        clocks.lose(worker);
        change.leave(worker);
    }

    uint64_t sequence = 0;
    Membership members;
    Clocks clocks;
    ModeChange change;
};

void the_last_present_worker_brings_the_change(void **) {
    Rig rig(3);
    rig.expect(Outcome::wait);
    for (uint32_t worker : {1u, 0u}) {
        assert_false(rig.change.ask(rig.request(worker, 1)).has_value());
        rig.expect(Outcome::wait);
        assert_int_equal(rig.change.absent(rig.members).value(), worker == 1 ? 0 : 2);
    }
    assert_false(rig.change.ask(rig.request(2, 1)).has_value());
    assert_false(rig.change.absent(rig.members).has_value());
    rig.expect(Outcome::change, Reason::none, 1);
    assert_int_equal(rig.change.decide(rig.members, rig.clocks).request.worker, 1);
    assert_int_equal(rig.change.take_meeting().size(), 3);
    rig.expect(Outcome::wait);
}

void a_worker_that_leaves_is_not_waited_for(void **) {
    Rig rig(2);
    rig.change.ask(rig.request(0, 1));
    rig.members.leave(1);
    rig.change.leave(1);
    rig.expect(Outcome::change, Reason::none, 1);
}

void a_new_request_replaces_an_abandoned_one(void **) {
    Rig rig(2);
    const RequestHeader old = rig.request(0, 1);
    rig.change.ask(old);
    const auto abandoned = rig.change.ask(rig.request(0, 2));
    assert_true(abandoned.has_value());
    assert_int_equal(abandoned->sequence, old.sequence);
    rig.expect(Outcome::wait);
    assert_int_equal(rig.change.take_meeting().size(), 1);
}

void a_lost_worker_that_has_not_asked_prevents_it(void **) {
    Rig rig(3);
    rig.change.ask(rig.request(0, 1));
    rig.lose(2);
    rig.expect(Outcome::refuse, Reason::worker_lost, 2, 0);
    rig.change.take_meeting();
    RequestHeader h = rig.request(0, 2); // those that remain go on without it
    h.flags = without_lost;
    rig.change.ask(h);
    rig.expect(Outcome::wait);
    h = rig.request(1, 2);
    h.flags = without_lost;
    rig.change.ask(h);
    rig.expect(Outcome::change, Reason::none, 1);
}

void a_lost_worker_that_has_asked_does_not(void **) {
    Rig rig(2);
    rig.change.ask(rig.request(1, 1));
    rig.lose(1);
    rig.change.ask(rig.request(0, 1));
    rig.expect(Outcome::change, Reason::none, 1);
}

void known_outcomes_are_answered_at_once(void **) {
    Rig rig(2);
    const RequestHeader first = rig.request(0, 1), second = rig.request(1, 2);
    assert_false(rig.change.outcome(first).has_value());
    rig.change.made(first);
    assert_int_equal(rig.change.outcome(first)->numbers[0], 1);
    assert_false(rig.change.outcome(second).has_value());
    Answer refused = rig.change.refuse(second);
    assert_int_equal(refused.reason, Reason::mode_not_agreed);
    assert_int_equal(refused.numbers[0], 1);
    assert_int_equal(rig.change.outcome(second)->reason, Reason::mode_not_agreed);
    refused = rig.change.refuse(rig.request(0, 2)); // the first to refuse a change is named
    assert_int_equal(refused.numbers[0], 1);
    assert_false(rig.change.outcome(rig.request(0, 3)).has_value());
}

void another_clock_or_other_flags_refuse_it(void **) {
    for (bool flags : {false, true}) {
        Rig rig(2);
        rig.change.ask(rig.request(0, 1));
        RequestHeader h = rig.request(1, 1, flags ? 5 : 6);
        if (flags) h.flags = without_lost;
        rig.change.ask(h);
        rig.expect(Outcome::refuse, Reason::clock_changed, 5);
    }
}

void different_modes_are_both_named(void **) {
    const struct {
        uint64_t first, second;
        const char *text;
    } cases[] = {
        {mode(DTRAIN_BSP), mode(DTRAIN_SSP, 3), "BSP, and SSP with staleness 3"},
        {mode(DTRAIN_QUORUM, 0, 2), mode(DTRAIN_ASYNC), "QUORUM of 2, and ASYNC"},
        {mode(DTRAIN_BSP), mode(DTRAIN_BSP) | uint64_t{1} << 60, "BSP, and BSP, reproducible"},
        {mode(DTRAIN_SSP, 3), mode(DTRAIN_SSP, 4),
         "SSP with staleness 3, and SSP with staleness 4"},
    };
    for (const auto &c : cases) {
        Rig rig(3);
        rig.change.ask(rig.request(0, 1, 5, c.first));
        rig.change.ask(rig.request(2, 1, 5, c.first));
        rig.change.ask(rig.request(1, 1, 6, c.second)); // also at another clock
        rig.expect(Outcome::refuse, Reason::modes_differ, c.first, c.second);
        const Answer answer = rig.change.decide(rig.members, rig.clocks).answer;
        char text[200];
        describe(answer.reason, answer.numbers, 0, text, sizeof text);
        const std::string due = std::string("workers ask for different modes: ") + c.text;
        assert_string_equal(text, due.c_str());
        assert_int_equal(status_of(answer.reason), DTRAIN_ERR_MISMATCH);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_last_present_worker_brings_the_change),
        cmocka_unit_test(a_worker_that_leaves_is_not_waited_for),
        cmocka_unit_test(a_new_request_replaces_an_abandoned_one),
        cmocka_unit_test(a_lost_worker_that_has_not_asked_prevents_it),
        cmocka_unit_test(a_lost_worker_that_has_asked_does_not),
        cmocka_unit_test(known_outcomes_are_answered_at_once),
        cmocka_unit_test(another_clock_or_other_flags_refuse_it),
        cmocka_unit_test(different_modes_are_both_named),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
