// Cases: operations that are taken back, at any stage, while the peer does nothing. They end soon,
// and from then on nobody touches their memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_loss.h"
#include "rig.h"

#include <sys/mman.h>

namespace dtrain::test {

// Memory that faults when it is touched after it was given up.
class LentMemory {
  public:
    explicit LentMemory(size_t len) : len_(len) {
        void *pages =
            mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages != MAP_FAILED);
        bytes_ = static_cast<uint8_t *>(pages);
    }
    LentMemory(const LentMemory &) = delete;
    ~LentMemory() { munmap(bytes_, len_); }
    uint8_t *data() { return bytes_; }
    size_t size() const { return len_; }
    // A process that reads or writes it from here on is told by a signal, or by an error of the
    // kernel.
    void give_up() {
        if (!subject.library_writes_late) assert_int_equal(mprotect(bytes_, len_, PROT_NONE), 0);
    }

  private:
    uint8_t *bytes_;
    size_t len_;
};

inline void need_withdraw() {
    if (ops().withdraw) return;
    print_message("this transport cannot withdraw\n");
    skip();
}

// Generous: the rule says 50 ms, and this machine may be busy.
inline constexpr int64_t withdrawal_ms = 2000;

// The rule's bound for what a quiet machine needs; whatever came was told exactly once.
inline dtrain_tp_done_t await_withdrawn(Node &node, uint32_t kind, uint64_t cookie) {
    dtrain_tp_done_t done{};
    assert_true(drive(
        {&node}, [&] { return node.take(kind, cookie, &done); }, withdrawal_ms));
    assert_true(done.status == DTRAIN_OK || done.status == DTRAIN_ERR_CANCELED ||
                done.status == DTRAIN_ERR_PEER);
    return done;
}

inline const size_t withdrawn_lengths[] = {100, 20'000, 50'000, 300'000, 3 << 20, 24 << 20};

inline void a_receive_can_be_withdrawn_at_any_stage(void **) {
    need_withdraw();
    for (size_t len : withdrawn_lengths)
        for (int rounds : {0, 1, 2, 3, 5, 9, 20}) {
            Pair pair;
            const Bytes sent = pattern(len, 1);
            LentMemory into(len);
            pair.b.recv(1, exact, into.data(), len, 9);
            pair.a.send(pair.to_b, 1, sent, 2);
            drive_rounds(pair.both(), rounds);
            ops().withdraw(pair.b.dev, 9);
            const auto done = await_withdrawn(pair.b, DTRAIN_TP_RECV, 9);
            if (done.status == DTRAIN_OK) assert_memory_equal(into.data(), sent.data(), len);
            into.give_up();
            drive_rounds(pair.both(), 100);
            assert_false(pair.b.take(DTRAIN_TP_RECV, 9));
            ops().withdraw(pair.a.dev, 2); // if it was not received before
            await_withdrawn(pair.a, DTRAIN_TP_SEND, 2);
            expect_to_work(pair);
        }
}

inline void a_send_can_be_withdrawn_at_any_stage(void **) {
    need_withdraw();
    for (size_t len : withdrawn_lengths)
        for (int rounds : {0, 1, 2, 3, 5, 9, 20})
            for (bool is_awaited : {false, true}) {
                Pair pair;
                LentMemory from(len);
                Bytes got(len), expected = pattern(len, 1);
                memcpy(from.data(), expected.data(), len);
                if (is_awaited) pair.b.recv(1, got, 9);
                pair.a.send(pair.to_b, 1, from.data(), len, 2);
                drive_rounds(pair.both(), rounds);
                ops().withdraw(pair.a.dev, 2);
                await_withdrawn(pair.a, DTRAIN_TP_SEND, 2);
                from.give_up();
                drive_rounds(pair.both(), 100);
                if (is_awaited) { // all of it, or an error, or nothing
                    dtrain_tp_done_t done{};
                    if (!pair.b.take(DTRAIN_TP_RECV, 9, &done)) {
                        ops().withdraw(pair.b.dev, 9);
                        done = await_withdrawn(pair.b, DTRAIN_TP_RECV, 9);
                    }
                    if (done.status == DTRAIN_OK) assert_true(got == expected);
                }
                expect_to_work(pair);
            }
}

// Another operation of the same connection goes on, where only one was taken back.
inline void withdrawing_one_leaves_the_others(void **) {
    need_withdraw();
    for (size_t len : withdrawn_lengths) {
        Pair pair;
        const Bytes one = pattern(len, 1), other = pattern(len, 2);
        Bytes got_one(len), got_other(len);
        pair.b.recv(2, got_other, 12);
        pair.a.send(pair.to_b, 1, one, 1); // nobody receives it
        pair.a.send(pair.to_b, 2, other, 2);
        ops().withdraw(pair.a.dev, 1);
        await(pair.both(), pair.a, DTRAIN_TP_SEND, 1);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 12);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
        assert_true(got_other == other);
        ops().purge(pair.b.dev, 0, 0);
        pair.b.recv(3, got_one, 13);
        pair.b.recv(4, got_other, 14);
        ops().withdraw(pair.b.dev, 13);
        await(pair.both(), pair.b, DTRAIN_TP_RECV, 13);
        pair.a.send(pair.to_b, 4, one, 4);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 14);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 4);
        assert_true(got_other == one);
    }
}

