// The simulated network: waiting for receives, bounds, lost peers, remote memory, sleeping threads.
// SPDX-License-Identifier: Apache-2.0
#include "loaded.h"
#include "rig.h"

#include <atomic>
#include <cstring>
#include <poll.h>
#include <thread>

using namespace dtrain::test;

namespace {

std::deque<Node> make_nodes(int n, const Settings &settings = {}) {
    std::deque<Node> nodes;
    for (int i = 0; i < n; i++) nodes.emplace_back("", settings);
    return nodes;
}

void test_eager_and_waiting(void **) {
    auto nodes = make_nodes(2, {{"plugin.sim.eager", "100"}});
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 0);
    char small[100] = "small", large[101] = "large", in[101] = {};
    nodes[0].send(ep, 1, small, sizeof small, 1);
    nodes[0].send(ep, 2, large, sizeof large, 2);
    auto done = drain(nodes);
    assert_int_equal(count(done[0], DTRAIN_TP_SEND), 1);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 1).status, DTRAIN_OK);
    small[0] = large[0] = 'S'; // the first was copied, the second was not
    nodes[1].recv(1, exact, in, sizeof in, 3);
    done = drain(nodes);
    assert_int_equal(find(done[1], DTRAIN_TP_RECV, 3).bytes, sizeof small);
    assert_string_equal(in, "small");
    nodes[1].recv(2, exact, in, 4, 4);
    done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 2).status, DTRAIN_OK);
    assert_int_equal(find(done[1], DTRAIN_TP_RECV, 4).status, DTRAIN_ERR_TRUNCATED);
    assert_int_equal(find(done[1], DTRAIN_TP_RECV, 4).bytes, sizeof large);
    assert_memory_equal(in, "Sarg", 4);
}

void test_bounded_buffer(void **) {
    auto nodes = make_nodes(2, {{"plugin.sim.buffer", "1000"}, {"plugin.sim.jitter", "5000"}});
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 0);
    uint64_t out[20][25], in[25];
    for (uint64_t i = 0; i < 20; i++) {
        out[i][0] = i;
        nodes[0].send(ep, i % 2, out[i], sizeof out[i], i);
    }
    auto done = drain(nodes);
    assert_in_range(count(done[0], DTRAIN_TP_SEND), 1, 4); // 200 bytes and their cost each
    for (uint64_t i = 0; i < 20; i++) { // tag 1 first: it is not stuck behind tag 0
        const uint64_t tag = i < 10 ? 1 : 0;
        nodes[1].recv(tag, exact, in, sizeof in, i);
        auto more = drain(nodes);
        assert_int_equal(find(more[1], DTRAIN_TP_RECV, i).status, DTRAIN_OK);
        assert_int_equal(in[0], 2 * (i % 10) + tag);
        done[0].insert(done[0].end(), more[0].begin(), more[0].end());
    }
    assert_int_equal(count(done[0], DTRAIN_TP_SEND), 20);
}

void test_disconnect(void **) {
    auto nodes = make_nodes(2);
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 0);
    drain(nodes);
    std::vector<char> large(100000), in(100000);
    nodes[0].send(ep, 1, large.data(), large.size(), 1);
    drain(nodes); // it has been announced
    nodes[0].send(ep, 2, large.data(), large.size(), 2);
    nodes[0].send(ep, 3, "eager", 6, 3);
    nodes[0].disconnect(ep);
    auto done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 1).status, DTRAIN_ERR_CANCELED);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 2).status, DTRAIN_ERR_CANCELED);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 3).status, DTRAIN_OK);
    nodes[1].recv(0, 0, in.data(), in.size(), 4);
    done = drain(nodes);
    assert_int_equal(find(done[1], DTRAIN_TP_RECV, 4).tag, 3);
    assert_string_equal(in.data(), "eager");
}

