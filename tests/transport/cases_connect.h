// Cases: connecting, disconnecting, secrets.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

// Sends a few bytes and checks that they arrive.
inline void exchange(const Nodes &nodes, Node &from, dtrain_tp_ep_t *ep, Node &to, uint64_t tag) {
    const Bytes sent = pattern(100, tag);
    Bytes got(100);
    to.recv(tag, got, 1000 + tag);
    from.send(ep, tag, sent, 2000 + tag);
    await_ok(nodes, to, DTRAIN_TP_RECV, 1000 + tag);
    await_ok(nodes, from, DTRAIN_TP_SEND, 2000 + tag);
    assert_true(sent == got);
}

inline void connecting_completes_once(void **) {
    Pair pair;
    drive_rounds(pair.both(), 200);
    assert_int_equal(pair.a.count(DTRAIN_TP_CONNECT), 0); // the first one was taken
    assert_int_equal(pair.b.count(DTRAIN_TP_CONNECT), 0); // who is connected to hears nothing
    exchange(pair.both(), pair.a, pair.to_b, pair.b, 5);
}

inline void both_sides_connect_in_turn(void **) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    exchange(pair.both(), pair.a, pair.to_b, pair.b, 1);
    exchange(pair.both(), pair.b, to_a, pair.a, 2);
}

inline void both_sides_connect_at_once(void **) {
    for (int round = 0; round < 20; round++) {
        Node a, b;
        dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
        dtrain_tp_ep_t *to_a = b.start_connect(a.address(), 2);
        await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
        await_ok({&a, &b}, b, DTRAIN_TP_CONNECT, 2);
        exchange({&a, &b}, a, to_b, b, 1);
        exchange({&a, &b}, b, to_a, a, 2);
        drive_rounds({&a, &b}, 200);
        assert_int_equal(a.done.size() + b.done.size(), 0);
    }
}

// As if it had taken too long: the other side did not run for a while. Whatever that one has said
// and heard so far, it loses no peer, and connects.
inline void an_attempt_that_is_given_up_harms_nobody(void **) {
    constexpr uint32_t longest = 10;          // steps until it is given up
    constexpr int64_t patience = 300'000'000; // until the other side's attempt is given up, too
    for (uint32_t order = 0; order < 1u << longest; order += 13) {
        Node a, b;
        a.expect(b);
        b.expect(a);
        dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
        dtrain_tp_ep_t *to_a = b.start_connect(a.address(), 2);
        for (uint32_t step = 0; step < order % (longest + 1); step++)
            (order >> step & 1 ? a : b).progress();
        a.disconnect(to_b);
        uint64_t attempt = 2;
        int64_t begin = now_ns();
        const auto is_connected = [&] {
            dtrain_tp_done_t done;
            const bool over = b.take(DTRAIN_TP_CONNECT, attempt, &done);
            if (over && done.status == DTRAIN_OK) return true;
            if (!over && now_ns() - begin < patience) return false;
            b.disconnect(to_a); // and tried again, as the core does
            to_a = b.start_connect(a.address(), ++attempt);
            begin = now_ns();
            return false;
        };
        assert_true(drive({&a, &b}, is_connected));
        drive_rounds({&a, &b}, 100);
        assert_int_equal(b.count(DTRAIN_TP_PEER_LOST), 0);
        exchange({&a, &b}, b, to_a, a, 1);
        to_b = a.start_connect(b.address(), 3);
        await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 3);
        exchange({&a, &b}, a, to_b, b, 2);
        assert_int_equal(a.count(DTRAIN_TP_PEER_LOST) + b.count(DTRAIN_TP_PEER_LOST), 0);
    }
}

inline void both_sides_connect_with_messages_under_way(void **) {
    for (int head_start = 0; head_start < 20; head_start++) {
        Node a, b;
        Bytes at_a(64), at_b(64);
        a.recv(1, at_a, 10);
        b.recv(1, at_b, 10);
        dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
        a.send(to_b, 1, pattern(64, 1), 11);
        drive_rounds({&a, &b}, head_start);
        dtrain_tp_ep_t *to_a = b.start_connect(a.address(), 2);
        const Bytes sent = pattern(64, 2);
        b.send(to_a, 1, sent, 11);
        await_ok({&a, &b}, a, DTRAIN_TP_RECV, 10);
        await_ok({&a, &b}, b, DTRAIN_TP_RECV, 10);
        assert_true(at_b == pattern(64, 1) && at_a == sent);
    }
}

