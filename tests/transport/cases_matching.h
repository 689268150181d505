// Cases: which message goes to which receive.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

inline void tags_select(void **) {
    Pair pair;
    Bytes one(1), two(1), three(1);
    pair.b.recv(1, one, 1);
    pair.b.recv(2, two, 2);
    pair.b.recv(3, three, 3);
    pair.a.send(pair.to_b, 3, {33}, 10);
    pair.a.send(pair.to_b, 1, {11}, 11);
    pair.a.send(pair.to_b, 2, {22}, 12);
    for (uint64_t cookie = 1; cookie <= 3; cookie++)
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, cookie);
    assert_true(one[0] == 11 && two[0] == 22 && three[0] == 33);
}

inline void all_bits_of_a_tag_count(void **) {
    Pair pair;
    for (int bit = 0; bit < 64; bit++) {
        Bytes got(1);
        pair.b.recv(uint64_t{1} << bit, got, uint64_t(bit));
    }
    for (int bit = 63; bit >= 0; bit--) {
        pair.a.send(pair.to_b, uint64_t{1} << bit, {}, 1);
        assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, uint64_t(bit)).tag,
                         uint64_t{1} << bit);
    }
}

inline void a_zero_mask_takes_anything(void **) {
    Pair pair;
    Bytes got(1);
    for (const uint64_t tag : {uint64_t{0}, uint64_t{77}, exact}) {
        pair.b.recv(5, 0, got.data(), 1, 1);
        pair.a.send(pair.to_b, tag, {uint8_t(tag)}, 2);
        assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, 1).tag, tag);
        assert_int_equal(got[0], uint8_t(tag));
    }
}

inline void a_mask_selects_fields(void **) {
    Pair pair;
    Bytes low(1), high(1);
    pair.b.recv(0x0100, 0xFF00, high.data(), 1, 1);
    pair.b.recv(0x0002, 0x00FF, low.data(), 1, 2);
    pair.a.send(pair.to_b, 0x0302, {2}, 10);
    pair.a.send(pair.to_b, 0x0103, {1}, 11);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    assert_true(low[0] == 2 && high[0] == 1);
}

inline void receives_match_in_posting_order(void **) {
    Pair pair;
    // Exact and masked ones that all want tag 7, in every order.
    for (int order = 0; order < 16; order++) {
        std::vector<Bytes> got(4, Bytes(1));
        for (int i = 0; i < 4; i++)
            pair.b.recv(7, order >> i & 1 ? exact : 0xFF, got[size_t(i)].data(), 1, uint64_t(i));
        for (uint64_t i = 0; i < 4; i++) pair.a.send(pair.to_b, 7, {uint8_t(i)}, 10);
        for (uint64_t i = 0; i < 4; i++) {
            await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, i);
            assert_int_equal(got[i][0], i);
            await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 10);
        }
    }
}

// Small, empty and large messages of one tag stay in order, expected or not.
inline void order_holds_per_tag(bool expected) {
    Pair pair;
    constexpr uint64_t n = 300;
    const size_t eager = std::min<size_t>(pair.a.attr.eager_limit, 1 << 20);
    const size_t lengths[] = {8, 0, 100, eager, eager + 8, 3, 70'000};
    std::vector<Bytes> sent, got;
    for (uint64_t i = 0; i < n; i++) {
        // The few large ones are what may be overtaken.
        const size_t len = lengths[i % 29 == 4   ? 4
                                   : i % 29 == 9 ? 3
                                   : i % 7 == 4  ? 0
                                   : i % 7 == 3  ? 2
                                                 : i % 7];
        sent.push_back(pattern(len, i));
        got.emplace_back(len);
    }
    const auto post = [&] {
        for (uint64_t i = 0; i < n; i++) pair.b.recv(9, got[i], i);
    };
    if (expected) post();
    for (uint64_t i = 0; i < n; i++) pair.a.send(pair.to_b, 9, sent[i], i);
    if (!expected) {
        drive_rounds(pair.both(), 100);
        post();
    }
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, i).bytes, sent[i].size());
        assert_true(got[i] == sent[i]);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, i);
    }
}
inline void expected_messages_keep_their_order(void **) { order_holds_per_tag(true); }
inline void unexpected_messages_keep_their_order(void **) { order_holds_per_tag(false); }

