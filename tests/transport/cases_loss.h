// Cases: peers that go, politely or not, and endpoints that are given up.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <utility>

namespace dtrain::test {

// First thing in a case, before anything is open: skip() runs no destructors.
inline void need_processes() {
    if (subject.processes) return;
    print_message("this transport lives in one process\n");
    skip();
}

// Libfabric's shm leaves files of a process that was killed.
inline void clean_up_after(pid_t pid) {
    std::error_code error;
    for (const auto &file : std::filesystem::directory_iterator("/dev/shm", error))
        if (file.path().filename().string().starts_with(std::to_string(pid) + ":"))
            std::filesystem::remove(file.path(), error);
}

// A process with a device of its own. It is made before the case opens devices, for the sake of
// libraries with threads of their own, which a fork would lose; and comes to life in meet(), where
// it gets the parent's address and says its own. The case begins with need_processes().
class PeerProcess {
  public:
    // How it makes progress after its body: all the time, or once per step() of its parent.
    enum class Pace { own, in_steps };
    // body(node, parent's address) runs in the child, which then waits to be killed.
    template <class Body> explicit PeerProcess(Body &&body, Pace pace = Pace::own) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        pid_ = fork();
        assert_true(pid_ >= 0);
        if (pid_ == 0) {
            ::close(ends[0]);
            run(ends[1], body, pace);
        }
        ::close(ends[1]);
        parent_end_ = ends[0];
    }
    ~PeerProcess() {
        kill();
        ::close(parent_end_);
    }
    void meet(Node &parent) {
        const Bytes to = parent.address();
        address.resize(to.size());
        assert_int_equal(write(parent_end_, to.data(), to.size()), to.size());
        assert_int_equal(::recv(parent_end_, address.data(), address.size(), MSG_WAITALL),
                         address.size());
    }
    void step() {
        uint8_t token = 0;
        assert_int_equal(write(parent_end_, &token, 1), 1);
        assert_int_equal(::recv(parent_end_, &token, 1, 0), 1);
    }
    void signal(int number) { assert_int_equal(::kill(pid_, number), 0); }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        clean_up_after(std::exchange(pid_, 0));
    }
    Bytes address;

  private:
    template <class Body> [[noreturn]] static void run(int end, Body &&body, Pace pace) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        Node node;
        const Bytes own = node.address();
        Bytes to(own.size());
        if (::recv(end, to.data(), to.size(), MSG_WAITALL) != ssize_t(to.size()) ||
            write(end, own.data(), own.size()) != ssize_t(own.size()))
            _exit(1);
        body(node, to);
        for (uint8_t token = 0;;) {
            if (pace == Pace::in_steps && ::recv(end, &token, 1, 0) != 1) _exit(1);
            node.progress();
            if (pace == Pace::in_steps && write(end, &token, 1) != 1) _exit(1);
        }
    }
    pid_t pid_ = 0;
    int parent_end_ = -1;
};

inline const auto just_progress = [](Node &, const Bytes &) {};