inline void a_device_connects_to_itself(void **) {
    Node a;
    dtrain_tp_ep_t *self = a.start_connect(a.address(), 1);
    await_ok({&a}, a, DTRAIN_TP_CONNECT, 1);
    for (const size_t len : {0, 1, 1000, 300'000, 3'000'000}) {
        const Bytes sent = pattern(len, len);
        Bytes got(len);
        a.send(self, len, sent, 2); // before the receive ...
        a.recv(len, got, 3);
        await_ok({&a}, a, DTRAIN_TP_SEND, 2);
        await_ok({&a}, a, DTRAIN_TP_RECV, 3);
        assert_true(sent == got);
        a.recv(len, got, 3); // ... and after
        a.send(self, len, sent, 2);
        await_ok({&a}, a, DTRAIN_TP_SEND, 2);
        await_ok({&a}, a, DTRAIN_TP_RECV, 3);
    }
}

inline void two_endpoints_lead_to_one_peer(void **) {
    Pair pair;
    dtrain_tp_ep_t *second = pair.a.start_connect(pair.b.address(), 5);
    await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 5);
    exchange(pair.both(), pair.a, pair.to_b, pair.b, 1);
    exchange(pair.both(), pair.a, second, pair.b, 2);
    pair.a.disconnect(second);
    exchange(pair.both(), pair.a, pair.to_b, pair.b, 3);
}

inline void sends_before_the_connection_go_out_in_order(void **) {
    Node a, b;
    dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
    std::vector<Bytes> sent;
    for (uint64_t i = 0; i < 20; i++) {
        sent.push_back(pattern(i * 37, i));
        a.send(to_b, 4, sent.back(), 100 + i);
    }
    for (uint64_t i = 0; i < 20; i++) {
        Bytes got(i * 37);
        b.recv(4, got, 1);
        assert_int_equal(await({&a, &b}, b, DTRAIN_TP_RECV, 1).bytes, i * 37);
        assert_true(got == sent[i]);
        await_ok({&a, &b}, a, DTRAIN_TP_SEND, 100 + i);
    }
}

inline void disconnecting_before_the_connection_completes_everything(void **) {
    for (int rounds = 0; rounds < 12; rounds++) {
        Node a, b;
        dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
        const Bytes data = pattern(1000, 1);
        a.send(to_b, 1, data, 2);
        drive_rounds({&a, &b}, rounds);
        a.disconnect(to_b);
        drive_rounds({&a, &b}, 200);
        assert_int_equal(a.count(DTRAIN_TP_CONNECT), 1);
        assert_int_equal(a.count(DTRAIN_TP_SEND), 1);
        assert_int_equal(a.count(DTRAIN_TP_PEER_LOST), 0);
        dtrain_tp_ep_t *again = a.start_connect(b.address(), 3);
        await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 3);
        exchange({&a, &b}, a, again, b, 77);
    }
}

inline void reconnecting_works(void **) {
    Pair pair;
    for (uint64_t i = 0; i < 20; i++) {
        exchange(pair.both(), pair.a, pair.to_b, pair.b, i);
        pair.a.disconnect(pair.to_b);
        drive_rounds(pair.both(), int(i) * 3);
        pair.to_b = pair.a.start_connect(pair.b.address(), 50 + i);
        await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 50 + i);
    }
}

