// Devices of the transport under test, driven by hand, and what the cases say to them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "fake_host.h"

#include <algorithm>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dtrain::test {

using Settings = std::map<std::string, std::string>;

struct Subject {
    const dtrain_tp_plugin_t *plugin = nullptr;
    Settings options;
    std::string secret;                                        // of nodes that are given none
    protection::Least demand = FakeHost::usual_demand;         // of all nodes
    std::map<std::string, const dtrain_tp_plugin_t *> plugins; // for wrappers
    bool processes = true;                        // devices of different processes reach each other
    bool authenticates = true;                    // refuses peers with another secret
    bool copies_messages = true;                  // long ones, too, from and to registered memory
    bool library_writes_late = false;             // to memory that it was told to let go
    bool library_is_slow = false;                 // what is withdrawn may cost the connection
    size_t library_memory = 0;                    // bytes that the library below needs in a flood
    std::map<std::string, const char *> left_out; // cases that the library below cannot do, and why
};
inline Subject subject;
inline const dtrain_tp_ops_t &ops() { return *subject.plugin->ops; }

inline constexpr uint64_t exact = ~uint64_t{0};
using Bytes = std::vector<uint8_t>;

inline Bytes pattern(size_t len, uint64_t seed) {
    Bytes bytes(len);
    uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        bytes[i] = uint8_t(x >> 8 * (i % 8));
    }
    return bytes;
}

inline uint64_t choose_seed() {
    const char *given = getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, nullptr, 0) : uint64_t(now_ns());
    print_message("seed %llu (DTRAIN_TEST_SEED)\n", static_cast<unsigned long long>(seed));
    return seed;
}

using Dones = std::vector<dtrain_tp_done_t>;

inline size_t count(const Dones &done, uint32_t kind) {
    return size_t(std::count_if(done.begin(), done.end(), [&](auto &d) { return d.kind == kind; }));
}
inline const dtrain_tp_done_t &find(const Dones &done, uint32_t kind, uint64_t cookie) {
    for (const dtrain_tp_done_t &d : done)
        if (d.kind == kind && d.cookie == cookie) return d;
    fail_msg("no completion of kind %u with cookie %llu", kind,
             static_cast<unsigned long long>(cookie));
    return done.front();
}

// One opened device and the completions that it has reported and nobody asked for yet.
class Node {
  public:
    explicit Node(const std::string &secret = "", const Settings &extra = {}) {
        host.options = subject.options;
        for (const auto &[key, value] : extra) host.options[key] = value;
        host.plugins = subject.plugins;
        host.secret = secret.empty() ? subject.secret : secret;
        host.demand = subject.demand;
        char names[1024];
        assert_int_equal(ops().list(host.table(), names, sizeof names), DTRAIN_OK);
        assert_true(names[0] != 0);
        const std::string first(names, strcspn(names, ","));
        assert_int_equal(ops().open(host.table(), first.c_str(), &dev), DTRAIN_OK);
        attr.struct_size = sizeof attr;
        assert_int_equal(ops().query(dev, &attr), DTRAIN_OK);
    }
    Node(const Node &) = delete;
    ~Node() { close(); }
    void close() {
        if (!dev) return;
        for (dtrain_tp_ep_t *ep : endpoints) ops().disconnect(ep);
        endpoints.clear();
        ops().close(dev);
        dev = nullptr;
    }

    Bytes address() {
        Bytes bytes(attr.address_len);
        assert_int_equal(ops().address(dev, bytes.data(), bytes.size()), DTRAIN_OK);
        return bytes;
    }
    // As the core does for every member; who is not expected is dropped after a while.
    void expect(Node &peer) {
        const Bytes from = peer.address();
        assert_int_equal(ops().reachable(dev, from.data(), from.size()), DTRAIN_OK);
    }
    // Starts; the endpoint is closed with the node unless the case does it with disconnect().
    dtrain_tp_ep_t *start_connect(const Bytes &to, uint64_t cookie) {
        dtrain_tp_ep_t *ep = nullptr;
        assert_int_equal(ops().connect(dev, to.data(), to.size(), cookie, &ep), DTRAIN_OK);
        assert_non_null(ep);
        endpoints.push_back(ep);
        return ep;
    }
    void disconnect(dtrain_tp_ep_t *ep) {
        std::erase(endpoints, ep);
        ops().disconnect(ep);
    }
    dtrain_status_t try_send(dtrain_tp_ep_t *ep, uint64_t tag, const void *data, size_t len,
                             uint64_t cookie) {
        const dtrain_tp_iov_t iov{const_cast<void *>(data), len, nullptr};
        return ops().send(ep, tag, &iov, len ? 1 : 0, cookie);
    }
    void send(dtrain_tp_ep_t *ep, uint64_t tag, const void *data, size_t len, uint64_t cookie) {
        dtrain_status_t status;
        const int64_t deadline = now_ns() + 20'000'000'000;
        while ((status = try_send(ep, tag, data, len, cookie)) == DTRAIN_ERR_BUSY &&
               now_ns() < deadline)
            progress();
        assert_int_equal(status, DTRAIN_OK);
    }
    void send(dtrain_tp_ep_t *ep, uint64_t tag, const Bytes &data, uint64_t cookie) {
        send(ep, tag, data.data(), data.size(), cookie);
    }
    void send(dtrain_tp_ep_t *ep, uint64_t tag, Bytes &&data, uint64_t cookie) {
        temporaries_.push_back(std::move(data)); // it has to live until the send completes
        send(ep, tag, static_cast<const Bytes &>(temporaries_.back()), cookie);
    }
    void recv(uint64_t wanted, uint64_t mask, void *into, size_t len, uint64_t cookie) {
        const dtrain_tp_iov_t iov{into, len, nullptr};
        assert_int_equal(ops().recv(dev, wanted, mask, &iov, len ? 1 : 0, cookie), DTRAIN_OK);
    }
    void recv(uint64_t tag, Bytes &into, uint64_t cookie) {
        recv(tag, exact, into.data(), into.size(), cookie);
    }
    int32_t progress() {
        dtrain_tp_done_t batch[32];
        const int32_t n = ops().progress(dev, batch, 32);
        assert_true(n >= 0 && n <= 32);
        done.insert(done.end(), batch, batch + n);
        return n;
    }
    // Takes the completion out, if it has been reported.
    bool take(uint32_t kind, uint64_t cookie, dtrain_tp_done_t *out = nullptr) {
        for (size_t i = 0; i < done.size(); i++)
            if (done[i].kind == kind && done[i].cookie == cookie) {
                if (out) *out = done[i];
                done.erase(done.begin() + long(i));
                return true;
            }
        return false;
    }
    size_t count(uint32_t kind) const { return test::count(done, kind); }

