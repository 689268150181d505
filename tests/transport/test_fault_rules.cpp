// The tampering transport: each fault happens, as often as asked for, and nothing else does.
// SPDX-License-Identifier: Apache-2.0
#include "loaded.h"
#include "rig.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace dtrain::test;

namespace {

constexpr uint64_t messages_n = 1000;

struct Outcome {
    std::vector<Dones> done;
    std::vector<uint64_t> got; // what rank 1 received, in its order
    std::string log;
};

// Rank 0 sends 1000 numbers, 16 bytes each, with three tags in turn, to rank 1.
Outcome run(Settings settings) {
    std::deque<Node> nodes;
    for (int i = 0; i < 2; i++) nodes.emplace_back("", settings);
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 77);
    std::vector<uint64_t> out(2 * messages_n), in(4 * messages_n, exact);
    for (uint64_t i = 0; i < 2 * messages_n; i++) // as many as there are with duplicates
        nodes[1].recv(0, 0, &in[2 * i], 16, i);
    for (uint64_t i = 0; i < messages_n; i++) {
        out[2 * i] = i;
        const dtrain_status_t status = nodes[0].try_send(ep, i % 3, &out[2 * i], 16, i);
        if (status != DTRAIN_OK) {
            assert_int_equal(status, DTRAIN_ERR_PEER); // after a reset
            break;
        }
    }
    Outcome outcome;
    outcome.done = drain(nodes, 20);
    for (const dtrain_tp_done_t &d : outcome.done[1])
        if (d.kind == DTRAIN_TP_RECV) outcome.got.push_back(in[2 * d.cookie]);
    nodes[0].close();
    outcome.log = nodes[0].host.text();
    return outcome;
}

void assert_all_sent(const Outcome &o) {
    assert_int_equal(count(o.done[0], DTRAIN_TP_SEND), messages_n);
    for (uint64_t i = 0; i < messages_n; i++) {
        assert_int_equal(find(o.done[0], DTRAIN_TP_SEND, i).status, DTRAIN_OK);
        assert_int_equal(find(o.done[0], DTRAIN_TP_SEND, i).bytes, 16);
    }
}

void assert_log(const Outcome &o, const std::string &part) {
    if (o.log.find(part) == std::string::npos)
        fail_msg("\"%s\" is not in: %s", part.c_str(), o.log.c_str());
}

void assert_tags_in_order(const Outcome &o, bool repeated = false) {
    uint64_t next[3] = {0, 1, 2};
    for (uint64_t number : o.got) {
        uint64_t &expected = next[number % 3];
        if (repeated && number + 3 == expected) continue;
        assert_true(number >= expected);
        expected = number + 3;
    }
}

void test_clean(void **) {
    const Outcome o = run({});
    assert_all_sent(o);
    assert_int_equal(o.got.size(), messages_n);
    assert_tags_in_order(o);
    assert_log(o, "of 1000 sends over sim: dropped 0, truncated 0, bits flipped 0, duplicated 0, "
                  "delayed 0, connections reset 0");
}

void test_drop(void **) {
    const Outcome o = run({{"plugin.fault.drop", "200"}, {"plugin.fault.after", "100"}});
    assert_all_sent(o);
    const size_t dropped = messages_n - o.got.size();
    assert_in_range(dropped, 120, 240); // of 900: 180 +- 5 sigma
    assert_log(o, "dropped " + std::to_string(dropped) + ",");
    assert_tags_in_order(o);
    for (uint64_t i = 0; i < 100; i++)
        assert_true(std::find(o.got.begin(), o.got.end(), i) != o.got.end());
}

void test_duplicate(void **) {
    const Outcome o = run({{"plugin.fault.duplicate", "500"}});
    assert_all_sent(o);
    assert_in_range(o.got.size(), messages_n + 420, messages_n + 580);
    assert_log(o, "duplicated " + std::to_string(o.got.size() - messages_n) + ",");
    assert_tags_in_order(o, true);
}

void test_truncate(void **) {
    const Outcome o = run({{"plugin.fault.truncate", "100"}});
    assert_all_sent(o);
    assert_int_equal(o.got.size(), messages_n);
    size_t cut = 0;
    for (const dtrain_tp_done_t &d : o.done[1]) {
        if (d.kind != DTRAIN_TP_RECV) continue;
        assert_int_equal(d.status, DTRAIN_OK);
        assert_in_range(d.bytes, 0, 16);
        cut += d.bytes < 16;
    }
    assert_in_range(cut, 52, 148);
    assert_log(o, "truncated " + std::to_string(cut) + ",");
}

