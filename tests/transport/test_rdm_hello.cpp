// Hellos over a wire of transports/rdm that their receiver drops, gets more than once, or forgets,
// since too many strangers introduce themselves. The clock is the test's.
// SPDX-License-Identifier: Apache-2.0
#include "crossed_wire.h"
#include "rig.h"

namespace dtrain::test {
namespace {

using Packet = CrossedWire::Packet;

constexpr int64_t second_ns = 1'000'000'000;
constexpr int strangers = 2 * protocol::max_strangers;
constexpr int rounds = 20; // enough for a handshake

struct Side {
    FakeHost host;
    rdm::Device device{host.table(), "crossed"};
    CrossedWire *wire = nullptr;
    rdm::Endpoint *endpoint = nullptr;
    std::vector<Packet> sent; // kept by the relay until the test passes them on

    explicit Side(const char *secret) {
        host.secret = secret;
        auto made = std::make_unique<CrossedWire>(device.protocol());
        wire = made.get();
        wire->relay = [this](Packet packet) { sent.push_back(std::move(packet)); };
        assert_int_equal(device.open(std::move(made), "crossed"), DTRAIN_OK);
    }
    ~Side() {
        wire->part();
        if (endpoint) device.disconnect(endpoint);
    }
    rdm::Address address() {
        rdm::Address out;
        device.address(reinterpret_cast<uint8_t *>(&out));
        return out;
    }
    dtrain_status_t progress() { // of the connection; IN_PROGRESS: it is not up yet
        dtrain_tp_done_t done[16];
        for (int i = 0; i < rounds; i++)
            for (int32_t n = device.progress(done, 16); n > 0; n--)
                if (done[n - 1].kind == DTRAIN_TP_CONNECT) status = done[n - 1].status;
        return status;
    }
    dtrain_status_t status = DTRAIN_IN_PROGRESS;
};

class Two {
  public:
    explicit Two(const char *secret) : a(secret), b(secret) {
        const rdm::Address to = b.address();
        assert_int_equal(a.device.connect(&to, sizeof to, 1, &a.endpoint), DTRAIN_OK);
        a.progress();
        assert_int_equal(a.sent.size(), 1); // the hello
    }
    static void pass(Side &from, Side &to) {
        for (Packet &packet : std::exchange(from.sent, {})) to.wire->arriving.push_back(packet);
        to.progress();
    }
    // Everything that both send, until they are silent.
    dtrain_status_t pass_all() {
        while (!a.sent.empty() || !b.sent.empty()) pass(a, b), pass(b, a);
        return a.status;
    }
    // Then the timers of devices go off, which are real: 50 ms while there are handshakes.
    void wait(int64_t ns) {
        for (Side *side : {&a, &b}) {
            side->host.ahead_ns += ns;
            const timespec timer{0, 60'000'000};
            nanosleep(&timer, nullptr);
            (void)side->device.arm();
            side->progress();
        }
    }
    // Devices that know the secret, but do not exist.
    void flood() {
        for (int i = 0; i < strangers; i++) {
            rdm::Address address = b.address();
            const rdm::DeviceId to = address.id;
            address.id.fill(uint8_t(i + 1));
            address.seal(tp::Host(b.host.table()));
            rdm::Introduction introduction;
            introduction.hello = tp::Hello::make(tp::Host(b.host.table()), address.id, to);
            introduction.token = uint64_t(i + 1);
            Packet packet{std::vector<uint8_t>(rdm::Head::wire_length)};
            rdm::Head{.kind = rdm::Kind::hello}.encode(packet.bytes.data());
            for (const auto &[part, length] :
                 {std::pair<const void *, size_t>{&introduction, sizeof introduction},
                  std::pair<const void *, size_t>{&address, sizeof address}}) {
                const auto *from = static_cast<const uint8_t *>(part);
                packet.bytes.insert(packet.bytes.end(), from, from + length);
            }
            b.wire->arriving.push_back(packet);
        }
    }
    Side a, b;
};

void a_hello_that_was_dropped_is_said_again(const char *secret) {
    Two two(secret);
    two.a.sent.clear();
    two.wait(second_ns / 2);
    assert_true(two.a.sent.empty());
    two.wait(second_ns / 2);
    assert_int_equal(two.pass_all(), DTRAIN_OK);
}
void a_hello_that_was_dropped_is_said_again_without_a_secret(void **) {
    a_hello_that_was_dropped_is_said_again("");
}
void a_hello_that_was_dropped_is_said_again_with_a_secret(void **) {
    a_hello_that_was_dropped_is_said_again("secret");
}

void a_hello_is_said_ever_more_rarely(void **) {
    Two two("secret");
    size_t said[9] = {}; // after so many seconds
    for (size_t i = 0; i < std::size(said); i++) {
        said[i] = two.a.sent.size();
        two.wait(second_ns);
    }
    const size_t expected[] = {1, 2, 2, 3, 3, 3, 3, 4};
    for (size_t i = 0; i < std::size(expected); i++) assert_int_equal(said[i], expected[i]);
    assert_int_equal(two.a.status, DTRAIN_ERR_PEER);
}

// The peer did not run meanwhile.
void hellos_that_come_late_cost_what_one_does(void **) {
    Two two("secret");
    for (int i = 0; i < 4; i++) two.wait(second_ns);
    assert_int_equal(two.a.sent.size(), 3);
    Two::pass(two.a, two.b);
    assert_int_equal(two.b.wire->links(), 1);
    assert_int_equal(two.b.sent.size(), 1); // one reply
    assert_int_equal(two.pass_all(), DTRAIN_OK);
    const uint64_t out = 7;
    uint64_t in = 0;
    const dtrain_tp_iov_t from{const_cast<uint64_t *>(&out), sizeof out, nullptr},
        into{&in, sizeof in, nullptr};
    two.b.device.recv(5, ~uint64_t{0}, &into, 1, 2);
    assert_int_equal(two.a.device.send(two.a.endpoint, 5, &from, 1, 3), DTRAIN_OK);
    two.a.progress();
    two.pass_all();
    assert_true(in == out);
}

void one_that_strangers_displaced_is_said_again(void **) {
    Two two("secret");
    for (Packet &packet : std::exchange(two.a.sent, {})) two.b.wire->arriving.push_back(packet);
    two.flood();
    two.b.progress();
    two.b.sent.clear(); // to the strangers
    two.wait(second_ns);
    assert_int_equal(two.pass_all(), DTRAIN_OK);
}

void one_that_strangers_displaced_after_its_reply_hears_of_it(void **) {
    Two two("secret");
    Two::pass(two.a, two.b);
    Packet reply = two.b.sent.front();
    two.b.sent.clear();
    two.flood();
    two.b.progress();
    two.a.wire->arriving.push_back(std::move(reply));
    for (const Packet &packet : two.b.sent) two.a.wire->arriving.push_back(packet); // for anybody
    assert_int_equal(two.a.progress(), DTRAIN_ERR_PEER);
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_that_was_dropped_is_said_again_without_a_secret),
        cmocka_unit_test(a_hello_that_was_dropped_is_said_again_with_a_secret),
        cmocka_unit_test(a_hello_is_said_ever_more_rarely),
        cmocka_unit_test(hellos_that_come_late_cost_what_one_does),
        cmocka_unit_test(one_that_strangers_displaced_is_said_again),
        cmocka_unit_test(one_that_strangers_displaced_after_its_reply_hears_of_it)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
