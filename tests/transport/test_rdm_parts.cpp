// Eager messages of several packets (transports/rdm), over a wire that takes few of them at a time.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "fake_host.h"
#include "looped_wire.h"

#include <numeric>

namespace dtrain::test {
namespace {

constexpr uint64_t tag = 7, send_cookie = 1, receive_cookie = 2, connect_cookie = 3;

// A device that is connected to itself.
struct Looped {
    FakeHost host;
    rdm::Device device{host.table(), "looped"};
    LoopedWire *wire = nullptr;
    rdm::Endpoint *endpoint = nullptr;
    std::vector<uint8_t> sent = std::vector<uint8_t>(20'000), got = std::vector<uint8_t>(20'000);
    std::vector<dtrain_tp_done_t> done;

    Looped() {
        std::iota(sent.begin(), sent.end(), uint8_t(1));
        auto made = std::make_unique<LoopedWire>(device.protocol());
        wire = made.get();
        assert_int_equal(device.open(std::move(made), "looped"), DTRAIN_OK);
        uint8_t address[rdm::Address::wire_length];
        device.address(address);
        assert_int_equal(device.connect(address, sizeof address, connect_cookie, &endpoint),
                         DTRAIN_OK);
    }
    ~Looped() {
        if (endpoint) device.disconnect(endpoint);
    }
    void send() {
        const dtrain_tp_iov_t all{sent.data(), sent.size(), nullptr};
        assert_int_equal(device.send(endpoint, tag, &all, 1, send_cookie), DTRAIN_OK);
    }
    void receive() {
        const dtrain_tp_iov_t all{got.data(), got.size(), nullptr};
        assert_int_equal(device.recv(tag, ~uint64_t{0}, &all, 1, receive_cookie), DTRAIN_OK);
    }
    void progress() {
        dtrain_tp_done_t some[16];
        const int32_t n = device.progress(some, 16);
        assert_true(n >= 0);
        done.insert(done.end(), some, some + n);
    }
    // Lets one packet go at a time until there is no more to come.
    void progress_by_packets() {
        for (int i = 0; i < 20; i++) {
            wire->room = 1;
            progress();
        }
    }
    // What it completed with; fails if it did not.
    dtrain_status_t status(uint64_t cookie) const {
        const auto found = std::find_if(done.begin(), done.end(),
                                        [&](const auto &d) { return d.cookie == cookie; });
        assert_true(found != done.end());
        return found->status;
    }
    bool is_done(uint64_t cookie) const {
        return std::any_of(done.begin(), done.end(),
                           [&](const auto &d) { return d.cookie == cookie; });
    }
};

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
            looped.wire->break_link();
            looped.progress();
            const bool all_out = arrive && parts == 5;
            assert_int_equal(looped.status(send_cookie), all_out ? DTRAIN_OK : DTRAIN_ERR_PEER);
            assert_int_equal(looped.status(receive_cookie), DTRAIN_ERR_PEER);
        }
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_wire_gets_a_message_part_by_part),
        cmocka_unit_test(an_endpoint_goes_in_the_middle_of_its_message),
        cmocka_unit_test(a_link_breaks_in_the_middle_of_a_message),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