inline void processes_exchange_all_sizes(void **) {
    need_processes();
    PeerProcess child([](Node &node, const Bytes &to) { // sends everything back
        dtrain_tp_ep_t *back = node.start_connect(to, 1);
        for (;;) {
            Bytes got(2 << 20);
            node.recv(0, 0, got.data(), got.size(), 2);
            const auto done = await({&node}, node, DTRAIN_TP_RECV, 2);
            got.resize(done.bytes);
            node.send(back, done.tag, got, 3);
            await({&node}, node, DTRAIN_TP_SEND, 3);
        }
    });
    Node a;
    child.meet(a);
    dtrain_tp_ep_t *ep = a.start_connect(child.address, 1);
    for (const size_t len : {0, 1, 31, 4096, 70'000, 262'144, 262'145, 2 << 20}) {
        const Bytes sent = pattern(len, len);
        Bytes got(len);
        a.recv(len, got, 1);
        a.send(ep, len, sent, 2);
        await_ok({&a}, a, DTRAIN_TP_RECV, 1);
        await_ok({&a}, a, DTRAIN_TP_SEND, 2);
        assert_true(sent == got);
    }
}

inline void a_killed_idle_peer_is_reported(void **) {
    need_processes();
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    PeerProcess child(just_progress);
    Node a;
    child.meet(a);
    dtrain_tp_ep_t *ep = a.start_connect(child.address, 5);
    await_ok({&a}, a, DTRAIN_TP_CONNECT, 5);
    uint8_t byte = 0;
    a.recv(1, exact, &byte, 1, 9);
    child.kill();
    assert_int_equal(await({&a}, a, DTRAIN_TP_PEER_LOST, 5).status, DTRAIN_ERR_PEER);
    assert_int_equal(a.try_send(ep, 1, &byte, 1, 6), DTRAIN_ERR_PEER);
    drive_rounds({&a}, 100);
    assert_int_equal(a.count(DTRAIN_TP_RECV), 0); // it may still come from somebody else
    ops().cancel(a.dev, 9);
    assert_int_equal(await({&a}, a, DTRAIN_TP_RECV, 9).status, DTRAIN_ERR_CANCELED);
}

inline void a_killed_peer_fails_what_is_under_way_to_it(void **) {
    need_processes();
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    PeerProcess child(just_progress);
    Node a;
    child.meet(a);
    dtrain_tp_ep_t *ep = a.start_connect(child.address, 5);
    await_ok({&a}, a, DTRAIN_TP_CONNECT, 5);
    const Bytes large = pattern(4 << 20, 1);
    for (uint64_t i = 0; i < 10; i++) a.send(ep, 1, large, i);
    drive_rounds({&a}, 50);
    child.kill();
    await({&a}, a, DTRAIN_TP_PEER_LOST, 5);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(await({&a}, a, DTRAIN_TP_SEND, i).status, DTRAIN_ERR_PEER);
}

// The sender learns it only afterwards; in some round it looks first who has gone.
inline void a_receiver_may_go_once_it_has_everything(void **) {
    for (int i = 0; i < 51; i++) {
        const size_t len = i % 10 == 0 ? 1000 : 100'000;
        Node a;
        auto b = std::make_unique<Node>();
        dtrain_tp_ep_t *ep = a.start_connect(b->address(), 5);
        await_ok({&a, b.get()}, a, DTRAIN_TP_CONNECT, 5);
        const Bytes sent = pattern(len, 1);
        Bytes got(len);
        b->recv(1, got, 1);
        drive_rounds({&a}, i % 17);
        a.send(ep, 1, sent, 2);
        assert_true(drive({&a, b.get()}, [&] { return b->count(DTRAIN_TP_RECV) > 0; }));
        assert_true(sent == got);
        b.reset();
        assert_int_equal(await({&a}, a, DTRAIN_TP_SEND, 2).status, DTRAIN_OK);
    }
}

inline void a_peer_killed_in_the_middle_of_a_message_fails_its_receive(void **) {
    need_processes();
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    constexpr size_t len = 64 << 20; // more than any transport moves in one step
    // Filling it takes a while, so before the peer has an address that we wait for. In steps, or
    // it would send all of it while we are not given the processor.
    PeerProcess child(
        [sent = Bytes(len, 1)](Node &node, const Bytes &to) mutable {
            node.send(node.start_connect(to, 1), 7, std::move(sent), 2);
        },
        PeerProcess::Pace::in_steps);
    const auto stepping = [&](auto &&reached) {
        return [&child, reached] {
            if (reached()) return true;
            child.step();
            return false;
        };
    };
    Node a;
    child.meet(a);
    dtrain_tp_ep_t *ep = a.start_connect(child.address, 5);
    assert_non_null(ep);
    assert_true(drive({&a}, stepping([&] { return a.count(DTRAIN_TP_CONNECT) > 0; })));
    await_ok({&a}, a, DTRAIN_TP_CONNECT, 5);
    Bytes got(len);
    a.recv(7, got, 1);
    assert_true(drive({&a}, stepping([&] { return got[0] == 1; }))); // it has begun
    child.kill();
    await({&a}, a, DTRAIN_TP_PEER_LOST, 5);
    assert_int_equal(await({&a}, a, DTRAIN_TP_RECV, 1).status, DTRAIN_ERR_PEER);
}

inline void what_a_dead_peer_sent_before_can_be_received(void **) {
    need_processes();
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    PeerProcess child([](Node &node, const Bytes &to) {
        dtrain_tp_ep_t *ep = node.start_connect(to, 1);
        for (uint64_t i = 0; i < 10; i++) node.send(ep, i, Bytes(1000, uint8_t(i)), i);
    });
    Node a;
    child.meet(a);
    a.start_connect(child.address, 5);
    await_ok({&a}, a, DTRAIN_TP_CONNECT, 5); // what is not connected yet is refused, not lost
    Bytes last(1000);
    a.recv(9, last, 1);
    await_ok({&a}, a, DTRAIN_TP_RECV, 1);
    child.kill();
    await({&a}, a, DTRAIN_TP_PEER_LOST, 5);
    for (uint64_t i = 0; i < 9; i++) {
        Bytes got(1000);
        a.recv(i, got, 1);
        await_ok({&a}, a, DTRAIN_TP_RECV, 1);
        assert_true(got == Bytes(1000, uint8_t(i)));
    }
}

// In some round who receives sees the messages and their sender's end at the same time.
inline void what_was_sent_before_the_end_arrives(void **) {
    for (int round = 0; round < 17; round++) {
        Node a;
        auto b = std::make_unique<Node>();
        dtrain_tp_ep_t *ep = b->start_connect(a.address(), 5);
        await_ok({&a, b.get()}, *b, DTRAIN_TP_CONNECT, 5);
        Bytes first(1000), got(1000);
        a.recv(0, first, 100);
        drive_rounds({&a}, round);
        for (uint64_t i = 0; i < 5; i++) b->send(ep, i, Bytes(1000, uint8_t(i)), i);
        for (uint64_t i = 0; i < 5; i++) await_ok({b.get()}, *b, DTRAIN_TP_SEND, i);
        b.reset();
        std::this_thread::sleep_for(std::chrono::microseconds(100)); // it is looked for that rarely
        await_ok({&a}, a, DTRAIN_TP_RECV, 100);
        for (uint64_t i = 1; i < 5; i++) {
            a.recv(i, got, 100 + i);
            await_ok({&a}, a, DTRAIN_TP_RECV, 100 + i);
            assert_true(got == Bytes(1000, uint8_t(i)));
        }
    }
}

// A receiver that has just completed a message leaves the next one, which nobody waits for, where
// it is. Others and the sender's end follow before it looks again.
inline void what_was_sent_after_a_message_that_nobody_awaits_arrives(void **) {
    Node a;
    auto b = std::make_unique<Node>();
    dtrain_tp_ep_t *ep = b->start_connect(a.address(), 5);
    await_ok({&a, b.get()}, *b, DTRAIN_TP_CONNECT, 5);
    const auto send = [&](uint64_t tag) {
        b->send(ep, tag, Bytes(100, uint8_t(tag)), tag);
        await_ok({b.get()}, *b, DTRAIN_TP_SEND, tag);
    };
    Bytes got(100);
    a.recv(0, got, 100);
    send(0);
    send(1);
    await_ok({&a}, a, DTRAIN_TP_RECV, 100);
    for (uint64_t i = 2; i < 5; i++) send(i);
    b.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until it looks at its sockets
    if (a.attr.caps & DTRAIN_TP_CAP_EVENT_FD) ops().arm(a.dev); // then it looks at once
    for (uint64_t i = 1; i < 5; i++) {
        a.recv(i, got, 100 + i);
        await_ok({&a}, a, DTRAIN_TP_RECV, 100 + i);
        assert_true(got == Bytes(100, uint8_t(i)));
    }
}

inline void survivors_do_not_notice(void **) {
    need_processes();
    PeerProcess child(just_progress);
    Node a, b;
    child.meet(a);
    a.start_connect(child.address, 5);
    dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 6);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 6);
    child.kill();
    for (uint64_t i = 0; i < 100; i++) {
        uint8_t got = 0;
        b.recv(i, exact, &got, 1, i);
        a.send(to_b, i, {uint8_t(i)}, i);
        await_ok({&a, &b}, b, DTRAIN_TP_RECV, i);
        assert_int_equal(got, i);
    }
    assert_int_equal(b.count(DTRAIN_TP_PEER_LOST), 0);
}

