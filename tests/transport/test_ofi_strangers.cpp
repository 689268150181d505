// The libfabric transport, over provider "net": what peers may do to it that keep to no rule.
// SPDX-License-Identifier: Apache-2.0
#include "cases_connect.h"
#include "loaded.h"
#include "ofi_stranger.h"
#include "protocol/rendezvous.h"

namespace dtrain::test {
namespace {

using rdm::Head, rdm::Kind;

void serves_its_good_peer(Pair &pair, uint64_t tag) {
    exchange(pair.both(), pair.a, pair.to_b, pair.b, tag);
}

void noise_does_no_harm(void **) {
    const uint64_t seed = choose_seed();
    Pair pair;
    Stranger stranger(pair.b);
    constexpr uint8_t kinds[] = {0, 1,  2,  3,    4,    5,    6,    7,   8,
                                 9, 10, 11, 0x7F, 0x80, 0x81, 0x82, 0xFF};
    for (uint64_t i = 0; i < 300; i++) {
        Bytes noise = pattern(1 + (seed + i * 77) % 1500, seed + i);
        noise[0] = kinds[i % sizeof kinds];
        stranger.say(noise);
    }
    serves_its_good_peer(pair, 1);
}

void altered_and_cut_hellos_do_no_harm(void **) {
    const uint64_t seed = choose_seed();
    Pair pair;
    Stranger stranger(pair.b);
    const Bytes good = stranger.hello(), random = pattern(400, seed);
    for (size_t i = 0; i + 4 <= random.size(); i += 4) {
        Bytes bad = good;
        const size_t at = (random[i] << 8 | random[i + 1]) % bad.size();
        if (i % 8)
            bad.resize(at + 1);
        else
            bad[at] ^= random[i + 2] | 1;
        stranger.say(bad);
    }
    serves_its_good_peer(pair, 1);
}

// A peer that proves nothing for three seconds is forgotten, and a proof comes too late.
void a_stranger_has_three_seconds(void **) {
    Pair pair;
    Stranger stranger(pair.b);
    stranger.say(stranger.hello());
    stranger.hear_reply();
    const int64_t end = now_ns() + 3'200'000'000;
    assert_true(stranger.until([&] { return now_ns() > end; }));
    drive_rounds({&pair.b}, 10);
    stranger.say({.kind = Kind::proof}, Bytes(sizeof(tp::Proof)));
    serves_its_good_peer(pair, 1);
    drive_rounds({&pair.b}, 1000);
    assert_false(stranger.has_come(uint8_t(Kind::verdict)));
}

// What a peer does that was let in, and what its victim says of it.
struct Offence {
    const char *text;
    void (*commit)(Stranger &);
};
constexpr Offence offences[] = {
    {"larger than the window", // says 10 bytes, sends 100
     [](Stranger &s) { s.say({.kind = Kind::eager, .tag = 1, .length = 10}, Bytes(100)); }},
    {"larger than the window", // says 10 bytes, sends none
     [](Stranger &s) { s.say({.kind = Kind::eager, .tag = 1, .length = 10}); }},
    {"larger than the window", // begins one message in the middle of another
     [](Stranger &s) {
         for (int i = 0; i < 2; i++)
             s.say({.kind = Kind::eager, .tag = 1, .length = 100}, Bytes(10));
     }},
    {"a part without a message", [](Stranger &s) { s.say({.kind = Kind::part}, Bytes(10)); }},
    {"a part without a message", // with nothing in it
     [](Stranger &s) {
         s.say({.kind = Kind::eager, .tag = 1, .length = 100}, Bytes(10));
         s.say({.kind = Kind::part});
     }},
    {"more bytes than are missing",
     [](Stranger &s) {
         s.say({.kind = Kind::eager, .tag = 1, .length = 100}, Bytes(10));
         s.say({.kind = Kind::part}, Bytes(91));
     }},
    {"larger than the window", // more than may be kept
     [](Stranger &s) {
         for (int i = 0; i < 3; i++)
             s.say({.kind = Kind::eager, .tag = 1, .length = 100'000}, Bytes(100'000));
     }},
    {"exceeds the limits", [](Stranger &s) { s.announce(1, ~uint64_t{0}); }},
    {"exceeds the limits", // more than may be announced
     [](Stranger &s) {
         for (uint32_t i = 0; i <= protocol::announce_limit; i++) s.announce(1, 1 << 20, i);
     }},
    {"more credit", [](Stranger &s) { s.say({.kind = Kind::credit, .credit = 1000}); }},
    {"unknown kind", [](Stranger &s) { s.say({.kind = Kind(77)}); }},
    {"unknown kind", [](Stranger &s) { s.say({.kind = Kind::hello}); }}, // when it is too late
    {"lost or out of order",
     [](Stranger &s) {
         s.sequence++;
         s.say({.kind = Kind::ping});
     }},
};

void an_offence_ends_its_connection_only(void **) {
    Pair pair;
    uint64_t tag = 0;
    for (const Offence &offence : offences) {
        Stranger stranger(pair.b);
        stranger.connect();
        pair.b.host.table()->log(pair.b.host.table()->self, 0, ""); // of the one before
        offence.commit(stranger);
        const auto told = [&] {
            const std::string text = pair.b.host.text();
            return text.find("protocol error") != text.npos && text.find(offence.text) != text.npos;
        };
        if (!stranger.until(told)) fail_msg("not told: %s", offence.text);
        serves_its_good_peer(pair, ++tag);
    }
    ops().purge(pair.b.dev, 0, 0);
    assert_int_equal(pair.b.count(DTRAIN_TP_PEER_LOST), 0);
}

// A message in three parts, of which something happens to the middle.
struct InParts {
    static constexpr uint64_t tag = 5;
    const Bytes all = pattern(300, tag);