void test_lost_peer(void **) {
    auto nodes = make_nodes(3);
    dtrain_tp_ep_t *to_1 = nodes[0].start_connect(nodes[1].address(), 10),
                   *back = nodes[1].start_connect(nodes[0].address(), 30);
    nodes[2].start_connect(nodes[0].address(), 20);
    drain(nodes);
    std::vector<char> large(100000);
    nodes[0].send(to_1, 1, large.data(), large.size(), 1);
    drain(nodes);
    nodes[1].send(back, 7, "last", 5, 2);
    nodes[1].disconnect(back);
    const Bytes address = nodes[1].address();
    nodes[1].close();
    char in[8] = {};
    nodes[0].recv(7, exact, in, sizeof in, 3);
    auto done = drain(nodes);
    assert_string_equal(in, "last"); // what was sent before still came
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 1).status, DTRAIN_ERR_PEER);
    assert_int_equal(find(done[0], DTRAIN_TP_PEER_LOST, 10).status, DTRAIN_ERR_PEER);
    assert_int_equal(count(done[2], DTRAIN_TP_PEER_LOST), 0);
    assert_int_equal(nodes[0].try_send(to_1, 1, in, 1, 4), DTRAIN_ERR_PEER);
    nodes[0].disconnect(to_1);
    nodes[0].start_connect(address, 40);
    done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_CONNECT, 40).status, DTRAIN_ERR_PEER);
}

void test_put_and_get(void **) {
    auto nodes = make_nodes(2);
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 0);
    uint32_t remote[4] = {1, 2, 3, 4}, local[4] = {5, 6, 7, 8};
    dtrain_mem_params_t mem;
    DTRAIN_INIT(&mem);
    mem.address = remote;
    mem.length = sizeof remote;
    dtrain_tp_mr_t *mr = nullptr;
    assert_int_equal(ops().mr_reg(nodes[1].dev, &mem, &mr), DTRAIN_OK);
    uint8_t rkey[8];
    assert_int_equal(ops().mr_rkey(mr, rkey, sizeof rkey), DTRAIN_OK);
    const dtrain_tp_iov_t pieces[] = {{&local[2], 4, nullptr}, {&local[0], 4, nullptr}};
    const auto at = reinterpret_cast<uintptr_t>(remote);
    assert_int_equal(ops().put(ep, pieces, 2, at + 4, rkey, 77, 1), DTRAIN_OK);
    auto done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_PUT, 1).status, DTRAIN_OK);
    assert_int_equal(find(done[1], DTRAIN_TP_PUT_ARRIVED, 0).imm, 77);
    const uint32_t after_put[] = {1, 7, 5, 4}, after_get[] = {7, 6, 1, 8};
    assert_memory_equal(remote, after_put, sizeof remote);
    assert_int_equal(ops().get(ep, pieces, 2, at, rkey, 2), DTRAIN_OK);
    done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_GET, 2).status, DTRAIN_OK);
    assert_memory_equal(local, after_get, sizeof local);
    // One byte too far, before the start, wrapped around, no longer registered.
    assert_int_equal(ops().put(ep, pieces, 2, at + 9, rkey, 0, 3), DTRAIN_OK);
    assert_int_equal(ops().get(ep, pieces, 2, at - 1, rkey, 4), DTRAIN_OK);
    assert_int_equal(ops().get(ep, pieces, 2, exact - 3, rkey, 5), DTRAIN_OK);
    done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_PUT, 3).status, DTRAIN_ERR_INVALID);
    assert_int_equal(find(done[0], DTRAIN_TP_GET, 4).status, DTRAIN_ERR_INVALID);
    assert_int_equal(find(done[0], DTRAIN_TP_GET, 5).status, DTRAIN_ERR_INVALID);
    ops().mr_dereg(mr);
    assert_int_equal(ops().put(ep, pieces, 2, at, rkey, 0, 6), DTRAIN_OK);
    done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_PUT, 6).status, DTRAIN_ERR_INVALID);
    assert_memory_equal(remote, after_put, sizeof remote);
}

