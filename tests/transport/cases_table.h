// Cases: the plugin's table, devices, addresses.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

inline void table_is_whole(void **) {
    const dtrain_tp_plugin_t &plugin = *subject.plugin;
    assert_true(plugin.struct_size >= sizeof plugin);
    assert_true(plugin.abi >= 1 && plugin.abi <= DTRAIN_TP_ABI);
    assert_true(plugin.name[0] && plugin.version[0]);
    const dtrain_tp_ops_t *t = plugin.ops;
    assert_true(t->struct_size <= sizeof *t || t->struct_size % sizeof(void *) == 0);
    assert_true(DTRAIN_TP_HAS(t, list) && DTRAIN_TP_HAS(t, open) && DTRAIN_TP_HAS(t, close));
    assert_true(DTRAIN_TP_HAS(t, query) && DTRAIN_TP_HAS(t, address));
    assert_true(DTRAIN_TP_HAS(t, reachable) && DTRAIN_TP_HAS(t, connect));
    assert_true(DTRAIN_TP_HAS(t, disconnect) && DTRAIN_TP_HAS(t, send) && DTRAIN_TP_HAS(t, recv));
    assert_true(DTRAIN_TP_HAS(t, cancel) && DTRAIN_TP_HAS(t, purge) && DTRAIN_TP_HAS(t, progress));
}

inline void capabilities_have_their_operations(void **) {
    Node node;
    const dtrain_tp_ops_t *t = &ops();
    const uint64_t caps = node.attr.caps;
    if (caps & DTRAIN_TP_CAP_EVENT_FD)
        assert_true(DTRAIN_TP_HAS(t, event_fd) && DTRAIN_TP_HAS(t, arm));
    if (caps & (DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET)) {
        assert_true(DTRAIN_TP_HAS(t, mr_reg) && DTRAIN_TP_HAS(t, mr_dereg));
        assert_true(DTRAIN_TP_HAS(t, mr_rkey));
    }
    if (caps & DTRAIN_TP_CAP_PUT) assert_true(DTRAIN_TP_HAS(t, put));
    if (caps & DTRAIN_TP_CAP_GET) assert_true(DTRAIN_TP_HAS(t, get));
    if (caps & DTRAIN_TP_CAP_WINDOW) {
        assert_true(DTRAIN_TP_HAS(t, window_create) && DTRAIN_TP_HAS(t, window_attach));
        assert_true(DTRAIN_TP_HAS(t, window_address) && DTRAIN_TP_HAS(t, window_ring));
        assert_true(DTRAIN_TP_HAS(t, window_free));
    }
}

inline void query_writes_no_more_than_struct_size(void **) {
    Node node;
    for (uint32_t size = sizeof(uint32_t); size <= sizeof(dtrain_tp_attr_t); size += 4) {
        Bytes bytes(sizeof(dtrain_tp_attr_t) + 64, 0xA5);
        auto *attr = reinterpret_cast<dtrain_tp_attr_t *>(bytes.data());
        attr->struct_size = size;
        assert_int_equal(ops().query(node.dev, attr), DTRAIN_OK);
        assert_int_equal(attr->struct_size, size);
        for (size_t i = size; i < bytes.size(); i++) assert_int_equal(bytes[i], 0xA5);
    }
}

inline void query_tells_sane_values(void **) {
    Node node;
    const dtrain_tp_attr_t &attr = node.attr;
    assert_true(attr.max_iov >= 1 && attr.max_message >= 1 << 30);
    assert_true(attr.eager_limit <= attr.max_message);
    assert_true(attr.address_len > 0 && attr.address_len <= 4096);
    assert_true(attr.numa_node >= -1);
    assert_true(attr.remote_latency_ns == 0 || attr.remote_latency_ns >= attr.latency_ns);
    assert_true(attr.remote_bandwidth_bps <= attr.bandwidth_bps);
}

inline void list_respects_its_buffer(void **) {
    FakeHost host;
    host.options = subject.options;
    host.plugins = subject.plugins;
    char names[64] = {0x5A, 0x5A, 0x5A};
    assert_int_not_equal(ops().list(host.table(), names, 1), DTRAIN_OK);
    assert_int_equal(names[1], 0x5A);
}