    void begin(Stranger &stranger) const {
        stranger.say({.kind = Kind::eager, .tag = tag, .length = all.size()}, slice(0));
        stranger.say({.kind = Kind::part}, slice(100));
        // What it says next is heard, too.
        const Node &victim = stranger.victim();
        const size_t before = victim.count(DTRAIN_TP_PUT_ARRIVED);
        stranger.say({.kind = Kind::arrived, .tag = 1});
        assert_true(stranger.until([&] { return victim.count(DTRAIN_TP_PUT_ARRIVED) > before; }));
    }
    void end(Stranger &stranger) const { stranger.say({.kind = Kind::part}, slice(200)); }

  private:
    Bytes slice(size_t at) const { return Bytes(all.begin() + at, all.begin() + at + 100); }
};

void a_message_in_parts_is_received_before_in_the_middle_and_after(void **) {
    Pair pair;
    Stranger stranger(pair.b);
    stranger.connect();
    const InParts message;
    for (int when = 0; when < 9; when++) {
        Bytes got(when % 2 ? 300 : 150); // all of it, or its beginning
        const auto receive = [&](int now) {
            if (when % 3 == now) pair.b.recv(message.tag, got, 1);
        };
        receive(0);
        message.begin(stranger);
        receive(1);
        message.end(stranger);
        if (when % 3 == 2) drive_rounds(pair.both(), 100);
        receive(2);
        dtrain_tp_done_t done{};
        assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_RECV, 1, &done); }));
        assert_int_equal(done.status, when % 2 ? DTRAIN_OK : DTRAIN_ERR_TRUNCATED);
        assert_int_equal(done.bytes, message.all.size());
        assert_int_equal(done.tag, message.tag);
        assert_true(std::equal(got.begin(), got.end(), message.all.begin()));
    }
}

// It takes no more of the window than it had: many follow.
void a_message_in_parts_is_forgotten_in_the_middle(void **) {
    Pair pair;
    Stranger stranger(pair.b);
    stranger.connect();
    const InParts message;
    for (uint64_t i = 0; i < 1000; i++) {
        message.begin(stranger);
        ops().purge(pair.b.dev, message.tag, exact);
        message.end(stranger);
    }
    serves_its_good_peer(pair, message.tag); // it is not taken for that message
}

void who_goes_in_the_middle_of_a_message_fails_its_receive(void **) {
    for (const bool expected : {true, false}) {
        Pair pair;
        Stranger stranger(pair.b);
        stranger.connect();
        const InParts message;
        Bytes got(300);
        if (expected) pair.b.recv(message.tag, got, 1);
        message.begin(stranger);
        stranger.say({.kind = Kind::bye});
        assert_true(stranger.until(
            [&] { return pair.b.host.text().find("closed by the peer") != std::string::npos; }));
        dtrain_tp_done_t done{};
        if (expected) {
            assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_RECV, 1, &done); }));
            assert_int_equal(done.status, DTRAIN_ERR_PEER);
        }
        serves_its_good_peer(pair, message.tag);
    }
}

// Answers to questions that were not asked.
void what_belongs_to_nothing_is_ignored(void **) {
    Pair pair;
    Stranger stranger(pair.b);
    stranger.connect();
    for (uint32_t id = 0; id < 100; id++) {
        stranger.say({.kind = Kind::withdraw, .id = id, .length = id % 2});
        ofi::Grant grant;
        grant.bulk = {id, 0, 42};
        stranger.say(Stranger::bytes_of(grant, grant.length()));
        const ofi::Failed failed{.transfer = id};
        stranger.say(Stranger::bytes_of(failed));
    }
    Bytes got(1);
    pair.b.recv(5, got, 1);
    stranger.say({.kind = Kind::eager, .tag = 5, .length = 1}, {9}); // it is still a peer
    assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_RECV, 1); }));
    serves_its_good_peer(pair, 1);
}

// A receive's memory with guards around it, and the grant that a stranger got for it.
struct Granted {
    static constexpr size_t len = 1 << 20, guard = 4096;
    Bytes all = Bytes(guard + len + guard, 0x11);
    ofi::Grant grant;

