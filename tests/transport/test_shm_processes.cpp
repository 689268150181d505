// The shm transport between processes: nobody sleeps through a message, a killed peer is noticed,
// nothing is left behind.
// SPDX-License-Identifier: Apache-2.0
#include "child.h"
#include "rig.h"

#include <fstream>
#include <poll.h>
#include <random>
#include <sys/uio.h>
#include <thread>

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

namespace {

using namespace dtrain::test;

constexpr uint64_t rounds = 1000;

uint64_t seed() {
    const char *text = getenv("DTRAIN_TEST_SEED");
    static const uint64_t chosen = text ? strtoull(text, nullptr, 10) : std::random_device{}();
    return chosen;
}

bool sleep_for_work(Node &node) {
    if (ops().arm(node.dev) != DTRAIN_OK) return true;
    pollfd wanted{ops().event_fd(node.dev), POLLIN, 0};
    return poll(&wanted, 1, 20'000) == 1;
}

// Drives the node until the condition holds, asleep or spinning as chance has it. A lost wake-up
// ends the sleep, and the test, after 20 s.
template <class Condition> void wait(Node &node, std::mt19937_64 &random, Condition &&condition) {
    while (!condition()) {
        if (node.progress() > 0) continue;
        uint64_t dice = random() % 4;
        if (dice == 0)
            for (uint64_t i = random() % 300; i > 0; i--) node.progress();
        else if (dice == 1)
            std::this_thread::yield();
        else
            assert_true(sleep_for_work(node));
    }
}

Bytes swap_addresses(int fd, Node &node) {
    Bytes mine = node.address(), theirs(mine.size());
    give(fd, mine.data(), mine.size());
    take(fd, theirs.data(), theirs.size());
    return theirs;
}

size_t length_of(uint64_t round, size_t eager_limit) {
    switch (round % 8) {
    case 5: return eager_limit;
    case 6: return 100'000; // offered, and fills the ring
    case 7: return 1'000'000;
    default: return round % 100;
    }
}

// Sends a message and waits for one, again and again; the sides change who begins.
void exchange(int fd, bool first, uint64_t chance) {
    std::mt19937_64 random(chance);
    Node node;
    dtrain_tp_ep_t *ep = node.start_connect(swap_addresses(fd, node), 1);
    wait(node, random, [&] { return node.take(DTRAIN_TP_CONNECT, 1); });
    for (uint64_t round = 0; round < rounds; round++) {
        const Bytes data = pattern(length_of(round, node.attr.eager_limit), round);
        Bytes got(data.size());
        auto send = [&] { node.send(ep, round, data, 2); };
        auto receive = [&] {
            node.recv(round, got, 3);
            wait(node, random, [&] { return node.take(DTRAIN_TP_RECV, 3); });
            assert_true(got == data);
        };
        if (first != (round % 3 == 0))
            send(), receive();
        else
            receive(), send();
        wait(node, random, [&] { return node.take(DTRAIN_TP_SEND, 2); });
    }
    give(fd, "", 1); // stay until the other side has all
    char byte;
    take(fd, &byte, 1);
}

void processes_do_not_sleep_through_messages(void **) {
    print_message("seed %llu\n", static_cast<unsigned long long>(seed()));
    Child child([](int fd) { exchange(fd, true, seed()); });
    exchange(child.peer, false, seed() + 1);
    child.join();
}

void threads_do_not_sleep_through_messages(void **) {
    print_message("seed %llu\n", static_cast<unsigned long long>(seed()));
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::thread other([&] { exchange(ends[1], true, seed() + 2); });
    exchange(ends[0], false, seed() + 3);
    other.join();
    close(ends[0]);
    close(ends[1]);
}

// Takes a byte when it comes.
void take_driving(Node &node, int fd) {
    pollfd readable{fd, POLLIN, 0};
    assert_true(drive({&node}, [&] { return poll(&readable, 1, 0) == 1; }));
    char byte;
    take(fd, &byte, 1);
}

// A child that connects and begins to send a large message; killed in the midst of it.
void begin_to_send(int fd) {
    Node node;
    dtrain_tp_ep_t *ep = node.start_connect(swap_addresses(fd, node), 1);
    const Bytes data(4 << 20, 1);
    node.send(ep, 1, data, 2);
    await_ok({&node}, node, DTRAIN_TP_CONNECT, 1);
    give(fd, "", 1);        // the offer is out
    take_driving(node, fd); // and in
    give(fd, "", 1);        // standing still: what would go out now, nobody could say
    char byte;
    take(fd, &byte, 1); // the grant is there
    drive_rounds({&node}, 1);
    give(fd, "", 1);
    take(fd, &byte, 1); // forever
}

void a_killed_peer_is_noticed(void **) {
    Child child(begin_to_send);
    Node node;
    const Bytes peer = swap_addresses(child.peer, node);
    dtrain_tp_ep_t *ep = node.start_connect(peer, 1);
    Bytes got(4 << 20), unread(1 << 20);
    await_ok({&node}, node, DTRAIN_TP_CONNECT, 1);
    take_driving(node, child.peer);
    drive_rounds({&node}, 1); // takes the offer in
    give(child.peer, "", 1);
    char byte;
    take(child.peer, &byte, 1);
    node.send(ep, 9, unread, 3); // nobody will receive it
    node.recv(1, got, 2);        // the grant goes out
    give(child.peer, "", 1);
    take(child.peer, &byte, 1);
    drive_rounds({&node}, 100); // no more than a ring full comes
    assert_int_equal(node.done.size(), 0);
    int64_t start = now_ns();
    child.stop();
    for (node.progress(); node.count(DTRAIN_TP_PEER_LOST) == 0; node.progress())
        assert_true(sleep_for_work(node));
    int64_t took = now_ns() - start;
    print_message("noticed after %lld us\n", static_cast<long long>(took / 1000));
    assert_true(took < 2'000'000'000);
    assert_true(drive({&node}, [&] { return node.done.size() == 3; }));
    for (const dtrain_tp_done_t &done : node.done)
        assert_int_equal(done.status, DTRAIN_ERR_PEER); // the connection, the send, the receive
    assert_int_equal(node.try_send(ep, 1, "x", 1, 4), DTRAIN_ERR_PEER);
}

// A child that begins to take a large message, and is killed in the midst of it.
void begin_to_receive(int fd) {
    Node node;
    swap_addresses(fd, node);
    Bytes got(4 << 20);
    give(fd, "", 1);
    take_driving(node, fd);   // the offer is out
    drive_rounds({&node}, 1); // and in
    node.recv(1, got, 2);     // the grant goes out
    give(fd, "", 1);
    char byte;
    take(fd, &byte, 1); // forever, standing still
}

void a_killed_receiver_is_noticed(void **) {
    Child child(begin_to_receive);
    Node node;
    dtrain_tp_ep_t *ep = node.start_connect(swap_addresses(child.peer, node), 1);
    const Bytes sent(4 << 20, 1);
    take_driving(node, child.peer);
    node.send(ep, 1, sent, 2);
    await_ok({&node}, node, DTRAIN_TP_CONNECT, 1);
    give(child.peer, "", 1);
    take_driving(node, child.peer);
    uint8_t byte = 0;
    iovec here{&byte, 1}, there{&byte, 1}; // where it was when the child began
    bool in_reach = process_vm_readv(child.pid, &here, 1, &there, 1, 0) == 1;
    drive_rounds({&node}, 100);
    assert_int_equal(node.done.size(), 0);
    // One side alone copies all; through the ring it goes as far as that is long.
    if (in_reach) assert_int_equal(ops().moved(node.dev), sent.size());
    child.stop();
    assert_int_equal(await({&node}, node, DTRAIN_TP_SEND, 2).status, DTRAIN_ERR_PEER);
}

size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    size_t n = 0;
    for (std::string line; std::getline(maps, line);) n += line.find("memfd:") != line.npos;
    return n;
}

// Devices with everything open, closed in the rudest order.
void nothing_is_left_behind(void **) {
    const size_t fds = open_fds();
    for (int round = 0; round < 3; round++) {
        Pair pair;
        pair.connect_back();
        Node stranger;
        stranger.start_connect(pair.b.address(), 5);
        uint8_t handle[16];
        dtrain_tp_win_t *window, *attached = nullptr;
        assert_int_equal(ops().window_create(pair.b.dev, 3 << 20, 2, 0, handle, &window),
                         DTRAIN_OK);
        assert_true(drive(pair.both(), [&] {
            return ops().window_attach(pair.a.dev, pair.to_b, handle, 3 << 20, 2, 1, &attached) ==
                   DTRAIN_OK;
        }));
        const Bytes data = pattern(200'000, 1);
        Bytes got(200'000);
        for (uint64_t i = 0; i < 20; i++) pair.a.send(pair.to_b, i, data, i);
        pair.b.recv(3, got, 1);
        drive_rounds(pair.both(), 3);
        assert_true(mappings() >= 6);
        ops().window_free(window);
        ops().window_free(attached);
    }
    assert_int_equal(open_fds(), fds);
    assert_int_equal(mappings(), 0);
}

// One thread sleeps on the descriptor while another one uses the device.
void operations_wake_who_sleeps_meanwhile(void **) {
    Pair pair;
    auto wakes = [&](auto &&operation) {
        assert_true(drive(pair.both(), [&] { return ops().arm(pair.a.dev) == DTRAIN_OK; }));
        pollfd wanted{ops().event_fd(pair.a.dev), POLLIN, 0};
        assert_int_equal(poll(&wanted, 1, 0), 0);
        operation();
        assert_int_equal(poll(&wanted, 1, 0), 1);
        drive_rounds(pair.both(), 100);
    };
    const Bytes small(8), large(1 << 20);
    Bytes got(8);
    drive_rounds(pair.both(), 100);
    wakes([&] { pair.a.send(pair.to_b, 1, small, 1); });
    wakes([&] { pair.a.send(pair.to_b, 2, large, 2); });
    pair.a.recv(3, got, 3);
    wakes([&] { ops().cancel(pair.a.dev, 3); });
    wakes([&] { pair.a.disconnect(pair.to_b); });
    assert_true(pair.a.take(DTRAIN_TP_SEND, 1) && pair.a.take(DTRAIN_TP_SEND, 2) &&
                pair.a.take(DTRAIN_TP_RECV, 3));
}

// A forked child that closes its copy disturbs nobody.
void a_forked_child_may_close(void **) {
    Pair pair;
    pair.a.send(pair.to_b, 1, pattern(1000, 1), 1);
    Child child([&](int) {
        pair.a.close();
        pair.b.close();
    });
    child.join();
    Bytes got(1000);
    pair.b.recv(1, got, 2);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
    assert_true(got == pattern(1000, 1));
    assert_int_equal(pair.a.count(DTRAIN_TP_PEER_LOST), 0);
}

} // namespace

int main() {
    subject.plugin = &dtrain_tp_plugin_shm;
    const CMUnitTest tests[] = {
        cmocka_unit_test(processes_do_not_sleep_through_messages),
        cmocka_unit_test(threads_do_not_sleep_through_messages),
        cmocka_unit_test(operations_wake_who_sleeps_meanwhile),
        cmocka_unit_test(a_killed_peer_is_noticed),
        cmocka_unit_test(a_killed_receiver_is_noticed),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(a_forked_child_may_close),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