inline void a_completed_send_survives_disconnect_and_close(void **) {
    for (const size_t wanted : {1, 5000, 60'000}) {
        Pair pair;
        const size_t len = std::min<size_t>(wanted, pair.a.attr.eager_limit);
        const Bytes sent = pattern(len, 3);
        Bytes got(len);
        // Something unread on the sender's side must not hurt what it sent.
        dtrain_tp_ep_t *to_a = pair.connect_back();
        pair.b.send(to_a, 99, pattern(500, 1), 1);
        await_ok(pair.both(), pair.b, DTRAIN_TP_SEND, 1);
        pair.a.send(pair.to_b, 1, sent, 2);
        await_ok({&pair.a}, pair.a, DTRAIN_TP_SEND, 2);
        pair.a.disconnect(pair.to_b);
        pair.a.close();
        pair.b.recv(1, got, 3);
        await_ok({&pair.b}, pair.b, DTRAIN_TP_RECV, 3);
        assert_true(sent == got);
    }
}

inline void connecting_to_a_closed_device_fails(void **) {
    Node a;
    Bytes gone;
    {
        Node b;
        gone = b.address();
    }
    dtrain_tp_ep_t *ep = nullptr; // at once or later, never a hang
    if (ops().connect(a.dev, gone.data(), gone.size(), 1, &ep) != DTRAIN_OK) return;
    a.endpoints.push_back(ep);
    const Bytes data(10);
    const dtrain_status_t posted = a.try_send(ep, 1, data.data(), data.size(), 2);
    assert_int_equal(await({&a}, a, DTRAIN_TP_CONNECT, 1).status, DTRAIN_ERR_PEER);
    if (posted == DTRAIN_OK)
        assert_int_equal(await({&a}, a, DTRAIN_TP_SEND, 2).status, DTRAIN_ERR_PEER);
    drive_rounds({&a}, 50);
    assert_int_equal(a.count(DTRAIN_TP_PEER_LOST), 0); // it was never there
}

inline void many_devices_talk_all_to_all(void **) {
    constexpr uint64_t n = 8;
    std::vector<std::unique_ptr<Node>> nodes;
    Nodes all;
    for (uint64_t i = 0; i < n; i++) {
        nodes.push_back(std::make_unique<Node>());
        all.push_back(nodes.back().get());
    }
    std::vector<Bytes> sent(n * n), got(n * n, Bytes(5000));
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++) {
            nodes[j]->recv(i, got[i * n + j], i);
            sent[i * n + j] = pattern(5000, i * n + j);
            nodes[i]->send(nodes[i]->start_connect(nodes[j]->address(), 100 + j), i,
                           sent[i * n + j], j);
        }
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++) {
            await_ok(all, *nodes[i], DTRAIN_TP_CONNECT, 100 + j);
            await_ok(all, *nodes[j], DTRAIN_TP_RECV, i);
            assert_true(sent[i * n + j] == got[i * n + j]);
        }
}

// The status with which a device with one secret connects to one with the other.
inline dtrain_status_t connect_with_secrets(const char *from, const char *to) {
    if (!subject.authenticates) {
        print_message("this transport has no handshake of its own\n");
        skip();
    }
    Node a(from), b(to);
    a.start_connect(b.address(), 1);
    return await({&a, &b}, a, DTRAIN_TP_CONNECT, 1).status;
}
inline void the_same_secret_connects(void **) {
    assert_int_equal(connect_with_secrets("s3cret", "s3cret"), DTRAIN_OK);
}
inline void another_secret_is_refused(void **) {
    assert_int_equal(connect_with_secrets("s3cret", "secret"), DTRAIN_ERR_AUTH);
}
inline void a_missing_secret_is_refused(void **) {
    assert_int_equal(connect_with_secrets("", "s3cret"), DTRAIN_ERR_AUTH);
    assert_int_equal(connect_with_secrets("s3cret", ""), DTRAIN_ERR_AUTH);
}
inline void secrets_work_when_both_connect_at_once(void **) {
    Node a("x"), b("x");
    dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
    dtrain_tp_ep_t *to_a = b.start_connect(a.address(), 2);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
    await_ok({&a, &b}, b, DTRAIN_TP_CONNECT, 2);
    exchange({&a, &b}, a, to_b, b, 1);
    exchange({&a, &b}, b, to_a, a, 2);
}

inline const CMUnitTest connect_cases[] = {
    cmocka_unit_test(connecting_completes_once),
    cmocka_unit_test(both_sides_connect_in_turn),
    cmocka_unit_test(both_sides_connect_at_once),
    cmocka_unit_test(an_attempt_that_is_given_up_harms_nobody),
    cmocka_unit_test(both_sides_connect_with_messages_under_way),
    cmocka_unit_test(a_device_connects_to_itself),
    cmocka_unit_test(two_endpoints_lead_to_one_peer),
    cmocka_unit_test(sends_before_the_connection_go_out_in_order),
    cmocka_unit_test(disconnecting_before_the_connection_completes_everything),
    cmocka_unit_test(reconnecting_works),
    cmocka_unit_test(a_completed_send_survives_disconnect_and_close),
    cmocka_unit_test(connecting_to_a_closed_device_fails),
    cmocka_unit_test(many_devices_talk_all_to_all),
    cmocka_unit_test(the_same_secret_connects),
    cmocka_unit_test(another_secret_is_refused),
    cmocka_unit_test(a_missing_secret_is_refused),
    cmocka_unit_test(secrets_work_when_both_connect_at_once),
};

} // namespace dtrain::test
