// What tcp and rdm share (transports/protocol), below a device whose peers are the test.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "fake_host.h"
#include "protocol/device.h"
#include "protocol/rendezvous.h"

#include <array>
#include <vector>

namespace dtrain::test {
namespace {

using tp::DeviceId;

class ToyDevice;
struct ToyShared : protocol::Shared {
    using protocol::Shared::Shared;
    int dropped = 0; // announced or incomplete messages of lost connections
};

struct ToyConnection;
struct ToyHandshake {
    ToyConnection *connection;
};

struct ToyConnection : protocol::ConnectionBase<ToyDevice, ToyConnection> {
    ToyConnection(ToyShared *of, const DeviceId &peer) : ConnectionBase(peer), shared(*of) {}
    bool up() const { return is_up; }
    const char *reason() const { return "the test says so"; }
    void abandon() {
        shared.receives.lose(this, [this](const tp::Message &) { shared.dropped++; });
        is_up = false;
    }
    void withdraw(const Endpoint *) {}
    void withdraw(uint64_t) {}
    void taken(tp::Message *message, tp::Receive *receive) { deliver(shared, message, receive); }
    static void deliver(ToyShared &shared, tp::Message *message, tp::Receive *receive) {
        if (receive) {
            receive->into.scatter(message->data, message->length);
            shared.receives.complete(receive, message->tag, message->length);
        }
        shared.receives.release(message);
    }