    FakeHost host;
    dtrain_tp_dev_t *dev = nullptr;
    dtrain_tp_attr_t attr{};
    std::vector<dtrain_tp_ep_t *> endpoints;
    Dones done;

  private:
    std::deque<Bytes> temporaries_;
};

using Nodes = std::vector<Node *>;

// Drives the nodes in turn until the condition holds; false after the time is up.
template <class Condition>
bool drive(const Nodes &nodes, Condition &&condition, int64_t limit_ms = 20'000) {
    const int64_t deadline = now_ns() + limit_ms * 1'000'000;
    while (!condition()) {
        if (now_ns() > deadline) return false;
        for (Node *node : nodes)
            if (node->dev) node->progress();
    }
    return true;
}
// The same for a fixed number of rounds: for what must not happen.
inline void drive_rounds(const Nodes &nodes, int rounds) {
    for (int i = 0; i < rounds; i++)
        for (Node *node : nodes)
            if (node->dev) node->progress();
}
// In virtual time: until none reports anything for some rounds. Takes what each has reported.
inline std::vector<Dones> drain(std::deque<Node> &nodes, int idle_rounds = 3) {
    for (int idle = 0; idle < idle_rounds; idle++)
        for (Node &node : nodes)
            if (node.dev && node.progress() > 0) idle = -1;
    std::vector<Dones> done;
    for (Node &node : nodes) done.push_back(std::exchange(node.done, {}));
    return done;
}
// Waits for one completion of `node`.
inline dtrain_tp_done_t await(const Nodes &nodes, Node &node, uint32_t kind, uint64_t cookie) {
    dtrain_tp_done_t result{};
    assert_true(drive(nodes, [&] { return node.take(kind, cookie, &result); }));
    return result;
}
inline void await_ok(const Nodes &nodes, Node &node, uint32_t kind, uint64_t cookie) {
    const dtrain_status_t status = await(nodes, node, kind, cookie).status;
    if (status != DTRAIN_OK)
        print_error("the transport's last word: %s\n", node.host.text().c_str());
    assert_int_equal(status, DTRAIN_OK);
}

// Two devices, a connected to b (and b to a where a case asks for it).
struct Pair {
    static constexpr uint64_t connect_cookie = 0xC0;
    Node a, b;
    dtrain_tp_ep_t *to_b;

    Pair() {
        b.expect(a);
        to_b = a.start_connect(b.address(), connect_cookie);
        await_ok(both(), a, DTRAIN_TP_CONNECT, connect_cookie);
    }
    dtrain_tp_ep_t *connect_back() {
        dtrain_tp_ep_t *ep = b.start_connect(a.address(), connect_cookie);
        await_ok(both(), b, DTRAIN_TP_CONNECT, connect_cookie);
        return ep;
    }
    Nodes both() { return {&a, &b}; }
};

// Messages between the two still come through, over the old connection or, soon, over a new one.
inline void expect_to_work(Pair &pair) {
    const Nodes both = pair.both();
    drive_rounds(both, 100);
    ops().purge(pair.b.dev, 0, 0);
    Bytes got(1000);
    const Bytes sent = pattern(got.size(), 5);
    pair.b.recv(0x77, got, 0x77);
    bool is_here = false;
    const auto arrived = [&] { return is_here = is_here || pair.b.take(DTRAIN_TP_RECV, 0x77); };
    for (uint64_t attempt = 0; attempt < 20 && !arrived(); attempt++) {
        const uint64_t cookie = 0x1000 + attempt;
        if (pair.a.try_send(pair.to_b, 0x77, sent.data(), sent.size(), cookie) == DTRAIN_OK)
            drive(both, [&] { return arrived() || pair.a.count(DTRAIN_TP_PEER_LOST) > 0; });
        if (arrived()) break;
        pair.a.done.clear();
        drive(
            both, [] { return false; }, 20);
        dtrain_tp_done_t connected{};
        pair.to_b = pair.a.start_connect(pair.b.address(), cookie);
        drive(both, [&] { return pair.a.take(DTRAIN_TP_CONNECT, cookie, &connected); });
    }
    assert_true(drive(both, arrived));
    assert_true(got == sent);
}

inline void need_caps(uint64_t caps) {
    static const uint64_t all = Node().attr.caps; // skip() runs no destructors
    if ((all & caps) == caps) return;
    print_message("this transport has no such capability\n");
    skip();
}

// Without the program's own file, which the thread that asks for huge pages may still hold.
inline size_t open_fds() {
    std::error_code none;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    size_t n = 0;
    for (int fd = 0; fd < 4096; fd++) {
        const auto open =
            std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
        n += !open.empty() && open != program;
    }
    return n;
}

} // namespace dtrain::test
