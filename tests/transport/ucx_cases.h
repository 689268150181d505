// Cases of the UCX transport's own: keys that are none, networks that are not here, children, and
// what strangers send.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_remote.h"
#include "child.h"
#include "rdm_cases.h"
#include "rig.h"

#include <netinet/in.h>
#include <random>
#include <sys/socket.h>

namespace dtrain::test {

// Ends the operation, never the process or the connection.
inline void keys_that_are_none_reach_nothing(void **) {
    need_caps(DTRAIN_TP_CAP_PUT);
    Pair pair;
    Registered remote(pair.b, Bytes(4096)), local(pair.a, pattern(4096, 1));
    const dtrain_tp_iov_t iov{local.bytes.data(), 1000, local.mr};
    std::mt19937_64 random(choose_seed());
    uint64_t cookie = 1;
    const auto refused = [&](const Bytes &rkey, uint64_t address) {
        cookie++;
        assert_int_equal(ops().put(pair.to_b, &iov, 1, address, rkey.data(), 0, cookie), DTRAIN_OK);
        assert_int_not_equal(await(pair.both(), pair.a, DTRAIN_TP_PUT, cookie).status, DTRAIN_OK);
    };
    for (int i = 0; i < 200; i++) {
        Bytes rkey = remote.rkey;
        rkey[random() % rkey.size()] ^= uint8_t(1 + random() % 255);
        refused(rkey, remote.at(0));
    }
    refused(Bytes(remote.rkey.size()), remote.at(0));
    refused(remote.rkey, remote.at(0) - 1);
    refused(remote.rkey, remote.at(4096 - 999));
    refused(remote.rkey, 0);
    assert_true(remote.bytes == Bytes(4096));
    assert_int_equal(ops().put(pair.to_b, &iov, 1, remote.at(3096), remote.rkey.data(), 0, 1),
                     DTRAIN_OK);
    await_ok(pair.both(), pair.a, DTRAIN_TP_PUT, 1);
    assert_memory_equal(remote.bytes.data() + 3096, local.bytes.data(), 1000);
}

inline void networks_that_are_not_here_are_named(void **) {
    for (const char *networks : {"no_such_network", "self,cma"}) {
        FakeHost host;
        host.options["ucx.tls"] = networks;
        char names[64];
        assert_int_equal(ops().list(host.table(), names, sizeof names), DTRAIN_ERR_UNSUPPORTED);
        assert_non_null(strstr(host.text().c_str(), "ucx.tls"));
    }
}

// UCX's thread is not in a child: connections to it would hang.
inline void a_child_of_a_user_is_refused(void **) {
    Node parent;
    Child child([](int) {
        FakeHost host;
        host.options = subject.options;
        dtrain_tp_dev_t *dev = nullptr;
        assert_int_equal(ops().open(host.table(), "ucx", &dev), DTRAIN_ERR_STATE);
        assert_non_null(strstr(host.text().c_str(), "forked"));
    });
    child.join();
}

inline std::vector<sockaddr_in> own_ports() {
    std::vector<sockaddr_in> ports;
    for (int fd = 3; fd < 4096; fd++) {
        int listens = 0;
        socklen_t len = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens) continue;
        sockaddr_in address{};
        len = sizeof address;
        if (!getsockname(fd, reinterpret_cast<sockaddr *>(&address), &len) &&
            address.sin_family == AF_INET)
            ports.push_back(address);
    }
    return ports;
}

inline void what_strangers_send_is_dropped(void **) {
    Pair pair;
    const std::vector<sockaddr_in> ports = own_ports();
    if (ports.empty()) return; // shared memory has none
    std::mt19937_64 random(choose_seed());
    for (int i = 0; i < 20; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in &port = ports[random() % ports.size()];
        assert_int_equal(connect(fd, reinterpret_cast<const sockaddr *>(&port), sizeof port), 0);
        const Bytes garbage = pattern(1 + random() % 100'000, random());
        (void)!::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        drive_rounds(pair.both(), 20);
        Bytes got(1000);
        pair.b.recv(7, got, 1);
        pair.a.send(pair.to_b, 7, pattern(1000, 3), 2);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
        assert_true(got == pattern(1000, 3));
        ::close(fd);
    }
}

inline const CMUnitTest ucx_cases[] = {
    rdm_cases[0],
    cmocka_unit_test(keys_that_are_none_reach_nothing),
    cmocka_unit_test(networks_that_are_not_here_are_named),
    cmocka_unit_test(a_child_of_a_user_is_refused),
    cmocka_unit_test(what_strangers_send_is_dropped),
};

} // namespace dtrain::test