// Sleeps in poll(2) until the next completion of this kind. False: none came.
bool sleep_until(Node &node, uint32_t kind) {
    for (;;) {
        dtrain_tp_done_t done;
        if (ops().progress(node.dev, &done, 1) == 1) {
            if (done.kind == kind) return done.status == DTRAIN_OK;
            continue;
        }
        if (ops().arm(node.dev) != DTRAIN_OK) continue;
        pollfd fd = {ops().event_fd(node.dev), POLLIN, 0};
        if (poll(&fd, 1, 20000) != 1) return false;
    }
}

// Threads that sleep pass a token on, many times around.
void test_threads_that_sleep(void **) {
    constexpr size_t n = 4, laps = 50;
    auto nodes = make_nodes(n, {{"plugin.sim.jitter", "1000"}});
    std::vector<dtrain_tp_ep_t *> eps;
    for (size_t i = 0; i < n; i++)
        eps.push_back(nodes[i].start_connect(nodes[(i + 1) % n].address(), 0));
    std::atomic<int> failures = 0; // cmocka's assertions belong to the main thread
    auto run = [&](size_t i) {
        uint64_t token = 0;
        const dtrain_tp_iov_t iov = {&token, sizeof token, nullptr};
        for (size_t lap = 0; lap < laps; lap++) {
            if (i != 0 || lap > 0)
                failures += ops().recv(nodes[i].dev, 5, exact, &iov, 1, 1) != DTRAIN_OK ||
                            !sleep_until(nodes[i], DTRAIN_TP_RECV);
            failures += token != lap * n + i;
            token++;
            failures += ops().send(eps[i], 5, &iov, 1, 2) != DTRAIN_OK ||
                        !sleep_until(nodes[i], DTRAIN_TP_SEND);
        }
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++) threads.emplace_back(run, i);
    for (std::thread &thread : threads) thread.join();
    assert_int_equal(failures, 0);
}

void test_window(void **) {
    auto nodes = make_nodes(2);
    dtrain_tp_ep_t *ep = nodes[1].start_connect(nodes[0].address(), 0);
    drain(nodes);
    uint8_t handle[8];
    dtrain_tp_win_t *first = nullptr, *second = nullptr;
    assert_int_equal(ops().window_create(nodes[0].dev, 5000, 2, 0, handle, &first), DTRAIN_OK);
    assert_int_equal(ops().window_attach(nodes[1].dev, ep, handle, 5001, 2, 1, &second),
                     DTRAIN_ERR_INVALID);
    assert_int_equal(ops().window_attach(nodes[1].dev, ep, handle, 5000, 2, 1, &second), DTRAIN_OK);
    auto *a = static_cast<char *>(ops().window_address(first)),
         *b = static_cast<char *>(ops().window_address(second));
    assert_int_equal(reinterpret_cast<uintptr_t>(a) % 4096, 0);
    for (int i = 0; i < 5000; i++) assert_int_equal(b[i], 0);
    pollfd fd = {ops().event_fd(nodes[1].dev), POLLIN, 0};
    assert_int_equal(ops().arm(nodes[1].dev), DTRAIN_OK);
    assert_int_equal(poll(&fd, 1, 0), 0);
    a[4999] = 3;
    ops().window_ring(first);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(b[4999], 3);
    ops().window_free(first);
    assert_int_equal(b[4999], 3); // local to the member that freed it
    ops().window_ring(second);
    ops().window_free(second);
    assert_int_equal(ops().window_attach(nodes[1].dev, ep, handle, 5000, 2, 1, &second),
                     DTRAIN_ERR_NOT_FOUND);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_eager_and_waiting),
        cmocka_unit_test(test_bounded_buffer),
        cmocka_unit_test(test_disconnect),
        cmocka_unit_test(test_lost_peer),
        cmocka_unit_test(test_put_and_get),
        cmocka_unit_test(test_threads_that_sleep),
        cmocka_unit_test(test_window),
    };
    subject.plugin = load("sim");
    if (!subject.plugin) return 1;
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
