// Cases: memory of other members, as windows or through put and get. For transports that can.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_events.h"
#include "cases_loss.h"

namespace dtrain::test {

inline constexpr uint64_t window_bytes = 100'000;

// A window of two members; the second attaches through its endpoint to the first.
struct Window {
    Pair pair;
    Bytes handle;
    dtrain_tp_win_t *of_b = nullptr, *of_a = nullptr;

    Window() : handle(pair.b.attr.window_handle_len) {
        assert_int_equal(ops().window_create(pair.b.dev, window_bytes, 2, 0, handle.data(), &of_b),
                         DTRAIN_OK);
        dtrain_status_t status = DTRAIN_ERR_BUSY;
        assert_true(drive(pair.both(), [&] {
            status = attach();
            return status != DTRAIN_ERR_BUSY;
        }));
        assert_int_equal(status, DTRAIN_OK);
    }
    ~Window() {
        if (of_a) ops().window_free(of_a);
        if (of_b) ops().window_free(of_b);
    }
    dtrain_status_t attach() {
        return ops().window_attach(pair.a.dev, pair.to_b, handle.data(), window_bytes, 2, 1, &of_a);
    }
    static uint8_t *bytes(dtrain_tp_win_t *win) {
        return static_cast<uint8_t *>(ops().window_address(win));
    }
};

inline void windows_start_zeroed_and_aligned(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW);
    Window window;
    for (dtrain_tp_win_t *win : {window.of_a, window.of_b}) {
        const uint8_t *bytes = Window::bytes(win);
        assert_int_equal(uintptr_t(bytes) % 4096, 0);
        for (uint64_t i = 0; i < window_bytes; i++) assert_int_equal(bytes[i], 0);
    }
}

inline void members_of_a_window_see_each_others_stores(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW);
    Window window;
    uint8_t *a = Window::bytes(window.of_a), *b = Window::bytes(window.of_b);
    for (uint64_t i = 0; i < window_bytes; i++) (i % 2 ? a : b)[i] = uint8_t(i * 7);
    for (uint64_t i = 0; i < window_bytes; i++) {
        assert_int_equal(a[i], uint8_t(i * 7));
        assert_int_equal(b[i], uint8_t(i * 7));
    }
}

inline void freeing_a_window_is_local(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW);
    Window window;
    ops().window_free(std::exchange(window.of_b, nullptr));
    uint8_t *a = Window::bytes(window.of_a);
    a[window_bytes - 1] = 42;
    assert_int_equal(a[window_bytes - 1], 42);
    window.pair.b.close();
    assert_int_equal(a[window_bytes - 1], 42);
}

inline void wrong_handles_and_sizes_are_refused(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW);
    Window window;
    dtrain_tp_win_t *win = nullptr;
    const auto refused = [&](const Bytes &handle, uint64_t bytes) {
        dtrain_status_t status = DTRAIN_ERR_BUSY;
        assert_true(drive(window.pair.both(), [&] {
            status = ops().window_attach(window.pair.a.dev, window.pair.to_b, handle.data(), bytes,
                                         2, 1, &win);
            return status != DTRAIN_ERR_BUSY;
        }));
        return status < 0 && !win;
    };
    Bytes wrong = window.handle;
    for (uint8_t &byte : wrong) byte = uint8_t(~byte);
    assert_true(refused(wrong, window_bytes));
    assert_true(refused(window.handle, uint64_t{1} << 50));
}

// A member stores, then rings; the other sleeps unless it sees the store. Nobody may oversleep.
inline void a_ring_wakes_an_armed_member(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW | DTRAIN_TP_CAP_EVENT_FD);
    Window window;
    const auto play = [](Node &node, dtrain_tp_win_t *win, size_t own, size_t other) {
        auto *counters = static_cast<std::atomic<uint32_t> *>(ops().window_address(win));
        for (uint32_t i = 1; i <= 3000; i++) {
            counters[own * 16].store(i, std::memory_order_release);
            ops().window_ring(win);
            const auto seen = [&] {
                return counters[other * 16].load(std::memory_order_acquire) >= i;
            };
            const int64_t deadline = now_ns() + 20'000'000'000;
            while (!seen()) {
                if (now_ns() > deadline) return false;
                node.progress();
                // After arming, look once more: the store may have come before.
                if (ops().arm(node.dev) == DTRAIN_OK && !seen() &&
                    !readable(ops().event_fd(node.dev), 1000))
                    return false;
            }
        }
        return true;
    };
    bool other = false;
    std::thread thread([&] { other = play(window.pair.b, window.of_b, 1, 0); });
    const bool own = play(window.pair.a, window.of_a, 0, 1);
    thread.join();
    assert_true(own && other);
}