inline void kept_messages_are_found_by_tag_and_mask(void **) {
    Pair pair;
    for (uint64_t tag = 0; tag < 200; tag++) pair.a.send(pair.to_b, tag, {uint8_t(tag)}, tag);
    for (uint64_t tag = 0; tag < 200; tag++) await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, tag);
    drive_rounds(pair.both(), 20);
    Bytes got(1);
    for (uint64_t tag = 199; tag > 100; tag--) { // exact ones, last first
        pair.b.recv(tag, got, 1);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        assert_int_equal(got[0], tag);
    }
    for (uint64_t i = 0; i <= 100; i++) { // of one sender, whatever arrived first
        pair.b.recv(0, 0, got.data(), 1, 1);
        const auto done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        assert_int_equal(done.status, DTRAIN_OK);
        assert_int_equal(got[0], done.tag);
    }
}

inline void truncation_is_reported(bool expected) {
    Pair pair;
    for (const size_t len : {size_t{100}, size_t{70'000}, size_t{pair.a.attr.eager_limit} + 70'000})
        for (const size_t room : {size_t{0}, size_t{1}, len / 2, len - 1}) {
            const Bytes sent = pattern(len, len);
            Bytes got(room + 8, 0xA5);
            if (expected) pair.b.recv(1, exact, got.data(), room, 1);
            pair.a.send(pair.to_b, 1, sent, 2);
            if (!expected) {
                drive_rounds(pair.both(), 30);
                pair.b.recv(1, exact, got.data(), room, 1);
            }
            const auto done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
            assert_int_equal(done.status, DTRAIN_ERR_TRUNCATED);
            assert_int_equal(done.bytes, len);
            assert_true(std::equal(sent.begin(), sent.begin() + long(room), got.begin()));
            for (size_t i = room; i < got.size(); i++) assert_int_equal(got[i], 0xA5);
            await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        }
    Bytes got(4); // the stream goes on behind it
    pair.b.recv(2, got, 3);
    pair.a.send(pair.to_b, 2, {1, 2, 3, 4}, 4);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 3);
    assert_int_equal(got[3], 4);
}
inline void truncation_of_expected_messages(void **) { truncation_is_reported(true); }
inline void truncation_of_kept_messages(void **) { truncation_is_reported(false); }

inline void a_short_message_leaves_the_rest_alone(void **) {
    Pair pair;
    Bytes got(100, 0xA5);
    pair.b.recv(1, got, 1);
    pair.a.send(pair.to_b, 1, pattern(40, 1), 2);
    assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, 1).bytes, 40);
    for (size_t i = 40; i < 100; i++) assert_int_equal(got[i], 0xA5);
}

inline void canceling_a_receive(void **) {
    Pair pair;
    Bytes first(1), second(1), masked(1);
    pair.b.recv(7, first, 1);
    pair.b.recv(7, second, 2);
    pair.b.recv(0, 0, masked.data(), 1, 3);
    ops().cancel(pair.b.dev, 1);
    assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, 1).status, DTRAIN_ERR_CANCELED);
    ops().cancel(pair.b.dev, 3);
    assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, 3).status, DTRAIN_ERR_CANCELED);
    pair.a.send(pair.to_b, 7, {42}, 9);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    assert_int_equal(second[0], 42);
}

inline void canceling_what_is_not_there_does_nothing(void **) {
    Pair pair;
    Bytes got(1);
    ops().cancel(pair.b.dev, 1);
    pair.b.recv(7, got, 1);
    ops().cancel(pair.b.dev, 2);
    pair.a.send(pair.to_b, 7, {42}, 9);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    ops().cancel(pair.b.dev, 1);
    drive_rounds(pair.both(), 50);
    assert_int_equal(pair.b.count(DTRAIN_TP_RECV), 0);
}

inline void a_matched_receive_completes_in_spite_of_cancel(void **) {
    Pair pair;
    const size_t len = pair.a.attr.eager_limit + (4 << 20);
    const Bytes sent = pattern(len, 1);
    for (int rounds = 1; rounds < 12; rounds++) {
        Bytes got(len);
        pair.b.recv(1, got, 1);
        pair.a.send(pair.to_b, 1, sent, 2);
        drive_rounds(pair.both(), rounds);
        ops().cancel(pair.b.dev, 1);
        const auto done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        if (done.status == DTRAIN_OK)
            assert_true(sent == got);
        else { // it had not matched, so the next one gets the message
            assert_int_equal(done.status, DTRAIN_ERR_CANCELED);
            pair.b.recv(1, got, 3);
            await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 3);
            assert_true(sent == got);
        }
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
    }
}

