// A device over a looped wire.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "fake_host.h"
#include "looped_wire.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

namespace dtrain::test {

inline constexpr uint64_t tag = 7, send_cookie = 1, receive_cookie = 2, connect_cookie = 3;

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

} // namespace dtrain::test
