// Cases: sleeping until there is work.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <atomic>
#include <poll.h>
#include <thread>

namespace dtrain::test {

inline bool readable(int fd, int timeout_ms) {
    pollfd p{fd, POLLIN, 0};
    return poll(&p, 1, timeout_ms) == 1;
}

// Progresses until arm() says that there is nothing to do.
inline void settle(Node &node) {
    assert_true(drive({&node}, [&] { return ops().arm(node.dev) == DTRAIN_OK; }));
}

// The caller's loop: work, arm, sleep. False when it would sleep for quiet_ms, as after a lost
// wake-up.
template <class Condition>
bool sleep_until(Node &node, Condition &&condition, int quiet_ms = 10'000) {
    const int64_t deadline = now_ns() + 20'000'000'000;
    const int fd = ops().event_fd(node.dev);
    while (node.progress(), !condition()) {
        if (now_ns() > deadline) return false;
        if (ops().arm(node.dev) == DTRAIN_OK && !readable(fd, quiet_ms)) return false;
    }
    return true;
}

inline void an_idle_device_arms_and_stays_quiet(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    drive_rounds(pair.both(), 100);
    for (Node *node : pair.both()) {
        const int fd = ops().event_fd(node->dev);
        assert_true(fd >= 0);
        bool quiet = false;
        for (int look = 0; look < 3 && !quiet; look++) { // a timer may ring now and then
            settle(*node);
            quiet = !readable(fd, 20);
        }
        assert_true(quiet);
    }
}

// A process that has read all that came falls asleep at the first attempt or the second, as a rule.
inline void a_message_that_was_read_keeps_nobody_awake(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    constexpr int messages = 50, most = 3 * messages - 1;
    Pair pair;
    int attempts = 0;
    for (int i = 0; i < messages; i++) {
        pair.b.recv(1, exact, nullptr, 0, 1);
        pair.a.send(pair.to_b, 1, {}, 2);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        drive_rounds(pair.both(), 100); // what follows by itself
        const auto sleeps = [&] { return attempts++, ops().arm(pair.b.dev) == DTRAIN_OK; };
        assert_true(drive({&pair.b}, sleeps));
    }
    assert_in_range(attempts, messages, most);
}

inline void arm_is_busy_while_there_are_completions(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    settle(pair.b);
    pair.b.recv(1, exact, nullptr, 0, 1);
    ops().cancel(pair.b.dev, 1); // its completion is not reported yet
    assert_int_equal(ops().arm(pair.b.dev), DTRAIN_ERR_BUSY);
    await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    settle(pair.b);
}

inline void a_message_wakes_an_armed_device(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    for (const size_t len : {size_t{0}, size_t{100}, size_t{pair.a.attr.eager_limit} + 1}) {
        const Bytes sent = pattern(len, 1);
        Bytes got(len);
        pair.b.recv(1, got, 1);
        settle(pair.b);
        assert_false(readable(ops().event_fd(pair.b.dev), 0));
        pair.a.send(pair.to_b, 1, sent, 2);
        assert_true(readable(ops().event_fd(pair.b.dev), 5000));
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
    }
}

inline void a_message_that_came_before_arm_is_seen(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    settle(pair.b);
    pair.a.send(pair.to_b, 1, {1}, 2);
    await_ok({&pair.a}, pair.a, DTRAIN_TP_SEND, 2);
    // Busy, or armed with a descriptor that is (or soon becomes) readable.
    if (ops().arm(pair.b.dev) == DTRAIN_OK) assert_true(readable(ops().event_fd(pair.b.dev), 5000));
}

inline void a_caller_who_connects_wakes_an_armed_device(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Node a, b;
    std::atomic<bool> stop{false};
    std::thread listener(
        [&] { sleep_until(b, [&] { return stop.load() || b.take(DTRAIN_TP_RECV, 1); }); });
    dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
    assert_true(sleep_until(a, [&] { return a.take(DTRAIN_TP_CONNECT, 1); }));
    stop = true;
    a.send(to_b, 1, {1}, 2);
    listener.join();
}

inline void a_failing_connect_wakes_its_caller(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Node a;
    Bytes gone;
    {
        Node b;
        gone = b.address();
    }
    dtrain_tp_ep_t *ep = nullptr;
    if (ops().connect(a.dev, gone.data(), gone.size(), 1, &ep) != DTRAIN_OK) return;
    a.endpoints.push_back(ep);
    assert_true(sleep_until(a, [&] { return a.take(DTRAIN_TP_CONNECT, 1); }));
}

// Two threads, each with its own device, that sleep whenever there is nothing to do.
inline void sleepers_play_ping_pong(size_t len, int rounds) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    const auto play = [len, rounds](Node &node, dtrain_tp_ep_t *ep, bool serve) {
        const Bytes sent = pattern(len, 1);
        Bytes got(len);
        for (int i = 0; i < rounds; i++) {
            const auto round = uint64_t(i);
            node.recv(round, got, 1);
            if (serve) node.send(ep, round, sent, 2);
            if (!sleep_until(node, [&] { return node.take(DTRAIN_TP_RECV, 1); })) return false;
            if (!serve) node.send(ep, round, sent, 2);
            if (!sleep_until(node, [&] { return node.take(DTRAIN_TP_SEND, 2); })) return false;
            if (got != sent) return false;
        }
        return true;
    };
    bool other = false;
    std::thread thread([&] { other = play(pair.b, to_a, false); });
    const bool own = play(pair.a, pair.to_b, true);
    thread.join();
    assert_true(own && other);
}
inline void no_wakeup_is_lost_with_small_messages(void **) { sleepers_play_ping_pong(8, 3000); }
inline void no_wakeup_is_lost_with_large_messages(void **) { sleepers_play_ping_pong(3 << 20, 20); }

