// Cases: sizes, pieces, completions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <random>

namespace dtrain::test {

// Sizes at which something may change in a transport.
inline std::vector<size_t> sizes(const dtrain_tp_attr_t &attr) {
    std::vector<size_t> all{0, 1, 2, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 16352, 16384, 65536};
    for (const uint64_t edge : {attr.eager_limit, uint64_t{1} << 20, uint64_t{16} << 20})
        if (edge && edge <= (16 << 20))
            for (const uint64_t len : {edge - 1, edge, edge + 1}) all.push_back(len);
    return all;
}

inline void every_size_arrives_when_expected(void **) {
    Pair pair;
    for (const size_t len : sizes(pair.a.attr)) {
        const Bytes sent = pattern(len, len);
        Bytes got(len);
        pair.b.recv(len, got, 1);
        pair.a.send(pair.to_b, len, sent, 2);
        const dtrain_tp_done_t done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        assert_int_equal(done.status, DTRAIN_OK);
        assert_int_equal(done.bytes, len);
        assert_int_equal(done.tag, len);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        assert_true(sent == got);
    }
}

inline void every_size_arrives_unexpected(void **) {
    Pair pair;
    for (const size_t len : sizes(pair.a.attr)) {
        const Bytes sent = pattern(len, len);
        Bytes got(len);
        pair.a.send(pair.to_b, len, sent, 2);
        drive_rounds(pair.both(), 20);
        pair.b.recv(len, got, 1);
        const dtrain_tp_done_t done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        assert_int_equal(done.status, DTRAIN_OK);
        assert_int_equal(done.bytes, len);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        assert_true(sent == got);
    }
}

inline void a_receive_may_come_in_the_middle_of_its_message(void **) {
    Pair pair;
    for (int rounds = 0; rounds < 10; rounds++) {
        const size_t len = pair.a.attr.eager_limit;
        const Bytes sent = pattern(len, uint64_t(rounds));
        Bytes got(len);
        pair.a.send(pair.to_b, 1, sent, 2);
        drive_rounds(pair.both(), rounds);
        pair.b.recv(1, got, 1);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        assert_true(sent == got);
    }
}

inline void eager_sends_complete_without_their_receiver(void **) {
    Pair pair;
    const Bytes data = pattern(pair.a.attr.eager_limit, 1);
    pair.a.send(pair.to_b, 1, data, 2);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
}

inline void a_limit_makes_longer_messages_wait(void **) {
    if (!DTRAIN_TP_HAS(&ops(), limit_eager)) skip();
    Pair pair;
    const Bytes data = pattern(std::min<uint64_t>(pair.a.attr.eager_limit, 3000), 1);
    Bytes got(data.size());
    const uint64_t limit = data.size() - 1;
    ops().limit_eager(pair.a.dev, limit);
    pair.a.send(pair.to_b, 1, data.data(), limit, 1);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 1);
    pair.a.send(pair.to_b, 2, data, 2);
    drive_rounds(pair.both(), 500);
    assert_false(pair.a.take(DTRAIN_TP_SEND, 2));
    pair.b.recv(2, got, 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
    assert_true(data == got);
    ops().limit_eager(pair.a.dev, UINT64_MAX); // the transport's own is not exceeded
    pair.a.send(pair.to_b, 3, data, 3);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 3);
    const Bytes longer = pattern(pair.a.attr.eager_limit + 1, 4);
    pair.a.send(pair.to_b, 4, longer, 4);
    drive_rounds(pair.both(), 500);
    assert_false(pair.a.take(DTRAIN_TP_SEND, 4));
    Bytes all(longer.size());
    pair.b.recv(4, all, 4);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 4);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 4);
}

// Cuts bytes into up to n pieces, some of them empty.
inline std::vector<dtrain_tp_iov_t> cut(Bytes &bytes, uint32_t n, std::mt19937_64 &random) {
    std::vector<dtrain_tp_iov_t> pieces;
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t rest = bytes.size() - at;
        const size_t len = i + 1 == n ? rest : random() % 3 ? random() % (rest + 1) : 0;
        pieces.push_back({bytes.data() + at, len, nullptr});
        at += len;
    }
    return pieces;
}

inline void pieces_are_gathered_and_scattered(void **) {
    Pair pair;
    std::mt19937_64 random(4711);
    for (const size_t len : sizes(pair.a.attr)) {
        Bytes sent = pattern(len, len), got(len);
        auto from = cut(sent, 1 + uint32_t(random() % pair.a.attr.max_iov), random);
        auto into = cut(got, 1 + uint32_t(random() % pair.b.attr.max_iov), random);
        assert_int_equal(ops().recv(pair.b.dev, 9, exact, into.data(), uint32_t(into.size()), 1),
                         DTRAIN_OK);
        assert_int_equal(ops().send(pair.to_b, 9, from.data(), uint32_t(from.size()), 2),
                         DTRAIN_OK);
        // The lists are copied: they may change at once.
        std::fill(from.begin(), from.end(), dtrain_tp_iov_t{});
        std::fill(into.begin(), into.end(), dtrain_tp_iov_t{});
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        assert_true(sent == got);
    }
}