inline void a_peer_that_closes_is_reported_once_per_endpoint(void **) {
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    Pair pair;
    pair.a.start_connect(pair.b.address(), 6);
    await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 6);
    pair.b.close();
    await({&pair.a}, pair.a, DTRAIN_TP_PEER_LOST, Pair::connect_cookie);
    await({&pair.a}, pair.a, DTRAIN_TP_PEER_LOST, 6);
    drive_rounds({&pair.a}, 100);
    assert_int_equal(pair.a.done.size(), 0);
}

inline void a_new_device_takes_the_place_of_a_lost_one(void **) {
    need_caps(DTRAIN_TP_CAP_PEER_LOST);
    Node a;
    for (uint64_t i = 0; i < 5; i++) {
        Node b;
        dtrain_tp_ep_t *ep = a.start_connect(b.address(), i);
        await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, i);
        uint8_t got = 0;
        b.recv(1, exact, &got, 1, 1);
        a.send(ep, 1, {42}, 100);
        await_ok({&a, &b}, b, DTRAIN_TP_RECV, 1);
        b.close();
        await({&a}, a, DTRAIN_TP_PEER_LOST, i);
    }
}

// Disconnecting gives buffers back at once, whatever was going on, and does not disturb the stream.
inline void disconnecting_cancels_what_is_pending(void **) {
    Pair pair;
    dtrain_tp_ep_t *second = pair.a.start_connect(pair.b.address(), 5);
    await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 5);
    const size_t lengths[] = {100, 200'000, 3 << 20, 6 << 20};
    for (int rounds = 0; rounds < 8; rounds++) {
        std::vector<std::unique_ptr<Bytes>> sent;
        Bytes got(3 << 20);
        if (rounds % 2) pair.b.recv(2, got, 50); // the third is under way, matched
        for (uint64_t i = 0; i < 20; i++) {
            sent.push_back(std::make_unique<Bytes>(pattern(lengths[i % 4], i)));
            pair.a.send(second, i % 4, *sent.back(), 100 + i);
        }
        drive_rounds(pair.both(), rounds);
        pair.a.disconnect(second);
        for (uint64_t i = 0; i < 20; i++) {
            const auto done = await(pair.both(), pair.a, DTRAIN_TP_SEND, 100 + i);
            assert_true(done.status == DTRAIN_OK || done.status == DTRAIN_ERR_CANCELED);
            sent[i].reset(); // reading it from now on would be found by a sanitizer
        }
        if (subject.library_is_slow) {
            expect_to_work(pair);
        } else {
            Bytes marker(1); // the other endpoint's stream is intact
            pair.b.recv(77, marker, 51);
            pair.a.send(pair.to_b, 77, {7}, 52);
            await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 51);
        }
        ops().cancel(pair.b.dev, 50);
        if (rounds % 2) await(pair.both(), pair.b, DTRAIN_TP_RECV, 50);
        ops().purge(pair.b.dev, 0, 0);
        second = pair.a.start_connect(pair.b.address(), 5);
        await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 5);
        pair.a.done.clear();
        pair.b.done.clear();
    }
}