inline void sleepers_exchange_large_messages_both_ways(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    const auto play = [](Node &node, dtrain_tp_ep_t *ep) {
        const Bytes sent = pattern(5 << 20, 1);
        Bytes got(sent.size());
        for (uint64_t i = 0; i < 10; i++) {
            node.send(ep, i, sent, 2);
            node.recv(i, got, 1);
            if (!sleep_until(node, [&] { return node.take(DTRAIN_TP_RECV, 1); })) return false;
            if (!sleep_until(node, [&] { return node.take(DTRAIN_TP_SEND, 2); })) return false;
            if (got != sent) return false;
        }
        return true;
    };
    bool other = false;
    std::thread thread([&] { other = play(pair.b, to_a); });
    const bool own = play(pair.a, pair.to_b);
    thread.join();
    assert_true(own && other);
}

inline void the_end_of_a_peer_wakes_an_armed_device(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD | DTRAIN_TP_CAP_PEER_LOST);
    Pair pair;
    settle(pair.a);
    pair.b.close();
    assert_true(sleep_until(
        pair.a, [&] { return pair.a.take(DTRAIN_TP_PEER_LOST, Pair::connect_cookie); }));
}

inline void many_connections_wake_one_device(void **) {
    need_caps(DTRAIN_TP_CAP_EVENT_FD);
    Node hub;
    Nodes all{&hub};
    std::vector<std::unique_ptr<Node>> nodes;
    for (uint64_t i = 0; i < 7; i++) {
        nodes.push_back(std::make_unique<Node>());
        all.push_back(nodes.back().get());
        hub.expect(*nodes[i]);
        nodes[i]->start_connect(hub.address(), 1);
        await_ok(all, *nodes[i], DTRAIN_TP_CONNECT, 1);
    }
    for (uint64_t i = 0; i < 70; i++) {
        uint8_t got = 0;
        hub.recv(i, exact, &got, 1, i);
        settle(hub);
        Node &from = *nodes[i % 7];
        from.send(from.endpoints[0], i, {uint8_t(i)}, 2);
        await_ok({&from}, from, DTRAIN_TP_SEND, 2);
        assert_true(sleep_until(hub, [&] { return hub.take(DTRAIN_TP_RECV, i); }));
        assert_int_equal(got, i);
    }
}

inline const CMUnitTest event_cases[] = {
    cmocka_unit_test(an_idle_device_arms_and_stays_quiet),
    cmocka_unit_test(a_message_that_was_read_keeps_nobody_awake),
    cmocka_unit_test(arm_is_busy_while_there_are_completions),
    cmocka_unit_test(a_message_wakes_an_armed_device),
    cmocka_unit_test(a_message_that_came_before_arm_is_seen),
    cmocka_unit_test(a_caller_who_connects_wakes_an_armed_device),
    cmocka_unit_test(a_failing_connect_wakes_its_caller),
    cmocka_unit_test(no_wakeup_is_lost_with_small_messages),
    cmocka_unit_test(no_wakeup_is_lost_with_large_messages),
    cmocka_unit_test(sleepers_exchange_large_messages_both_ways),
    cmocka_unit_test(the_end_of_a_peer_wakes_an_armed_device),
    cmocka_unit_test(many_connections_wake_one_device),
};

} // namespace dtrain::test