    ToyShared &shared;
    bool is_up = false;
    ToyHandshake *handshake = nullptr;
};

class ToyDevice final
    : public protocol::DeviceBase<ToyDevice, ToyConnection, ToyShared, std::nullptr_t> {
  public:
    explicit ToyDevice(const dtrain_tp_host_t *host) : DeviceBase(host, "toy") {}
    ~ToyDevice() { abandon_all(); }

    Endpoint *connect(const DeviceId &peer, uint64_t cookie) {
        bool fresh;
        connections_.expect(peer);
        Endpoint *ep = attach(peer, cookie, &fresh);
        if (fresh) ep->connection->handshake = new ToyHandshake{ep->connection};
        attempts += fresh;
        return ep;
    }
    void forget(ToyHandshake *handshake) {
        handshake->connection->handshake = nullptr;
        delete handshake;
        attempts--;
    }
    void changed() {}
    tp::Verdict admit(const DeviceId &) override { return tp::Verdict::accepted; }
    void joined(ToyConnection *connection, const DeviceId &peer, std::nullptr_t) override {
        connection = accept(connection, peer);
        connection->is_up = true;
        connections_.report_up(connection);
    }
    using DeviceBase::discard;
    using DeviceBase::failed;
    using DeviceBase::lose;
    ToyConnection *find(const DeviceId &peer) { return connections_.find(peer); }
    uint32_t count() const { return connections_.count(); }
    ToyShared &shared() { return shared_; }
    // The reports so far, as kinds and statuses of this cookie.
    std::vector<std::pair<uint32_t, dtrain_status_t>> reports(uint64_t cookie) {
        dtrain_tp_done_t some[16];
        for (int32_t n; (n = shared_.completions.pop(some, 16)) > 0;)
            done_.insert(done_.end(), some, some + n);
        std::vector<std::pair<uint32_t, dtrain_status_t>> found;
        for (const dtrain_tp_done_t &d : done_)
            if (d.cookie == cookie) found.emplace_back(d.kind, d.status);
        return found;
    }

    int attempts = 0; // to connect

  private:
    std::vector<dtrain_tp_done_t> done_;
};

using Reports = std::vector<std::pair<uint32_t, dtrain_status_t>>;

DeviceId peer(uint8_t number) {
    DeviceId id{};
    id[0] = number;
    return id;
}

void endpoints_report_their_connection_and_its_loss(void **) {
    FakeHost host;
    ToyDevice device(host.table());
    auto *first = device.connect(peer(1), 1), *second = device.connect(peer(1), 2);
    assert_ptr_equal(first->connection, second->connection);
    assert_true(device.reports(1).empty());
    device.joined(first->connection, peer(1), nullptr);
    assert_int_equal(device.attempts, 0);
    auto *third = device.connect(peer(1), 3); // it is up
    device.disconnect(second);
    device.lose(first->connection, DTRAIN_ERR_PEER);
    assert_int_equal(device.count(), 0);
    const Reports both = {{DTRAIN_TP_CONNECT, DTRAIN_OK}, {DTRAIN_TP_PEER_LOST, DTRAIN_ERR_PEER}};
    assert_true(device.reports(1) == both && device.reports(3) == both);
    assert_true(device.reports(2) == Reports{both[0]});
    assert_null(first->connection);
    device.disconnect(first);
    device.disconnect(third);
    assert_true(device.reports(1) == both);
}

void an_attempt_fails_or_is_given_up(void **) {
    FakeHost host;
    ToyDevice device(host.table());
    auto *first = device.connect(peer(1), 1), *second = device.connect(peer(2), 2),
         *third = device.connect(peer(3), 3);
    device.failed(first->connection, DTRAIN_ERR_AUTH, "another secret");
    assert_string_equal(host.text().c_str(), "toy: cannot connect: another secret");
    device.disconnect(first);
    device.disconnect(second);
    device.discard(third);
    assert_int_equal(device.count(), 0);
    assert_int_equal(device.attempts, 0);
    assert_true(device.reports(1) == Reports{std::pair(DTRAIN_TP_CONNECT, DTRAIN_ERR_AUTH)});
    assert_true(device.reports(2) == Reports{std::pair(DTRAIN_TP_CONNECT, DTRAIN_ERR_CANCELED)});
    assert_true(device.reports(3).empty());
}

// Of more devices than there may be guests the oldest goes, but none that the core asked about.
void guests_are_bounded(void **) {
    FakeHost host;
    ToyDevice device(host.table());
    auto *ep = device.connect(peer(255), 1);
    device.joined(nullptr, peer(254), nullptr);
    device.joined(ep->connection, peer(255), nullptr);
    for (int i = 0; i < 256; i++) {
        DeviceId guest = peer(1);
        guest[1] = uint8_t(i);
        device.joined(nullptr, guest, nullptr);
    }
    assert_null(device.find(peer(254)));
    assert_int_equal(device.count(), 257);
    assert_non_null(ep->connection);
    device.disconnect(ep);
}

void complete_messages_outlive_their_connection(void **) {
    FakeHost host;
    ToyDevice device(host.table());
    device.joined(nullptr, peer(1), nullptr);
    ToyConnection *connection = device.find(peer(1));
    protocol::Receives &receives = device.shared().receives;
    tp::Message *whole = receives.keep(1, 4, connection), *part = receives.keep(2, 4, connection);
    memcpy(whole->data, "data", 4);
    whole->arrived = 4;
    part->arrived = 3;
    assert_non_null(receives.announce(3, 4, 7, connection));
    assert_null(receives.take_announced(connection, 8));
    device.lose(connection, DTRAIN_ERR_PEER);
    assert_int_equal(device.shared().dropped, 2);

    char got[4] = "";
    const dtrain_tp_iov_t all{got, sizeof got, nullptr};
    for (uint64_t tag : {1, 2, 3})
        assert_int_equal(device.recv(tag, ~uint64_t{0}, &all, 1, tag), DTRAIN_OK);
    assert_true(device.reports(1) == Reports{std::pair(DTRAIN_TP_RECV, DTRAIN_OK)});
    assert_memory_equal(got, "data", 4);
    assert_true(device.reports(2).empty() && device.reports(3).empty());
    for (uint64_t tag : {1, 2, 3}) device.withdraw(tag);
    assert_int_equal(device.reports(1).size(), 1);
    assert_true(device.reports(2) == Reports{std::pair(DTRAIN_TP_RECV, DTRAIN_ERR_CANCELED)});
}

void announcements_are_bounded(void **) {
    struct Announced {
        uint32_t id = 0;
    };
    tp::Completions completions;
    protocol::Receives receives(&completions);
    protocol::Rendezvous<Announced> rendezvous;
    std::vector<Announced> sends(protocol::announce_limit + 1);
    for (Announced &send : sends)
        assert_int_equal(rendezvous.announce(&send), &send != &sends.back());
    assert_ptr_equal(rendezvous.find(sends[5].id), &sends[5]);
    rendezvous.end(&sends[5]);
    assert_null(rendezvous.find(sends[5].id));
    assert_true(rendezvous.announce(&sends.back()));

    for (uint32_t i = 0; i < protocol::announce_limit; i++) {
        assert_true(rendezvous.may_announce());
        assert_non_null(rendezvous.keep(receives, 1, 1 << 20, i, &rendezvous));
    }
    assert_false(rendezvous.may_announce());
    rendezvous.taken();
    assert_true(rendezvous.may_announce());
}

void refusals_are_logged_once_a_minute(void **) {
    FakeHost host;
    const tp::Host services(host.table());
    protocol::Refusals refusals(services, "toy");
    refusals.ended(DTRAIN_ERR_PEER, "it went away");
    assert_string_equal(host.text().c_str(), "toy: an incoming connection ended: it went away");
    const std::string first = "toy: refused 1 incoming connection(s), the last one: no proof";
    refusals.ended(DTRAIN_ERR_AUTH, "no proof");
    assert_string_equal(host.text().c_str(), first.c_str());
    refusals.refused("another one");
    assert_string_equal(host.text().c_str(), first.c_str());
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_report_their_connection_and_its_loss),
        cmocka_unit_test(an_attempt_fails_or_is_given_up),
        cmocka_unit_test(guests_are_bounded),
        cmocka_unit_test(complete_messages_outlive_their_connection),
        cmocka_unit_test(announcements_are_bounded),
        cmocka_unit_test(refusals_are_logged_once_a_minute),
    };
    return cmocka_run_group_tests_name("protocol", tests, nullptr, nullptr);
}
