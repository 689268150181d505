// Cases of TCP alone: what a port on a network has to put up with, and its options.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_connect.h"
#include "cases_events.h"
#include "cases_loss.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace dtrain::test {

// Bytes 24 and 25 of an address are its port.
inline int call(const Bytes &address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    memcpy(&to.sin_port, address.data() + 24, 2);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to), 0);
    return fd;
}
inline void say(int fd, const void *bytes, size_t len) { send(fd, bytes, len, MSG_NOSIGNAL); }
// The other side has hung up.
inline bool hung_up(int fd) {
    char bytes[512];
    const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

inline void garbage_costs_only_its_connection(void **) {
    Pair pair;
    const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (uint64_t seed = 0; seed < 50; seed++) {
        const int fd = call(pair.b.address());
        const Bytes noise = pattern(1 + seed * 7, seed);
        if (seed % 2)
            say(fd, http, sizeof http - 1);
        else
            say(fd, noise.data(), noise.size());
        assert_true(drive(pair.both(), [&] { return hung_up(fd); }));
        close(fd);
        exchange(pair.both(), pair.a, pair.to_b, pair.b, seed);
    }
    assert_int_equal(pair.b.done.size() + pair.a.done.size(), 0);
}

constexpr size_t hello_bytes = 100, reply_bytes = 4 + hello_bytes + 32;

// A hello like that of a device, cut short or altered.
inline Bytes hello_to(const Bytes &address) {
    Bytes hello(hello_bytes);
    memcpy(hello.data(), "DTRN\x03\x00\x00\x00", 8);
    for (size_t i = 8; i < 24; i++) hello[i] = uint8_t(i);
    memcpy(hello.data() + 24, address.data(), 16);
    return hello;
}

inline void broken_hellos_are_refused(void **) {
    Node b("secret");
    const Bytes good = hello_to(b.address());
    for (const size_t byte : {4, 24, 39}) { // version, device
        Bytes bad = good;
        bad[byte] ^= 1;
        const int fd = call(b.address());
        say(fd, bad.data(), bad.size());
        uint32_t verdict = 0;
        assert_true(drive({&b}, [&] { return recv(fd, &verdict, 4, MSG_DONTWAIT) == 4; }));
        assert_int_not_equal(verdict, 0);
        assert_true(drive({&b}, [&] { return hung_up(fd); }));
        close(fd);
    }
}

inline void a_stranger_without_the_secret_learns_nothing(void **) {
    Node b("secret");
    Bytes hello = hello_to(b.address());
    hello[6] = 1; // claims to have a secret
    const int fd = call(b.address());
    say(fd, hello.data(), hello.size());
    uint8_t reply[reply_bytes];
    size_t have = 0;
    assert_true(drive({&b}, [&] {
        const ssize_t n = recv(fd, reply + have, sizeof reply - have, MSG_DONTWAIT);
        if (n > 0) have += size_t(n);
        return have == sizeof reply;
    }));
    say(fd, reply + 4 + hello_bytes, 32); // the proof of the other role, reflected
    uint32_t verdict = 0;
    assert_true(drive({&b}, [&] { return recv(fd, &verdict, 4, MSG_DONTWAIT) == 4; }));
    assert_int_equal(verdict, 2);
    assert_true(drive({&b}, [&] { return hung_up(fd); }));
    close(fd);
}

inline void frames_out_of_line_cost_only_their_connection(void **) {
    for (uint64_t seed = 1; seed < 60; seed++) {
        Pair pair;
        const Bytes hello = hello_to(pair.b.address());
        const int fd = call(pair.b.address());
        say(fd, hello.data(), hello.size());
        uint8_t reply[reply_bytes + 4];
        size_t have = 0;
        const auto hear = [&](size_t len) {
            have = 0;
            assert_true(drive(pair.both(), [&] {
                const ssize_t n = recv(fd, reply + have, len - have, MSG_DONTWAIT);
                if (n > 0) have += size_t(n);
                return have == len;
            }));
        };
        hear(reply_bytes);
        const uint8_t no_proof[32] = {};
        say(fd, no_proof, sizeof no_proof);
        hear(4); // accepted: there is no secret
        Bytes frames = pattern(32 * 8, seed);
        for (size_t i = 0; i < frames.size(); i += 32) frames[i] = uint8_t(1 + (seed + i / 32) % 7);
        if (seed % 3 == 0) memset(frames.data() + 17, 0, 7); // believable lengths
        say(fd, "\0\0\0\0", 4);                              // the confirmation
        say(fd, frames.data(), frames.size());
        drive_rounds(pair.both(), 50);
        exchange(pair.both(), pair.a, pair.to_b, pair.b, 1);
        close(fd);
        drive_rounds(pair.both(), 50);
        assert_int_equal(pair.b.count(DTRAIN_TP_PEER_LOST), 0);
    }
}

inline void a_crowd_of_strangers_does_not_keep_friends_out(void **) {
    Node a, b;
    std::vector<int> strangers;
    for (int i = 0; i < 200; i++) {
        strangers.push_back(call(b.address()));
        if (i % 2) say(strangers.back(), "DT", 2); // half-open and half-said
        drive_rounds({&b}, 1);
    }
    drive_rounds({&b}, 50);
    size_t held = 0;
    for (const int fd : strangers) held += !hung_up(fd);
    assert_true(held <= 64);
    assert_false(hung_up(strangers.back())); // the oldest go first
    dtrain_tp_ep_t *to_b = a.start_connect(b.address(), 1);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
    exchange({&a, &b}, a, to_b, b, 1);
    for (const int fd : strangers) close(fd);
}

// Those who say nothing do not push out a device in the middle of its handshake.
inline void a_crowd_does_not_push_out_who_has_spoken(void **) {
    Node b;
    const int member = call(b.address());
    const Bytes hello = hello_to(b.address());
    say(member, hello.data(), hello.size());
    uint8_t reply[reply_bytes + 4];
    size_t have = 0;
    const auto hear = [&](size_t len) {
        assert_true(drive({&b}, [&] {
            const ssize_t n = recv(member, reply + have, sizeof reply - have, MSG_DONTWAIT);
            if (n > 0) have += size_t(n);
            return have == len;
        }));
    };
    hear(reply_bytes);
    std::vector<int> crowd;
    for (int i = 0; i < 200; i++) {
        crowd.push_back(call(b.address()));
        drive_rounds({&b}, 1);
    }
    drive_rounds({&b}, 50);
    assert_true(hung_up(crowd[0]));
    const uint8_t no_proof[32] = {};
    say(member, no_proof, sizeof no_proof);
    hear(reply_bytes + 4);
    assert_int_equal(reply[reply_bytes], 0); // accepted
    for (const int fd : crowd) close(fd);
    // It may be stopped before it confirms, and counts on the connection afterwards.
    const int64_t accepted = now_ns();
    drive({&b}, [&] { return now_ns() - accepted > 3'500'000'000; });
    say(member, "\0\0\0\0", 4);
    drive_rounds({&b}, 50);
    assert_false(hung_up(member));
    close(member);
}

// Only the confirmation makes it a connection.
inline void a_wrong_confirmation_is_refused(void **) {
    Node b;
    const int member = call(b.address());
    const Bytes hello = hello_to(b.address());
    say(member, hello.data(), hello.size());
    const uint8_t no_proof[32] = {};
    say(member, no_proof, sizeof no_proof);
    say(member, "\0\0\1\0", 4);
    size_t have = 0;
    uint8_t reply[reply_bytes + 4];
    assert_true(drive({&b}, [&] {
        const ssize_t n = recv(member, reply, sizeof reply - have, MSG_DONTWAIT);
        if (n > 0) have += size_t(n);
        return have == sizeof reply;
    }));
    assert_true(drive({&b}, [&] { return hung_up(member); }));
    close(member);
}

// The heap that one connection costs before it has proven itself; not seen under sanitizers.
inline void a_stranger_costs_little(void **) {
    constexpr size_t crowd = 60, most = 512, private_key = 32; // in secret memory, which is no heap
    Node b("secret");
    Bytes hello = hello_to(b.address());
    hello[6] = 1; // claims to have a secret
    for (const size_t said : {size_t{0}, size_t{1}, hello.size() - 1, hello.size()}) {
        std::vector<int> strangers;
        const size_t before = mallinfo2().uordblks;
        strangers.reserve(crowd);
        for (size_t i = 0; i < crowd; i++) {
            strangers.push_back(call(b.address()));
            say(strangers.back(), hello.data(), said);
            drive_rounds({&b}, 2);
        }
        const size_t own = crowd * sizeof(int) + 16;
        const size_t each = (mallinfo2().uordblks - before - own) / crowd;
        print_message("%zu bytes said: %zu bytes of heap\n", said, each);
        if (before != 0) assert_in_range(each + private_key, 100, most);
        for (const int fd : strangers) assert_false(hung_up(fd) && said < hello.size());
        for (const int fd : strangers) close(fd);
        drive_rounds({&b}, 200);
    }
}

inline void who_is_slow_is_dropped_after_the_deadline(void **) {
    Node b;
    const Bytes hello = hello_to(b.address());
    const int fd = call(b.address());
    const int64_t begin = now_ns();
    size_t said = 0;
    assert_true(drive({&b}, [&] {
        const auto due = size_t((now_ns() - begin) / 200'000'000); // a byte each 200 ms
        if (said < due && said < hello.size()) say(fd, &hello[said++], 1);
        return hung_up(fd);
    }));
    assert_in_range((now_ns() - begin) / 1'000'000, 2500, 10'000);
    close(fd);
}

inline void a_silent_listener_fails_the_connect_after_the_deadline(void **) {
    Node a, b; // b does not progress, as if it were stopped
    a.start_connect(b.address(), 1);
    const int64_t begin = now_ns();
    assert_true(sleep_until(
        a, [&] { return a.count(DTRAIN_TP_CONNECT) == 1; }, 10'000));
    assert_int_equal(a.done[0].status, DTRAIN_ERR_PEER);
    assert_in_range((now_ns() - begin) / 1'000'000, 2500, 10'000);
}

inline void a_refused_connection_is_named(void **) {
    Node a;
    Bytes gone;
    {
        Node b;
        gone = b.address();
    }
    a.start_connect(gone, 1);
    assert_int_equal(await({&a}, a, DTRAIN_TP_CONNECT, 1).status, DTRAIN_ERR_PEER);
    assert_non_null(strstr(a.host.text().c_str(), "connection refused"));
}

// Takes all descriptors below the limit away.
class NoDescriptors {
  public:
    NoDescriptors() {
        getrlimit(RLIMIT_NOFILE, &limit_);
        rlimit low = limit_;
        low.rlim_cur = 256;
        setrlimit(RLIMIT_NOFILE, &low);
        for (int fd; (fd = dup(2)) >= 0;) taken_.push_back(fd);
    }
    ~NoDescriptors() {
        for (const int fd : taken_) close(fd);
        setrlimit(RLIMIT_NOFILE, &limit_);
    }

  private:
    rlimit limit_;
    std::vector<int> taken_;
};

inline void no_descriptors_left_does_not_spin(void **) {
    Pair pair;
    const int callers[] = {call(pair.b.address()), call(pair.b.address())}; // in the backlog
    {
        const NoDescriptors none;
        const auto idle = [&] { return ops().arm(pair.b.dev) == DTRAIN_OK; };
        assert_true(drive(pair.both(), idle, 5000));
        exchange(pair.both(), pair.a, pair.to_b, pair.b, 1);
    }
    for (const int fd : callers) {
        assert_true(hung_up(fd));
        close(fd);
    }
    Node c;
    c.start_connect(pair.b.address(), 1);
    await_ok({&pair.a, &pair.b, &c}, c, DTRAIN_TP_CONNECT, 1);
}

inline void the_interface_can_be_named(void **) {
    Node by_name("", {{"tcp.interface", "lo"}}), by_address("", {{"listen.address", "127.0.0.1"}});
    dtrain_tp_ep_t *ep = by_name.start_connect(by_address.address(), 1);
    await_ok({&by_name, &by_address}, by_name, DTRAIN_TP_CONNECT, 1);
    exchange({&by_name, &by_address}, by_name, ep, by_address, 1);
}

inline void unusable_interfaces_are_refused(void **) {
    FakeHost host;
    for (const char *name : {"no-such-interface.invalid", "0.0.0.0", "::", "192.0.2.77"}) {
        dtrain_tp_dev_t *dev = nullptr;
        assert_int_not_equal(ops().open(host.table(), name, &dev), DTRAIN_OK);
        assert_null(dev);
        assert_non_null(strstr(host.text().c_str(), "tcp: "));
    }
}

inline void ipv6_works_where_it_is(void **) {
    const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 loopback{};
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr = in6addr_loopback;
    const bool there =
        probe >= 0 && bind(probe, reinterpret_cast<sockaddr *>(&loopback), sizeof loopback) == 0;
    if (probe >= 0) close(probe);
    if (!there) {
        print_message("this host has no IPv6 loopback\n");
        skip();
    }
    Node a("", {{"tcp.interface", "::1"}}), b("", {{"tcp.interface", "::1"}});
    dtrain_tp_ep_t *ep = a.start_connect(b.address(), 1);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
    exchange({&a, &b}, a, ep, b, 1);
}

// What a device that has proven itself, or need not, is told at last; 0: welcome.
inline uint32_t introduce(Node &b, int fd, uint8_t who) {
    Bytes hello = hello_to(b.address());
    memset(hello.data() + 8, who, 16);
    hello[9] = uint8_t(fd);
    hello[10] = uint8_t(fd >> 8);
    say(fd, hello.data(), hello.size());
    uint8_t reply[reply_bytes + 4];
    size_t have = 0;
    const auto hear = [&](size_t len) {
        assert_true(drive({&b}, [&] {
            const ssize_t n = recv(fd, reply + have, len - have, MSG_DONTWAIT);
            if (n > 0) have += size_t(n);
            return have == len;
        }));
    };
    hear(reply_bytes);
    const uint8_t no_proof[32] = {};
    say(fd, no_proof, sizeof no_proof);
    hear(reply_bytes + 4);
    uint32_t verdict;
    memcpy(&verdict, reply + reply_bytes, sizeof verdict);
    return verdict;
}

// Without a secret the handshake keeps nobody out; the core names the job's own devices.
inline void devices_of_no_job_take_no_descriptors(void **) {
    for (const bool confirm : {true, false}) {
        Pair pair;
        pair.b.expect(pair.a);
        std::vector<int> strangers;
        for (int i = 0; i < 300; i++) {
            strangers.push_back(call(pair.b.address()));
            assert_int_equal(introduce(pair.b, strangers.back(), 7), 0);
            if (confirm) say(strangers.back(), "\0\0\0\0", 4);
        }
        drive_rounds(pair.both(), 50);
        size_t held = 0;
        for (const int fd : strangers) held += !hung_up(fd);
        assert_int_equal(held, 256);
        assert_true(hung_up(strangers[0])); // the oldest go first
        exchange(pair.both(), pair.a, pair.to_b, pair.b, 1);
        for (const int fd : strangers) close(fd);
    }
}

// An address, with these of the loopback before its own.
inline Bytes with_others_first(const Bytes &address, const std::vector<uint8_t> &last_bytes) {
    constexpr size_t count = 26, sockets = 32, size = 24, family = 20;
    Bytes out = address;
    size_t at = sockets;
    for (const uint8_t last : last_bytes) {
        const uint8_t ip[4] = {127, 0, 0, last};
        memcpy(&out[at], ip, sizeof ip);
        out[at + family] = 4;
        at += size;
    }
    memcpy(&out[at], &address[sockets], size);
    out[count] = uint8_t(1 + last_bytes.size());
    return out;
}

// One refuses, one is silent, the last one is right.
inline void the_next_address_is_tried(void **) {
    Node a, b;
    sockaddr_in silent{};
    silent.sin_family = AF_INET;
    memcpy(&silent.sin_port, &b.address()[24], 2);
    silent.sin_addr.s_addr = htonl(0x7f00004e); // 127.0.0.78
    auto *at = reinterpret_cast<sockaddr *>(&silent);
    int fds[4]; // a listener that takes nobody, and who fills its backlog
    for (int &fd : fds) fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fds[0], at, sizeof silent), 0);
    assert_int_equal(listen(fds[0], 0), 0);
    for (int i = 1; i < 4; i++) connect(fds[i], at, sizeof silent);
    dtrain_tp_ep_t *ep = a.start_connect(with_others_first(b.address(), {77, 78}), 1);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
    exchange({&a, &b}, a, ep, b, 1);
    for (const int fd : fds) close(fd);
}

// On one's way to the others, but the others may come another way.
inline void an_address_found_later_leads_to_all_interfaces(void **) {
    Node a, b("", {{"local.address", "127.0.0.5"}});
    const Bytes address = b.address();
    assert_memory_equal(&address[32], "\x7f\0\0\x05", 4);
    dtrain_tp_ep_t *ep = a.start_connect(address, 1);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 1);
    exchange({&a, &b}, a, ep, b, 1);
    const int elsewhere = call(address); // 127.0.0.1
    assert_int_equal(introduce(b, elsewhere, 9), 0);
    close(elsewhere);
}

inline void broken_addresses_are_none(void **) {
    Node a, b;
    const Bytes good = b.address();
    for (const auto &[at, value] : {std::pair<size_t, uint8_t>{26, 0}, {26, 5}, {27, 1}, {52, 5}}) {
        Bytes bad = good;
        bad[at] = value;
        assert_int_equal(ops().reachable(a.dev, bad.data(), bad.size()), DTRAIN_ERR_INVALID);
    }
    assert_int_equal(ops().reachable(a.dev, good.data(), 48), DTRAIN_ERR_INVALID);
}

inline void a_loopback_address_of_another_host_is_not_reachable(void **) {
    Node a, b;
    Bytes address = b.address();
    address[16] ^= 1; // the fingerprint of the host
    assert_int_equal(ops().reachable(a.dev, address.data(), address.size()), DTRAIN_ERR_NOT_FOUND);
}

inline const CMUnitTest stranger_cases[] = {
    cmocka_unit_test(garbage_costs_only_its_connection),
    cmocka_unit_test(broken_hellos_are_refused),
    cmocka_unit_test(a_stranger_without_the_secret_learns_nothing),
    cmocka_unit_test(frames_out_of_line_cost_only_their_connection),
    cmocka_unit_test(a_crowd_of_strangers_does_not_keep_friends_out),
    cmocka_unit_test(a_crowd_does_not_push_out_who_has_spoken),
    cmocka_unit_test(a_wrong_confirmation_is_refused),
    cmocka_unit_test(a_stranger_costs_little),
    cmocka_unit_test(who_is_slow_is_dropped_after_the_deadline),
    cmocka_unit_test(a_silent_listener_fails_the_connect_after_the_deadline),
    cmocka_unit_test(a_refused_connection_is_named),
    cmocka_unit_test(no_descriptors_left_does_not_spin),
    cmocka_unit_test(the_interface_can_be_named),
    cmocka_unit_test(unusable_interfaces_are_refused),
    cmocka_unit_test(ipv6_works_where_it_is),
    cmocka_unit_test(a_loopback_address_of_another_host_is_not_reachable),
    cmocka_unit_test(devices_of_no_job_take_no_descriptors),
    cmocka_unit_test(the_next_address_is_tried),
    cmocka_unit_test(an_address_found_later_leads_to_all_interfaces),
    cmocka_unit_test(broken_addresses_are_none),
};

} // namespace dtrain::test
