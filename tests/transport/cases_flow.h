// Cases: more than fits. Memory stays bounded, nothing deadlocks, nothing is lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <algorithm>
#include <malloc.h>
#include <span>

namespace dtrain::test {

inline size_t heap_in_use() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Senders are held back, the receiver keeps a bounded amount, and in the end all is there, in
// order.
inline void flood_then_drain(size_t len, uint64_t n, bool both_ways) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    const Bytes data = pattern(len, 1);
    Bytes got(len);
    const size_t before = heap_in_use();
    uint64_t sent = 0;
    for (; sent < n; sent++) {
        if (pair.a.try_send(pair.to_b, 1, data.data(), len, 1) != DTRAIN_OK) break;
        if (both_ways && pair.b.try_send(to_a, 1, data.data(), len, 1) != DTRAIN_OK) break;
        if (sent % 64 == 0) drive_rounds(pair.both(), 1);
    }
    drive_rounds(pair.both(), 500);
    // What waits costs its bookkeeping; its bytes are the sender's own, but for a window of them.
    assert_true(heap_in_use() - before <
                (size_t{16} << 20) + n * 2 * 1024 + subject.library_memory);
    const auto drain = [&](Node &to, Node &from) {
        for (uint64_t i = 0; i < sent; i++) {
            std::fill(got.begin(), got.end(), 0);
            to.recv(1, got, 2);
            await_ok(pair.both(), to, DTRAIN_TP_RECV, 2);
            assert_true(got == data);
            drive(pair.both(), [&] { return from.take(DTRAIN_TP_SEND, 1); });
        }
    };
    assert_true(sent > 0);
    drain(pair.b, pair.a);
    if (both_ways) drain(pair.a, pair.b);
}
inline void a_flood_of_small_messages_is_bounded(void **) { flood_then_drain(64, 20'000, false); }
inline void a_flood_of_empty_messages_is_bounded(void **) { flood_then_drain(0, 20'000, false); }
inline void a_flood_of_middle_messages_is_bounded(void **) {
    flood_then_drain(100'000, 1000, false);
}
inline void floods_both_ways_are_bounded(void **) { flood_then_drain(10'000, 3000, true); }

// All bytes of a word are equal, and others after each turn.
inline void changing_memory_arrives_in_words(void **) {
    need_caps(DTRAIN_TP_CAP_WORDS);
    const struct {
        size_t len;
        bool expected;
    } cases[] = {
        {800, true}, {40'000, true}, {40'000, false}, {512 << 10, true}, {512 << 10, false}};
    for (const auto &[len, expected] : cases) {
        Pair pair;
        Bytes sent(len, 1), got(len);
        if (expected) pair.b.recv(1, got, 1);
        pair.a.send(pair.to_b, 1, sent, 1);
        if (!expected) pair.b.recv(1, got, 1);
        uint8_t byte = 1;
        bool received = false, is_sent = false;
        assert_true(drive(pair.both(), [&] {
            std::ranges::fill(sent, ++byte);
            received |= pair.b.take(DTRAIN_TP_RECV, 1);
            is_sent |= pair.a.take(DTRAIN_TP_SEND, 1);
            return received && is_sent;
        }));
        for (size_t i = 0; i < len; i += 8)
            assert_true(std::ranges::count(std::span(got).subspan(i, 8), got[i]) == 8);
    }
}

inline void large_messages_cross(void **) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    constexpr size_t len = 8 << 20, n = 4;
    const Bytes from_a = pattern(len, 1), from_b = pattern(len, 2);
    std::vector<Bytes> at_a(n, Bytes(len)), at_b(n, Bytes(len));
    for (uint64_t i = 0; i < n; i++) { // half of them unexpected
        if (i % 2) pair.a.recv(i, at_a[i], i), pair.b.recv(i, at_b[i], i);
        pair.a.send(pair.to_b, i, from_a, i);
        pair.b.send(to_a, i, from_b, i);
    }
    drive_rounds(pair.both(), 100);
    for (uint64_t i = 0; i < n; i += 2) pair.a.recv(i, at_a[i], i), pair.b.recv(i, at_b[i], i);
    for (uint64_t i = 0; i < n; i++)
        for (Node *node : pair.both()) {
            await_ok(pair.both(), *node, DTRAIN_TP_RECV, i);
            await_ok(pair.both(), *node, DTRAIN_TP_SEND, i);
        }
    for (size_t i = 0; i < n; i++) assert_true(at_a[i] == from_b && at_b[i] == from_a);
}

inline void a_small_message_passes_a_large_one_that_waits(void **) {
    Pair pair;
    const Bytes large = pattern(64 << 20, 1);
    Bytes small(8), got(large.size());
    pair.a.send(pair.to_b, 1, large, 1); // nobody receives it yet
    pair.b.recv(2, small, 2);
    pair.a.send(pair.to_b, 2, pattern(8, 2), 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    assert_true(small == pattern(8, 2));
    pair.b.recv(1, got, 1);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    assert_true(got == large);
}

inline void a_small_message_passes_a_full_window(void **) {
    Pair pair;
    const Bytes data = pattern(50'000, 1);
    Bytes small(8);
    uint64_t n = 0;
    for (; n < 500; n++)
        if (pair.a.try_send(pair.to_b, 1, data.data(), data.size(), 1) != DTRAIN_OK) break;
    drive_rounds(pair.both(), 200);
    pair.b.recv(2, small, 2);
    pair.a.send(pair.to_b, 2, pattern(8, 2), 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    assert_true(small == pattern(8, 2));
}

inline void purging_a_flood_lets_its_sender_go_on(void **) {
    Pair pair;
    const Bytes data = pattern(50'000, 1);
    for (uint64_t i = 0; i < 300; i++) pair.a.send(pair.to_b, 1, data, i);
    for (uint64_t i = 0; i < 300; i++)
        assert_true(drive(pair.both(), [&] {
            ops().purge(pair.b.dev, 1, exact);
            return pair.a.take(DTRAIN_TP_SEND, i);
        }));
}

inline void many_flood_one(void **) {
    constexpr size_t peers = 6, n = 200, len = 20'000;
    Node hub;
    Nodes all{&hub};
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<Bytes> data; // of each peer, so that nothing gets into another's message
    for (size_t i = 0; i < peers; i++) data.push_back(pattern(len, i + 1));
    for (size_t i = 0; i < peers; i++) {
        nodes.push_back(std::make_unique<Node>());
        all.push_back(nodes.back().get());
        hub.expect(*nodes[i]);
        dtrain_tp_ep_t *ep = nodes[i]->start_connect(hub.address(), 1);
        for (size_t k = 0; k < n; k++) nodes[i]->send(ep, i, data[i], k + 2);
    }
    drive_rounds(all, 100);
    Bytes got(len);
    for (size_t k = 0; k < n; k++)
        for (size_t i = peers; i-- > 0;) {
            hub.recv(i, got, 1);
            await_ok(all, hub, DTRAIN_TP_RECV, 1);
            assert_true(got == data[i]);
        }
}

inline void many_messages_are_under_way_both_ways(void **) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    constexpr uint64_t n = 2000;
    std::vector<uint64_t> at_a(n), at_b(n), values(n);
    for (uint64_t i = 0; i < n; i++) values[i] = i * 3;
    for (uint64_t i = 0; i < n; i++) {
        pair.a.recv(i, exact, &at_a[i], 8, i);
        pair.b.recv(i, exact, &at_b[i], 8, i);
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t tag = (i * 7) % n; // any order of tags
        while (pair.a.try_send(pair.to_b, tag, &values[tag], 8, tag) == DTRAIN_ERR_BUSY)
            drive_rounds(pair.both(), 1);
        while (pair.b.try_send(to_a, tag, &values[tag], 8, tag) == DTRAIN_ERR_BUSY)
            drive_rounds(pair.both(), 1);
    }
    assert_true(drive(pair.both(), [&] {
        return pair.a.count(DTRAIN_TP_RECV) == n && pair.b.count(DTRAIN_TP_RECV) == n &&
               pair.a.count(DTRAIN_TP_SEND) == n && pair.b.count(DTRAIN_TP_SEND) == n;
    }));
    assert_true(at_a == values && at_b == values);
}

inline const CMUnitTest flow_cases[] = {
    cmocka_unit_test(a_flood_of_small_messages_is_bounded),
    cmocka_unit_test(a_flood_of_empty_messages_is_bounded),
    cmocka_unit_test(a_flood_of_middle_messages_is_bounded),
    cmocka_unit_test(floods_both_ways_are_bounded),
    cmocka_unit_test(changing_memory_arrives_in_words),
    cmocka_unit_test(large_messages_cross),
    cmocka_unit_test(a_small_message_passes_a_large_one_that_waits),
    cmocka_unit_test(a_small_message_passes_a_full_window),
    cmocka_unit_test(purging_a_flood_lets_its_sender_go_on),
    cmocka_unit_test(many_flood_one),
    cmocka_unit_test(many_messages_are_under_way_both_ways),
};

} // namespace dtrain::test
