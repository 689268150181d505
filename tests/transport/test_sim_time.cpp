// The simulated network: virtual time, seeds and order.
// SPDX-License-Identifier: Apache-2.0
#include "loaded.h"
#include "rig.h"

#include <cstring>
#include <random>

using namespace dtrain::test;

namespace {

void test_latency_and_bandwidth(void **) {
    std::deque<Node> nodes;
    const Settings settings = {{"plugin.sim.latency", "5000"}, {"plugin.sim.bandwidth", "1000000"}};
    for (int i = 0; i < 2; i++) nodes.emplace_back("", settings);
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 1);
    drain(nodes); // time: 5000
    char in[3000] = {}, out[3000];
    memset(out, 7, sizeof out);
    nodes[1].recv(9, exact, in, sizeof in, 2);
    nodes[0].send(ep, 9, out, sizeof out, 3); // 3 ms to leave, 5 us to arrive
    auto done = drain(nodes);
    assert_int_equal(find(done[1], DTRAIN_TP_RECV, 2).bytes, sizeof in);
    assert_memory_equal(in, out, sizeof in);
    nodes[0].close();
    nodes[1].close();
    assert_non_null(std::strstr(nodes[1].host.text().c_str(),
                                "\"default\" ended at 3010000 ns after 1 messages of 3000 bytes"));
}

void test_other_options(void **) {
    Node first("", {{"plugin.sim.network", "n"}, {"plugin.sim.latency", "10"}});
    const auto open = [](const char *latency, const char *expected) {
        FakeHost host;
        dtrain_tp_dev_t *dev = nullptr;
        host.options = {{"plugin.sim.network", "n"}, {"plugin.sim.latency", latency}};
        assert_int_equal(ops().open(host.table(), "sim", &dev), DTRAIN_ERR_CONFIG);
        assert_non_null(std::strstr(host.text().c_str(), expected));
    };
    open("11", "network \"n\" was created with other options");
    open("10ns", "\"10ns\" is not a whole number");
    Node second("", {{"plugin.sim.network", "n"}, {"plugin.sim.latency", "10"}});
    // Another network cannot be reached.
    Node other("", {{"plugin.sim.network", "m"}});
    const Bytes address = other.address();
    assert_int_not_equal(ops().reachable(first.dev, address.data(), address.size()), DTRAIN_OK);
}

struct Payload {
    uint32_t source, tag, sequence;
};

constexpr uint32_t ranks_n = 5, tags_n = 4, messages_n = 40;

// Every rank sends to random ranks with random tags; returns what all saw, in their order.
std::string trace(uint64_t seed) {
    std::deque<Node> nodes;
    const Settings settings = {{"plugin.sim.seed", std::to_string(seed)},
                               {"plugin.sim.latency", "1000"},
                               {"plugin.sim.jitter", "20000"},
                               {"plugin.sim.eager", "8"}}; // these messages wait for receives
    for (uint32_t i = 0; i < ranks_n; i++) nodes.emplace_back("", settings);
    std::vector<dtrain_tp_ep_t *> eps;
    for (Node &from : nodes)
        for (Node &to : nodes) eps.push_back(from.start_connect(to.address(), eps.size()));
    std::mt19937_64 random(5); // the same traffic for every seed
    std::deque<Payload> sent, received;
    std::vector<uint32_t> sequence(ranks_n * ranks_n * tags_n), expected(ranks_n);
    for (uint32_t i = 0; i < ranks_n * messages_n; i++) {
        const uint32_t from = i % ranks_n, to = uint32_t(random() % ranks_n),
                       tag = uint32_t(random() % tags_n);
        uint32_t &next = sequence[(from * ranks_n + to) * tags_n + tag];
        sent.push_back({from, tag, next++});
        nodes[from].send(eps[from * ranks_n + to], tag, &sent.back(), sizeof(Payload), i);
        received.push_back({});
        nodes[to].recv(0, 0, &received.back(), sizeof(Payload), received.size() - 1);
        expected[to]++;
    }
    auto done = drain(nodes);
    std::string text;
    std::fill(sequence.begin(), sequence.end(), 0);
    for (uint32_t to = 0; to < ranks_n; to++) {
        assert_int_equal(count(done[to], DTRAIN_TP_RECV), expected[to]);
        assert_int_equal(count(done[to], DTRAIN_TP_SEND), messages_n);
        for (const dtrain_tp_done_t &d : done[to]) {
            if (d.kind != DTRAIN_TP_RECV) continue;
            const Payload &p = received[d.cookie];
            assert_int_equal(d.status, DTRAIN_OK);
            assert_int_equal(d.tag, p.tag);
            // In order within (source, destination, tag).
            const size_t lane = (p.source * ranks_n + to) * tags_n;
            assert_int_equal(p.sequence, sequence[lane + p.tag]++);
            text += std::to_string(p.source) + ">" + std::to_string(to) + ":" +
                    std::to_string(p.tag) + " ";
        }
    }
    for (Node &node : nodes) node.close();
    return text + nodes.back().host.text();
}

void test_same_seed_same_trace(void **) {
    const std::string first = trace(1), again = trace(1), other = trace(2);
    assert_string_equal(first.c_str(), again.c_str());
    assert_string_not_equal(first.c_str(), other.c_str());
    assert_non_null(std::strstr(first.c_str(), "after 200 messages of 2400 bytes"));
}

void test_overtaking(void **) {
    std::deque<Node> nodes;
    for (int i = 0; i < 2; i++) nodes.emplace_back("", Settings{{"plugin.sim.jitter", "100000"}});
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 0);
    uint64_t in[32], out[32];
    for (uint64_t i = 0; i < 32; i++) {
        out[i] = i;
        nodes[1].recv(0, 0, &in[i], 8, i);
        nodes[0].send(ep, i, &out[i], 8, i);
    }
    auto done = drain(nodes);
    assert_int_equal(count(done[1], DTRAIN_TP_RECV), 32);
    assert_memory_not_equal(in, out, sizeof in); // seeded: the same in every run
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_latency_and_bandwidth),
        cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_same_seed_same_trace),
        cmocka_unit_test(test_overtaking),
    };
    subject.plugin = load("sim");
    if (!subject.plugin) return 1;
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