// What was not accepted, is over, or never was: nothing happens.
inline void withdrawing_what_is_not_there_does_nothing(void **) {
    need_withdraw();
    Pair pair;
    ops().withdraw(pair.a.dev, 12345);
    Bytes got(10);
    pair.b.recv(1, got, 1);
    pair.a.send(pair.to_b, 1, pattern(10, 1), 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 2);
    ops().withdraw(pair.a.dev, 2);
    ops().withdraw(pair.b.dev, 1);
    drive_rounds(pair.both(), 100);
    assert_int_equal(pair.a.done.size() + pair.b.done.size(), 0);
}

// The peer's process is stopped, so that nothing of it moves, not even by itself.
inline void what_a_stopped_peer_holds_comes_back(void **) {
    need_processes();
    need_withdraw();
    for (size_t len : withdrawn_lengths)
        for (int rounds : {1, 3, 10}) {
            PeerProcess child([len](Node &node, const Bytes &to) {
                static Bytes sent, got;
                sent = Bytes(len, 1);
                got = Bytes(len);
                node.recv(2, got, 3);
                Bytes go_on(1); // so that the two do not connect at the same time
                node.recv(3, go_on, 4);
                await_ok({&node}, node, DTRAIN_TP_RECV, 4);
                dtrain_tp_ep_t *ep = node.start_connect(to, 1);
                await_ok({&node}, node, DTRAIN_TP_CONNECT, 1);
                node.send(ep, 1, sent, 2);
            });
            Node a;
            child.meet(a);
            dtrain_tp_ep_t *ep = a.start_connect(child.address, 5);
            await_ok({&a}, a, DTRAIN_TP_CONNECT, 5);
            a.send(ep, 3, {1}, 8);
            LentMemory into(len), from(len);
            a.recv(1, exact, into.data(), len, 6);
            a.send(ep, 2, from.data(), len, 7);
            drive_rounds({&a}, rounds);
            child.signal(SIGSTOP);
            drive_rounds({&a}, rounds);
            ops().withdraw(a.dev, 6);
            ops().withdraw(a.dev, 7);
            await_withdrawn(a, DTRAIN_TP_RECV, 6);
            await_withdrawn(a, DTRAIN_TP_SEND, 7);
            into.give_up();
            from.give_up();
            child.signal(SIGCONT);
            drive_rounds({&a}, 2000);
            child.kill(); // before it sees this side close
        }
}

inline const CMUnitTest withdraw_cases[] = {
    cmocka_unit_test(a_receive_can_be_withdrawn_at_any_stage),
    cmocka_unit_test(a_send_can_be_withdrawn_at_any_stage),
    cmocka_unit_test(withdrawing_one_leaves_the_others),
    cmocka_unit_test(withdrawing_what_is_not_there_does_nothing),
    cmocka_unit_test(what_a_stopped_peer_holds_comes_back),
};

} // namespace dtrain::test