// One bit of the 16 bytes, in what arrives and not in what was given to be sent.
void test_flip(void **) {
    const Outcome o = run({{"plugin.fault.flip", "100"}});
    assert_all_sent(o);
    assert_int_equal(o.got.size(), messages_n);
    std::set<uint64_t> missing;
    for (uint64_t i = 0; i < messages_n; i++) missing.insert(i);
    for (uint64_t number : o.got) missing.erase(number);
    assert_in_range(missing.size(), 15, 85); // half of the bits are not in the number
    assert_true(o.log.find("bits flipped 0,") == std::string::npos);
}

void test_delay(void **) {
    const Outcome o = run({{"plugin.fault.delay", "8"}});
    assert_all_sent(o);
    assert_int_equal(o.got.size(), messages_n);
    assert_tags_in_order(o);
    assert_false(std::is_sorted(o.got.begin(), o.got.end())); // tags overtook each other
}

void test_reset(void **) {
    const Outcome o = run({{"plugin.fault.reset", "1000"}, {"plugin.fault.after", "9"}});
    assert_int_equal(count(o.done[0], DTRAIN_TP_SEND), 10);
    for (uint64_t i = 0; i < 9; i++) // eager: they were on their way
        assert_int_equal(find(o.done[0], DTRAIN_TP_SEND, i).status, DTRAIN_OK);
    assert_int_equal(find(o.done[0], DTRAIN_TP_SEND, 9).status, DTRAIN_ERR_PEER);
    assert_int_equal(find(o.done[0], DTRAIN_TP_PEER_LOST, 77).status, DTRAIN_ERR_PEER);
    assert_int_equal(o.got.size(), 9);
    assert_log(o, "of 10 sends");
    assert_log(o, "connections reset 1");
}

// Sends that wait for their receiver fail when their endpoint breaks.
void test_reset_fails_what_is_pending(void **) {
    std::deque<Node> nodes;
    for (int i = 0; i < 2; i++)
        nodes.emplace_back("", Settings{{"plugin.sim.eager", "8"},
                                        {"plugin.fault.reset", "1000"},
                                        {"plugin.fault.after", "1"}});
    dtrain_tp_ep_t *ep = nodes[0].start_connect(nodes[1].address(), 5);
    char long_one[100] = {};
    nodes[0].send(ep, 1, long_one, sizeof long_one, 1);
    drain(nodes);
    nodes[0].send(ep, 2, long_one, sizeof long_one, 2);
    auto done = drain(nodes);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 1).status, DTRAIN_ERR_PEER);
    assert_int_equal(find(done[0], DTRAIN_TP_SEND, 2).status, DTRAIN_ERR_PEER);
    assert_int_equal(count(done[0], DTRAIN_TP_PEER_LOST), 1);
    assert_int_equal(nodes[0].try_send(ep, 3, long_one, 1, 3), DTRAIN_ERR_PEER);
}

void test_everything_at_once_by_seed(void **) {
    const auto settings = [](const char *seed) {
        return Settings{{"plugin.fault.drop", "50"},      {"plugin.fault.truncate", "50"},
                        {"plugin.fault.duplicate", "50"}, {"plugin.fault.delay", "5"},
                        {"plugin.sim.jitter", "1000"},    {"plugin.fault.seed", seed}};
    };
    const Outcome first = run(settings("3")), again = run(settings("3")),
                  other = run(settings("4"));
    assert_all_sent(first);
    assert_string_equal(first.log.c_str(), again.log.c_str());
    assert_true(first.got == again.got);
    assert_true(first.got != other.got);
}

void test_options(void **) {
    const auto open = [](const char *key, const char *value, dtrain_status_t status,
                         const char *expected) {
        FakeHost host;
        dtrain_tp_dev_t *dev = nullptr;
        host.options[key] = value;
        assert_int_equal(ops().open(host.table(), "sim", &dev), status);
        assert_non_null(std::strstr(host.text().c_str(), expected));
    };
    open("plugin.fault.over", "fault", DTRAIN_ERR_CONFIG, "cannot wrap itself");
    open("plugin.fault.over", "nothing", DTRAIN_ERR_NOT_FOUND, ""); // its host knows none
    open("plugin.fault.drop", "1001", DTRAIN_ERR_CONFIG, "at most 1000");
    open("plugin.fault.drop", "many", DTRAIN_ERR_CONFIG, "not a whole number");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_reset_fails_what_is_pending),
        cmocka_unit_test(test_everything_at_once_by_seed),
    };
    subject.plugin = load("fault");
    subject.plugins = {{"sim", load("sim")}};
    if (!subject.plugin || !subject.plugins["sim"]) return 1;
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