    Granted(Node &node, Stranger &stranger, uint64_t cookie) {
        node.recv(cookie, exact, all.data() + guard, len, cookie);
        stranger.announce(cookie, len, uint32_t(cookie));
        const Bytes packet = stranger.next(uint8_t(ofi::PacketKind::grant));
        assert_true(packet.size() <= sizeof grant);
        memcpy(static_cast<void *>(&grant), packet.data(), packet.size());
        assert_int_equal(grant.count, 1);
        assert_int_equal(grant.targets[0].length, len);
    }
    bool guards_hold() const {
        const auto whole = [](uint8_t byte) { return byte == 0x11; };
        return std::all_of(all.begin(), all.begin() + guard, whole) &&
               std::all_of(all.end() - guard, all.end(), whole);
    }
};

void an_unknown_immediate_completes_nothing(void **) {
    Pair pair;
    Stranger stranger(pair.b);
    stranger.connect();
    Granted memory(pair.b, stranger, 1);
    const ofi::Target &target = memory.grant.targets[0];
    for (const uint32_t other : {1u, 77u, ~0u})
        assert_true(stranger.write(target, 0, 64, memory.grant.transfer ^ other));
    stranger.until([&] { return pair.b.host.text().find("immediate") != std::string::npos; });
    assert_non_null(
        strstr(pair.b.host.text().c_str(), "an immediate that belongs to no operation"));
    assert_int_equal(pair.b.count(DTRAIN_TP_RECV), 0);
    assert_true(stranger.write(target, 0, Granted::len, memory.grant.transfer));
    assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_RECV, 1); }));
    assert_true(memory.guards_hold());
    serves_its_good_peer(pair, 2);
}

void nothing_is_written_outside_what_was_granted(void **) {
    Pair pair;
    for (const int64_t offset : {int64_t(Granted::len), int64_t(Granted::len) - 32, int64_t(-64)}) {
        Stranger stranger(pair.b);
        stranger.connect();
        Granted memory(pair.b, stranger, 1);
        stranger.write(memory.grant.targets[0], uint64_t(offset), 64, memory.grant.transfer);
        drive_rounds(pair.both(), 1000);
        assert_true(memory.guards_hold());
        stranger.say({.kind = Kind(77)}); // if libfabric has not hung up
        assert_true(stranger.until([&] { return pair.b.count(DTRAIN_TP_RECV) > 0; }));
        pair.b.done.clear();
        serves_its_good_peer(pair, 2);
    }
}

// A place for a message of ours that it cannot have.
void forged_grants_break_the_connection(void **) {
    Pair pair;
    for (int kind = 0; kind < 3; kind++) {
        Stranger stranger(pair.b);
        stranger.connect();
        const Bytes large = pattern(1 << 20, 1);
        dtrain_tp_ep_t *ep = pair.b.start_connect(Stranger::bytes_of(stranger.own), 5);
        await_ok(pair.both(), pair.b, DTRAIN_TP_CONNECT, 5);
        pair.b.send(ep, 1, large, 6);
        ofi::Announce announce;
        const Bytes packet = stranger.next(uint8_t(ofi::PacketKind::announce));
        memcpy(static_cast<void *>(&announce), packet.data(), sizeof announce);
        ofi::Grant grant;
        grant.bulk = announce.bulk;
        grant.bulk.token ^= 1;
        stranger.say(Stranger::bytes_of(grant, grant.length())); // somebody else's: ignored
        grant.bulk.token ^= 1;
        grant.count = kind == 0 ? 255 : 2;
        grant.targets[0].length = large.size();
        grant.targets[1].length = kind == 1 ? 1 : ~uint64_t{0};
        stranger.say(Stranger::bytes_of(grant, kind == 0 ? sizeof grant : grant.length()));
        dtrain_tp_done_t done{};
        assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_PEER_LOST, 5); }));
        assert_true(stranger.until([&] { return pair.b.take(DTRAIN_TP_SEND, 6, &done); }));
        assert_int_equal(done.status, DTRAIN_ERR_PEER);
        pair.b.disconnect(ep);
        serves_its_good_peer(pair, 2);
    }
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "net";
    const CMUnitTest cases[] = {
        cmocka_unit_test(noise_does_no_harm),
        cmocka_unit_test(altered_and_cut_hellos_do_no_harm),
        cmocka_unit_test(a_stranger_has_three_seconds),
        cmocka_unit_test(an_offence_ends_its_connection_only),
        cmocka_unit_test(a_message_in_parts_is_received_before_in_the_middle_and_after),
        cmocka_unit_test(a_message_in_parts_is_forgotten_in_the_middle),
        cmocka_unit_test(who_goes_in_the_middle_of_a_message_fails_its_receive),
        cmocka_unit_test(what_belongs_to_nothing_is_ignored),
        cmocka_unit_test(an_unknown_immediate_completes_nothing),
        cmocka_unit_test(nothing_is_written_outside_what_was_granted),
        cmocka_unit_test(forged_grants_break_the_connection),
    };
    return cmocka_run_group_tests(cases, nullptr, nullptr);
}