// Sends `len` bytes, lets them be kept, purges, and checks that sender and stream go on.
inline void purging_forgets(size_t len) {
    Pair pair;
    const Bytes sent = pattern(len, 1);
    pair.a.send(pair.to_b, 0x10, sent, 1);
    pair.a.send(pair.to_b, 0x11, sent, 2);
    pair.a.send(pair.to_b, 0x20, sent, 3);
    Bytes marker(1),
        got(len); // when it is there, so are the others (or their announcements), or soon
    pair.b.recv(0x30, marker, 6);
    pair.a.send(pair.to_b, 0x30, {1}, 4);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 6);
    drive_rounds(pair.both(), 2000);
    ops().purge(pair.b.dev, 0x10, 0xF0);
    pair.b.recv(0x20, got, 5);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 5);
    assert_true(sent == got);
    for (uint64_t cookie = 1; cookie <= 4; cookie++)
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, cookie);
    pair.b.recv(0x10, 0xF0, got.data(), len, 7);
    drive_rounds(pair.both(), 200);
    assert_int_equal(pair.b.count(DTRAIN_TP_RECV), 0);
    pair.a.send(pair.to_b, 0x12, sent, 8);
    assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, 7).tag, 0x12);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 8);
}
inline void purging_small_messages(void **) { purging_forgets(10); }
inline void purging_large_messages(void **) { purging_forgets(2 << 20); }

inline void purging_spares_posted_receives(void **) {
    Pair pair;
    Bytes got(1);
    pair.b.recv(7, got, 1);
    ops().purge(pair.b.dev, 0, 0);
    pair.a.send(pair.to_b, 7, {42}, 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
}

inline void one_receive_serves_any_peer(void **) {
    Node hub, x, y;
    const Nodes all{&hub, &x, &y};
    hub.expect(x);
    hub.expect(y);
    dtrain_tp_ep_t *from_x = x.start_connect(hub.address(), 1);
    dtrain_tp_ep_t *from_y = y.start_connect(hub.address(), 1);
    uint8_t got[2][8] = {};
    hub.recv(0x100, 0x100, got[0], 8, 1);
    hub.recv(0x100, 0x100, got[1], 8, 2);
    x.send(from_x, 0x101, Bytes(8, 1), 3);
    y.send(from_y, 0x102, Bytes(8, 2), 3);
    for (uint64_t cookie = 1; cookie <= 2; cookie++) {
        const auto done = await(all, hub, DTRAIN_TP_RECV, cookie);
        assert_int_equal(got[cookie - 1][7], done.tag & 0xF);
    }
    assert_int_not_equal(got[0][0], got[1][0]);
}

inline const CMUnitTest matching_cases[] = {
    cmocka_unit_test(tags_select),
    cmocka_unit_test(all_bits_of_a_tag_count),
    cmocka_unit_test(a_zero_mask_takes_anything),
    cmocka_unit_test(a_mask_selects_fields),
    cmocka_unit_test(receives_match_in_posting_order),
    cmocka_unit_test(expected_messages_keep_their_order),
    cmocka_unit_test(unexpected_messages_keep_their_order),
    cmocka_unit_test(kept_messages_are_found_by_tag_and_mask),
    cmocka_unit_test(truncation_of_expected_messages),
    cmocka_unit_test(truncation_of_kept_messages),
    cmocka_unit_test(a_short_message_leaves_the_rest_alone),
    cmocka_unit_test(canceling_a_receive),
    cmocka_unit_test(canceling_what_is_not_there_does_nothing),
    cmocka_unit_test(a_matched_receive_completes_in_spite_of_cancel),
    cmocka_unit_test(purging_small_messages),
    cmocka_unit_test(purging_large_messages),
    cmocka_unit_test(purging_spares_posted_receives),
    cmocka_unit_test(one_receive_serves_any_peer),
};

} // namespace dtrain::test
