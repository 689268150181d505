// Eager messages of several packets (transports/rdm), over a wire that takes few of them at a time.
// SPDX-License-Identifier: Apache-2.0
#include "looped_device.h"

#include <poll.h>

namespace dtrain::test {
namespace {

void a_busy_wire_gets_a_message_part_by_part(void **) {
    for (const bool expected : {true, false}) {
        Looped looped;
        looped.wire->room = 1;
        if (expected) looped.receive();
        looped.send();
        looped.progress(); // the first part goes round
        assert_false(looped.is_done(send_cookie) || looped.is_done(receive_cookie));
        looped.progress_by_packets();
        if (!expected) looped.receive();
        looped.progress();
        assert_int_equal(looped.status(send_cookie), DTRAIN_OK);
        assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
        assert_true(looped.got == looped.sent);
    }
}

// Below what the wire copies, and above; at once, and when it is busy at first.
void small_messages_go_or_wait(void **) {
    for (const size_t length : {0, 1, 208, 209, 4047, 4048, 4049})
        for (const bool busy : {false, true}) {
            Looped looped;
            looped.sent.resize(length);
            looped.got.resize(length);
            if (busy) looped.wire->room = 0;
            looped.receive();
            looped.send();
            for (int i = 0; i < 3; i++) looped.progress();
            assert_int_equal(looped.is_done(send_cookie), !busy);
            assert_int_equal(looped.is_done(receive_cookie), !busy);
            looped.wire->room = SIZE_MAX;
            for (int i = 0; i < 3; i++) looped.progress();
            assert_int_equal(looped.status(send_cookie), DTRAIN_OK);
            assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
            assert_true(looped.got == looped.sent);
        }
}

// A peer that is stopped may keep the wire busy for minutes, and the wire signals nothing.
void nobody_spins_while_the_wire_is_busy(void **) {
    Looped looped;
    looped.wire->room = 0;
    looped.receive();
    looped.send();
    const int64_t end = now_ns() + 20'000'000'000;
    const auto sleep = [&] {
        while (looped.device.arm() != DTRAIN_OK && now_ns() < end) looped.progress();
        pollfd event{looped.device.event_fd(), POLLIN, 0};
        assert_int_equal(poll(&event, 1, 20'000), 1); // it is woken to try again
        looped.progress();
    };
    for (int i = 0; i < 3; i++) {
        const uint32_t tries = looped.wire->tries;
        sleep();
        // At once for a while, then once each time it is woken.
        if (i > 0) assert_in_range(looped.wire->tries - tries, 1, 3);
        assert_false(looped.is_done(send_cookie));
    }
    looped.wire->room = SIZE_MAX;
    sleep();
    while (!looped.is_done(receive_cookie) && now_ns() < end) looped.progress();
    assert_int_equal(looped.status(send_cookie), DTRAIN_OK);
    assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
    assert_true(looped.got == looped.sent);
}

// Its receiver gets all of it, and what another endpoint sends then.
void an_endpoint_goes_in_the_middle_of_its_message(void **) {
    Looped looped;
    looped.wire->room = 1;
    looped.receive();
    looped.send();
    looped.device.disconnect(std::exchange(looped.endpoint, nullptr));
    looped.progress();
    assert_false(looped.is_done(send_cookie)); // its memory is still read
    looped.progress_by_packets();
    assert_int_equal(looped.status(send_cookie), DTRAIN_ERR_CANCELED);
    assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
    assert_true(looped.got == looped.sent);
    looped.done.clear();

    uint8_t address[rdm::Address::wire_length];
    looped.device.address(address);
    assert_int_equal(
        looped.device.connect(address, sizeof address, connect_cookie, &looped.endpoint),
        DTRAIN_OK);
    looped.receive();
    looped.send();
    looped.progress_by_packets();
    assert_int_equal(looped.status(send_cookie), DTRAIN_OK);
    assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
}

void a_link_breaks_in_the_middle_of_a_message(void **) {
    for (const size_t parts : {1, 2, 4, 5}) // of 5
        for (const bool arrive : {true, false}) {
            Looped looped;
            looped.wire->room = 1;
            looped.receive();
            looped.send();
            looped.progress();
            looped.wire->room = parts - 1;
            looped.wire->stuck = !arrive;
            looped.progress();
            looped.wire->break_link(DTRAIN_ERR_PEER);
            looped.progress();
            const bool all_out = arrive && parts == 5;
            assert_int_equal(looped.status(send_cookie), all_out ? DTRAIN_OK : DTRAIN_ERR_PEER);
            assert_int_equal(looped.status(receive_cookie), DTRAIN_ERR_PEER);
        }
}

// The wire gives up a link for which it lacks memory: the peer is not to blame, and hears of it.
void a_wire_lacks_memory(void **) {
    for (const dtrain_status_t status : {DTRAIN_ERR_NO_MEMORY, DTRAIN_ERR_PEER}) {
        Looped looped;
        looped.progress();
        const size_t room = looped.wire->room;
        looped.wire->break_link(status);
        looped.progress();
        const auto lost =
            std::ranges::find(looped.done, uint32_t(DTRAIN_TP_PEER_LOST), &dtrain_tp_done_t::kind);
        assert_true(lost != looped.done.end());
        assert_int_equal(lost->status, status);
        const bool says_goodbye = looped.wire->room < room;
        assert_int_equal(says_goodbye, status == DTRAIN_ERR_NO_MEMORY);
    }
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_wire_gets_a_message_part_by_part),
        cmocka_unit_test(small_messages_go_or_wait),
        cmocka_unit_test(nobody_spins_while_the_wire_is_busy),
        cmocka_unit_test(an_endpoint_goes_in_the_middle_of_its_message),
        cmocka_unit_test(a_link_breaks_in_the_middle_of_a_message),
        cmocka_unit_test(a_wire_lacks_memory),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
