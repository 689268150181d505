// The congestion control of sockets, in a network of this process's own whose default is BBR.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "rig.h"
#include "tcp/socket.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace dtrain;

namespace {

const char *refused = nullptr; // why there is no such network

bool raise_loopback() {
    const tp::Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    snprintf(request.ifr_name, sizeof request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    return any && ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

bool make_bbr_usual() {
    const tp::Fd file(open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC));
    return file && write(file.get(), "bbr", 3) == 3;
}

int enter_network(void **) {
    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
        refused = "no network namespace here";
    else if (!raise_loopback() || !make_bbr_usual())
        refused = "BBR cannot be the default of a network here";
    return 0;
}

void need_network() {
    if (!refused) return;
    print_message("%s\n", refused);
    skip();
}

std::string congestion_of(const tp::Fd &fd) {
    char name[16] = "";
    socklen_t len = sizeof name - 1;
    assert_return_code(getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &len), errno);
    return name;
}

struct Connection {
    test::FakeHost fake;
    const tp::Host host{fake.table()};
    tp::Fd listening, connecting, accepted;
    std::string first; // of the connecting end, before it is connected

    explicit Connection(const char *listens_at) {
        tcp::SocketAddress address{};
        address.four.sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, listens_at, &address.four.sin_addr), 1);
        assert_int_equal(tcp::listen_on(host, &address, &listening), DTRAIN_OK);
        assert_int_equal(tcp::start_connect(address, &connecting), 0);
        first = congestion_of(connecting);
        pollfd wait{listening.get(), POLLIN, 0};
        assert_int_equal(poll(&wait, 1, 10'000), 1);
        accepted = tp::Fd(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        assert_true(bool(accepted));
    }
    void tune(const char *congestion) {
        tcp::tune(host, connecting.get(), congestion);
        tcp::tune(host, accepted.get(), congestion);
    }
};

// From 127.0.0.1 to itself, and to 127.0.0.2, which it takes for another host.
constexpr const char *same = "127.0.0.1", *other = "127.0.0.2";

void no_connection_begins_with_bbr(void **) {
    need_network();
    for (const char *address : {same, other}) {
        const Connection c(address);
        assert_string_equal(congestion_of(c.listening).c_str(), "reno");
        assert_string_equal(c.first.c_str(), "reno");
        assert_string_equal(congestion_of(c.accepted).c_str(), "reno");
    }
}

void bbr_is_left_to_connections_between_hosts(void **) {
    need_network();
    Connection inside(same), between(other);
    inside.tune("auto");
    between.tune("auto");
    for (const tp::Fd *end : {&inside.connecting, &inside.accepted})
        assert_string_equal(congestion_of(*end).c_str(), "reno");
    for (const tp::Fd *end : {&between.connecting, &between.accepted})
        assert_string_equal(congestion_of(*end).c_str(), "bbr");
}

void what_is_asked_for_is_taken(void **) {
    need_network();
    Connection inside(same), between(other);
    inside.tune("bbr");
    between.tune("reno");
    assert_string_equal(congestion_of(inside.accepted).c_str(), "bbr");
    assert_string_equal(congestion_of(between.accepted).c_str(), "reno");
    between.tune("no_such_one");
    assert_non_null(strstr(between.fake.text().c_str(), "\"no_such_one\" cannot be used here"));
    assert_string_equal(congestion_of(between.accepted).c_str(), "reno");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(no_connection_begins_with_bbr),
        cmocka_unit_test(bbr_is_left_to_connections_between_hosts),
        cmocka_unit_test(what_is_asked_for_is_taken),
    };
    return cmocka_run_group_tests(tests, enter_network, nullptr);
}