inline void too_many_pieces_are_refused(void **) {
    Pair pair;
    Bytes data(pair.a.attr.max_iov + 1);
    std::vector<dtrain_tp_iov_t> pieces;
    for (uint8_t &byte : data) pieces.push_back({&byte, 1, nullptr});
    const auto n = uint32_t(pieces.size());
    assert_int_not_equal(ops().send(pair.to_b, 1, pieces.data(), n, 2), DTRAIN_OK);
    assert_int_not_equal(ops().recv(pair.b.dev, 1, exact, pieces.data(), n, 2), DTRAIN_OK);
    drive_rounds(pair.both(), 50);
    assert_int_equal(pair.a.done.size() + pair.b.done.size(), 0);
}

inline void impossible_lengths_are_refused(void **) {
    Pair pair;
    uint8_t byte = 0;
    const dtrain_tp_iov_t overflow[2] = {{&byte, UINT64_MAX, nullptr}, {&byte, 2, nullptr}};
    if (pair.a.attr.max_iov >= 2)
        assert_int_not_equal(ops().send(pair.to_b, 1, overflow, 2, 2), DTRAIN_OK);
    if (pair.a.attr.max_message < UINT64_MAX) {
        const dtrain_tp_iov_t huge{&byte, pair.a.attr.max_message + 1, nullptr};
        assert_int_not_equal(ops().send(pair.to_b, 1, &huge, 1, 2), DTRAIN_OK);
    }
    drive_rounds(pair.both(), 50);
    assert_int_equal(pair.a.done.size(), 0);
}

inline void progress_writes_no_more_than_max(void **) {
    Pair pair;
    for (uint64_t i = 0; i < 10; i++) {
        pair.b.recv(i, exact, nullptr, 0, i);
        pair.a.send(pair.to_b, i, {}, i);
    }
    drive_rounds({&pair.a}, 20);
    std::vector<uint64_t> cookies;
    const int64_t deadline = now_ns() + 20'000'000'000;
    while (cookies.size() < 10 && now_ns() < deadline) {
        dtrain_tp_done_t done[3];
        memset(done, 0x5A, sizeof done);
        const int32_t n = ops().progress(pair.b.dev, done, 2);
        assert_in_range(n, 0, 2);
        assert_int_equal(done[2].cookie, 0x5A5A5A5A5A5A5A5A);
        for (int32_t i = 0; i < n; i++) cookies.push_back(done[i].cookie);
    }
    assert_int_equal(cookies.size(), 10);
    for (uint64_t i = 0; i < 10; i++)
        assert_true(std::count(cookies.begin(), cookies.end(), i) == 1);
}

inline void completions_tell_cookie_tag_and_bytes(void **) {
    Pair pair;
    Bytes got(50);
    pair.b.recv(0xFF00, 0xFF00, got.data(), got.size(), 0xFEDCBA9876543210);
    pair.a.send(pair.to_b, 0x123456789ABCFF42, pattern(20, 1), 0x0123456789ABCDEF);
    const auto received = await(pair.both(), pair.b, DTRAIN_TP_RECV, 0xFEDCBA9876543210);
    assert_int_equal(received.tag, 0x123456789ABCFF42);
    assert_int_equal(received.bytes, 20);
    assert_int_equal(received.status, DTRAIN_OK);
    const auto sent = await(pair.both(), pair.a, DTRAIN_TP_SEND, 0x0123456789ABCDEF);
    assert_int_equal(sent.status, DTRAIN_OK);
}

inline const CMUnitTest message_cases[] = {
    cmocka_unit_test(every_size_arrives_when_expected),
    cmocka_unit_test(every_size_arrives_unexpected),
    cmocka_unit_test(a_receive_may_come_in_the_middle_of_its_message),
    cmocka_unit_test(eager_sends_complete_without_their_receiver),
    cmocka_unit_test(a_limit_makes_longer_messages_wait),
    cmocka_unit_test(pieces_are_gathered_and_scattered),
    cmocka_unit_test(too_many_pieces_are_refused),
    cmocka_unit_test(impossible_lengths_are_refused),
    cmocka_unit_test(progress_writes_no_more_than_max),
    cmocka_unit_test(completions_tell_cookie_tag_and_bytes),
};

} // namespace dtrain::test