// The receiver has asked for it when its sender takes it back; nobody waits forever.
inline void a_message_taken_back_ends_its_receive(void **) {
    for (int kept = 0; kept < 2; kept++) {
        Pair pair;
        dtrain_tp_ep_t *second = pair.a.start_connect(pair.b.address(), 5);
        await_ok(pair.both(), pair.a, DTRAIN_TP_CONNECT, 5);
        const Bytes sent = pattern(3 << 20, 1);
        Bytes got(sent.size());
        pair.a.send(pair.to_b, 9, sent, 9); // another one, that nobody asks for
        if (!kept) pair.b.recv(1, got, 1);
        pair.a.send(second, 1, sent, 2);
        drive_rounds({&pair.b}, 200);
        if (kept) pair.b.recv(1, got, 1);
        drive_rounds({&pair.b}, 20);
        pair.a.disconnect(second);
        const dtrain_status_t to_sender = await(pair.both(), pair.a, DTRAIN_TP_SEND, 2).status;
        assert_true(to_sender == DTRAIN_OK || to_sender == DTRAIN_ERR_CANCELED);
        dtrain_tp_done_t done{};
        if (!drive(
                pair.both(), [&] { return pair.b.take(DTRAIN_TP_RECV, 1, &done); }, 2000)) {
            ops().cancel(pair.b.dev, 1); // it was withdrawn before it was matched
            done = await(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
            assert_int_equal(done.status, DTRAIN_ERR_CANCELED);
            continue;
        }
        assert_true(done.status == DTRAIN_ERR_PEER || (done.status == DTRAIN_OK && got == sent));
    }
}

inline void closing_in_the_middle_of_everything_does_no_harm(void **) {
    for (int rounds = 0; rounds < 20; rounds++) {
        const Bytes large = pattern(3 << 20, 1), small = pattern(1000, 2);
        Bytes at_a(large.size()), at_b(large.size());
        Pair pair;
        dtrain_tp_ep_t *to_a = pair.connect_back();
        for (uint64_t i = 0; i < 6; i++) {
            pair.a.send(pair.to_b, i, i % 2 ? large : small, i);
            pair.b.send(to_a, i, i % 2 ? large : small, i);
        }
        pair.a.recv(1, at_a, 1);
        pair.b.recv(1, at_b, 1);
        drive_rounds(pair.both(), rounds);
        pair.a.close();
        drive_rounds(pair.both(), 50);
    }
}

// What is on its way to a device that closes finds nobody, whichever of the two began.
inline void closing_while_a_peer_sends_does_no_harm(void **) {
    for (int rounds = 0; rounds < 12; rounds++) {
        Pair pair;
        const Bytes small = pattern(100, 1);
        dtrain_tp_ep_t *to_a = pair.connect_back();
        for (uint64_t i = 0; i < 300; i++) pair.b.send(to_a, i, small, i);
        drive_rounds({&pair.a}, rounds / 2);
        (rounds % 2 ? pair.a : pair.b).close();
        drive_rounds(pair.both(), 50); // whichever is left
    }
}

inline const CMUnitTest loss_cases[] = {
    cmocka_unit_test(processes_exchange_all_sizes),
    cmocka_unit_test(a_killed_idle_peer_is_reported),
    cmocka_unit_test(a_killed_peer_fails_what_is_under_way_to_it),
    cmocka_unit_test(a_receiver_may_go_once_it_has_everything),
    cmocka_unit_test(a_peer_killed_in_the_middle_of_a_message_fails_its_receive),
    cmocka_unit_test(what_a_dead_peer_sent_before_can_be_received),
    cmocka_unit_test(what_was_sent_before_the_end_arrives),
    cmocka_unit_test(what_was_sent_after_a_message_that_nobody_awaits_arrives),
    cmocka_unit_test(survivors_do_not_notice),
    cmocka_unit_test(a_peer_that_closes_is_reported_once_per_endpoint),
    cmocka_unit_test(a_new_device_takes_the_place_of_a_lost_one),
    cmocka_unit_test(disconnecting_cancels_what_is_pending),
    cmocka_unit_test(a_message_taken_back_ends_its_receive),
    cmocka_unit_test(closing_in_the_middle_of_everything_does_no_harm),
    cmocka_unit_test(closing_while_a_peer_sends_does_no_harm),
};

} // namespace dtrain::test