inline void opening_and_closing_leaks_no_descriptor(void **) {
    { const Node first; } // whatever the process keeps for good
    const size_t before = open_fds();
    for (int i = 0; i < 20; i++) {
        const Pair pair;
    }
    assert_int_equal(open_fds(), before);
}

inline void descriptors_close_on_exec(void **) {
    const Pair pair;
    for (int fd = 3; fd < 4096; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        char path[64], target[256] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (flags < 0 || readlink(path, target, sizeof target - 1) < 0) continue;
        // Only what a transport makes; the test runner may have left others open.
        if (strstr(target, "socket:") || strstr(target, "eventpoll") || strstr(target, "memfd"))
            assert_true(flags & FD_CLOEXEC);
    }
}

inline void addresses_differ(void **) {
    Node a, b;
    assert_true(a.address() != b.address());
    assert_true(a.address() == a.address());
}

inline void a_short_buffer_for_the_address_fails(void **) {
    Node node;
    Bytes bytes(node.attr.address_len, 0xA5);
    assert_int_not_equal(ops().address(node.dev, bytes.data(), bytes.size() - 1), DTRAIN_OK);
    assert_int_equal(bytes.back(), 0xA5);
}

inline void peers_are_reachable(void **) {
    Node a, b;
    const Bytes own = a.address(), other = b.address();
    assert_int_equal(ops().reachable(a.dev, own.data(), own.size()), DTRAIN_OK);
    assert_int_equal(ops().reachable(a.dev, other.data(), other.size()), DTRAIN_OK);
}

inline void wrong_lengths_of_addresses_are_refused(void **) {
    Node a, b;
    const Bytes good = b.address();
    for (size_t len = 0; len <= good.size() + 8; len++) {
        if (len == good.size()) continue;
        Bytes bytes(good); // exactly len bytes, so that reading past them shows
        bytes.resize(len);
        bytes.shrink_to_fit();
        dtrain_tp_ep_t *ep = nullptr;
        assert_int_not_equal(ops().reachable(a.dev, bytes.data(), len), DTRAIN_OK);
        assert_int_not_equal(ops().connect(a.dev, bytes.data(), len, 1, &ep), DTRAIN_OK);
        assert_null(ep);
    }
}

inline void garbage_addresses_do_no_harm(void **) {
    Node a, b;
    const Bytes good = b.address();
    for (uint64_t seed = 1; seed <= 500; seed++) {
        const Bytes noise = pattern(good.size(), seed);
        Bytes bytes = noise;
        if (seed % 2) { // a good one with one wrong byte
            bytes = good;
            bytes[seed % good.size()] ^= noise[0] | 1;
        }
        ops().reachable(a.dev, bytes.data(), bytes.size());
        dtrain_tp_ep_t *ep = nullptr;
        if (ops().connect(a.dev, bytes.data(), bytes.size(), 1, &ep) != DTRAIN_OK) continue;
        drive_rounds({&a, &b}, 3);
        ops().disconnect(ep);
    }
    a.done.clear();
    dtrain_tp_ep_t *to_b = a.start_connect(good, 7);
    await_ok({&a, &b}, a, DTRAIN_TP_CONNECT, 7);
    Bytes got(4);
    b.recv(1, got, 8);
    a.send(to_b, 1, {1, 2, 3, 4}, 9);
    await_ok({&a, &b}, b, DTRAIN_TP_RECV, 8);
    assert_int_equal(got[3], 4);
}

inline const CMUnitTest table_cases[] = {
    cmocka_unit_test(table_is_whole),
    cmocka_unit_test(capabilities_have_their_operations),
    cmocka_unit_test(query_writes_no_more_than_struct_size),
    cmocka_unit_test(query_tells_sane_values),
    cmocka_unit_test(list_respects_its_buffer),
    cmocka_unit_test(opening_and_closing_leaks_no_descriptor),
    cmocka_unit_test(descriptors_close_on_exec),
    cmocka_unit_test(addresses_differ),
    cmocka_unit_test(a_short_buffer_for_the_address_fails),
    cmocka_unit_test(peers_are_reachable),
    cmocka_unit_test(wrong_lengths_of_addresses_are_refused),
    cmocka_unit_test(garbage_addresses_do_no_harm),
};

} // namespace dtrain::test
