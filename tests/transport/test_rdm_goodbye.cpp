// The end of a device (transports/rdm), for itself and for its peer.
// SPDX-License-Identifier: Apache-2.0
#include "crossed_wire.h"
#include "looped_device.h"

#include <optional>

namespace dtrain::test {
namespace {

constexpr uint32_t closing_rounds = 100; // looks for who has gone already, before the goodbye

// How many packets are on their way when the wire closes.
uint32_t close_after(uint32_t late, bool closes_quietly) {
    uint32_t unheard = UINT32_MAX;
    {
        Looped looped;
        looped.receive();
        looped.send();
        for (int i = 0; i < 20; i++) looped.progress();
        assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
        looped.wire->unheard = &unheard;
        looped.wire->attributes().closes_quietly = closes_quietly;
        looped.wire->late = late;
    }
    return unheard;
}

void a_device_waits_for_the_answer_to_its_goodbye(void **) {
    assert_int_equal(close_after(closing_rounds + 50, true), 1); // the wire does not mind
    assert_int_equal(close_after(closing_rounds + 50, false), 0);
}

void it_does_not_wait_for_ever(void **) {
    const int64_t start = now_ns();
    assert_int_equal(close_after(UINT32_MAX, false), 1);
    assert_true(now_ns() - start < 5'000'000'000);
}

// Its endpoint's cookie is 0, its only operation's 1.
struct Side {
    FakeHost host;
    std::optional<rdm::Device> device;
    CrossedWire *wire = nullptr;
    std::vector<dtrain_tp_done_t> done;

    Side() {
        device.emplace(host.table(), "crossed");
        auto made = std::make_unique<CrossedWire>(device->protocol());
        wire = made.get();
        assert_int_equal(device->open(std::move(made), "crossed"), DTRAIN_OK);
    }
    void progress() {
        if (!device) return;
        dtrain_tp_done_t some[16];
        const int32_t n = device->progress(some, 16);
        assert_true(n >= 0);
        done.insert(done.end(), some, some + n);
    }
    const dtrain_tp_done_t *find(uint32_t kind) const {
        const auto it = std::find_if(done.begin(), done.end(),
                                     [&](const auto &one) { return one.kind == kind; });
        return it == done.end() ? nullptr : &*it;
    }
};

// One sends a message that the other fetches, or does not, before it closes.
class Parting {
  public:
    Parting() {
        for (Side *side : {&sender, &other}) {
            CrossedWire *to = (side == &sender ? other : sender).wire;
            side->wire->other = to;
            side->wire->relay = [to](CrossedWire::Packet packet) {
                to->arriving.push_back(std::move(packet));
            };
        }
        uint8_t address[rdm::Device::address_length];
        other.device->address(address);
        assert_int_equal(sender.device->connect(address, sizeof address, 0, &endpoint), DTRAIN_OK);
        const dtrain_tp_iov_t all{sent.data(), sent.size(), nullptr};
        assert_int_equal(sender.device->send(endpoint, tag, &all, 1, 1), DTRAIN_OK);
    }
    ~Parting() { sender.device->disconnect(endpoint); }
    // Until the other one has it.
    void receive() {
        const dtrain_tp_iov_t all{got.data(), got.size(), nullptr};
        assert_int_equal(other.device->recv(tag, ~uint64_t{0}, &all, 1, 1), DTRAIN_OK);
        await([&] { return other.find(DTRAIN_TP_RECV) != nullptr; });
        assert_true(got == sent);
    }
    void close() {
        other.device.reset();
        sender.wire->other = nullptr;
        sender.wire->relay = [](const CrossedWire::Packet &) {};
    }
    template <class Done> void await(const Done &is_done) {
        const int64_t end = now_ns() + 5'000'000'000;
        while (!is_done() && now_ns() < end) {
            sender.progress();
            other.progress();
        }
        assert_true(is_done());
    }

    Side sender, other;
    rdm::Endpoint *endpoint = nullptr;
    std::vector<uint8_t> sent = std::vector<uint8_t>(300'000, 7),
                         got = std::vector<uint8_t>(300'000);
};

// Its report may come after the peer's goodbye.
void what_the_peer_has_got_before_it_closes_is_sent(void **) {
    Parting parting;
    parting.sender.wire->late = 1000;
    parting.receive();
    assert_null(parting.sender.find(DTRAIN_TP_SEND));
    parting.close();
    parting.await([&] { return parting.sender.find(DTRAIN_TP_PEER_LOST) != nullptr; });
    const dtrain_tp_done_t *sent = parting.sender.find(DTRAIN_TP_SEND);
    assert_non_null(sent);
    assert_int_equal(sent->status, DTRAIN_OK);
    assert_true(sent < parting.sender.find(DTRAIN_TP_PEER_LOST));
}

void what_it_has_not_got_fails_soon(void **) {
    Parting parting;
    parting.sender.wire->relay = [to = parting.other.wire](CrossedWire::Packet packet) {
        if (packet.bulk == nullptr) to->arriving.push_back(std::move(packet));
    };
    for (int i = 0; i < 50; i++) {
        parting.sender.progress();
        parting.other.progress();
    }
    const int64_t start = now_ns();
    parting.close();
    parting.await([&] { return parting.sender.find(DTRAIN_TP_SEND) != nullptr; });
    assert_int_equal(parting.sender.find(DTRAIN_TP_SEND)->status, DTRAIN_ERR_PEER);
    assert_true(now_ns() - start < 3'000'000'000);
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {cmocka_unit_test(a_device_waits_for_the_answer_to_its_goodbye),
                                cmocka_unit_test(it_does_not_wait_for_ever),
                                cmocka_unit_test(what_the_peer_has_got_before_it_closes_is_sent),
                                cmocka_unit_test(what_it_has_not_got_fails_soon)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