inline void windows_and_endpoints_leak_no_descriptor(void **) {
    need_caps(DTRAIN_TP_CAP_WINDOW);
    const size_t before = open_fds();
    for (int i = 0; i < 10; i++) {
        Window window;
    }
    assert_int_equal(open_fds(), before);
}

struct Registered { // memory of one node that the other may reach
    Node &node;
    Bytes bytes;
    dtrain_tp_mr_t *mr = nullptr;
    Bytes rkey;

    Registered(Node &n, Bytes content) : node(n), bytes(std::move(content)), rkey(n.attr.rkey_len) {
        dtrain_mem_params_t mem;
        DTRAIN_INIT(&mem);
        mem.mem_type = DTRAIN_MEM_HOST;
        mem.address = bytes.data();
        mem.length = bytes.size();
        assert_int_equal(ops().mr_reg(node.dev, &mem, &mr), DTRAIN_OK);
        assert_int_equal(ops().mr_rkey(mr, rkey.data(), rkey.size()), DTRAIN_OK);
    }
    ~Registered() { ops().mr_dereg(mr); }
    uint64_t at(size_t offset) { return uint64_t(uintptr_t(bytes.data() + offset)); }
};

inline void put_writes_remote_memory(void **) {
    need_caps(DTRAIN_TP_CAP_PUT);
    Pair pair;
    Registered remote(pair.b, Bytes(1 << 20)), local(pair.a, pattern(1 << 20, 1));
    const dtrain_tp_iov_t iov{local.bytes.data() + 5, 500'000, local.mr};
    assert_int_equal(ops().put(pair.to_b, &iov, 1, remote.at(100), remote.rkey.data(), 77, 1),
                     DTRAIN_OK);
    await_ok(pair.both(), pair.a, DTRAIN_TP_PUT, 1);
    assert_true(drive(pair.both(), [&] {
        for (const auto &done : pair.b.done)
            if (done.kind == DTRAIN_TP_PUT_ARRIVED && done.imm == 77) return true;
        return false;
    }));
    assert_int_equal(ops().put(pair.to_b, &iov, 1, remote.at(100), remote.rkey.data(), 0, 2),
                     DTRAIN_OK); // without an immediate
    await_ok(pair.both(), pair.a, DTRAIN_TP_PUT, 2);
    drive_rounds(pair.both(), 10);
    assert_int_equal(pair.b.count(DTRAIN_TP_PUT_ARRIVED), 1);
    assert_memory_equal(remote.bytes.data() + 100, local.bytes.data() + 5, 500'000);
    assert_true(remote.bytes[99] == 0 && remote.bytes[500'100] == 0);
}

inline void get_reads_remote_memory(void **) {
    need_caps(DTRAIN_TP_CAP_GET);
    Pair pair;
    Registered remote(pair.b, pattern(1 << 20, 1)), local(pair.a, Bytes(1 << 20));
    const dtrain_tp_iov_t iov{local.bytes.data() + 5, 500'000, local.mr};
    assert_int_equal(ops().get(pair.to_b, &iov, 1, remote.at(100), remote.rkey.data(), 1),
                     DTRAIN_OK);
    await_ok(pair.both(), pair.a, DTRAIN_TP_GET, 1);
    assert_memory_equal(remote.bytes.data() + 100, local.bytes.data() + 5, 500'000);
    assert_true(local.bytes[4] == 0 && local.bytes[500'005] == 0);
}

inline const CMUnitTest remote_cases[] = {
    cmocka_unit_test(windows_start_zeroed_and_aligned),
    cmocka_unit_test(members_of_a_window_see_each_others_stores),
    cmocka_unit_test(freeing_a_window_is_local),
    cmocka_unit_test(wrong_handles_and_sizes_are_refused),
    cmocka_unit_test(a_ring_wakes_an_armed_member),
    cmocka_unit_test(windows_and_endpoints_leak_no_descriptor),
    cmocka_unit_test(put_writes_remote_memory),
    cmocka_unit_test(get_reads_remote_memory),
};

} // namespace dtrain::test
