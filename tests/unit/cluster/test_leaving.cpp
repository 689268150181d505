// The end of a job: its workers leave at about the same time, the coordinator among them, while its
// servers still look for the next one.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed.
#include "check.h"

#include "simulation.h"

using namespace simulation;

namespace {

// "" or what is wrong. Nobody who stays is told that a worker was lost, or has to go.
std::string play(uint32_t seed) {
    const int32_t workers = 2 + int32_t(seed % 5), servers = 1 + int32_t(seed % 3);
    std::string wrong;
    std::vector<int> left(size_t(workers + servers));
    int64_t last = 0;
    Network net(seed, workers, servers, [&](int n, const wire::Message &message) {
        if (const auto *over = std::get_if<wire::Over>(&message))
            wrong = text("member %d: %s", n, over->text.c_str());
        const auto *gone = std::get_if<wire::Gone>(&message);
        if (gone == nullptr) return;
        if (!gone->left) wrong = text("member %d: %s", n, gone->text.c_str());
        left[size_t(n)]++;
        last = net.now();
    });
    for (int n = 0; n < net.size(); n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
    net.run_until(second);
    const int64_t spread = std::array{2 * ms, 20 * ms, 300 * ms}[seed / 3 % 3];
    for (int n = 0; n < workers; n++)
        net.at(second + net.draw(0, spread), [&net, n] { net.leave(n); });
    net.run_until(10 * second);
    for (int n = workers; n < net.size() && wrong.empty(); n++)
        if (left[size_t(n)] != workers)
            wrong = text("member %d knows of %d that left", n, left[size_t(n)]);
    if (wrong.empty() && last > second + spread + 500 * ms)
        wrong = text("the last was known to have left after %lld ms",
                     static_cast<long long>((last - second) / ms));
    return wrong.empty() ? net.broken_message : wrong;
}

void nobody_is_lost(void **) {
    constexpr uint32_t seeds = 2000;
    size_t failures = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const std::string wrong = play(seed);
        if (!wrong.empty() && failures++ < 10) print_error("seed %u: %s\n", seed, wrong.c_str());
    }
    print_message("%u schedules, %zu failures\n", seeds, failures);
    assert_int_equal(failures, 0);
}

// In the order of their numbers each would call on nearly all before it and find them gone.
void a_crowd_calls_on_few(void **) {
    constexpr int workers = 200;
    for (uint32_t seed = 1; seed <= 5; seed++) {
        Network net(seed, workers, 0, [](int, const wire::Message &) {});
        for (int n = 0; n < workers; n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
        net.run_until(second);
        const int before = net.dials;
        for (int n = 0; n < workers; n++)
            net.at(second + n * ms + net.draw(0, 10 * ms), [&net, n] { net.leave(n); });
        net.run_until(3 * second);
        const int calls = net.dials - before;
        print_message("seed %u: %d calls\n", seed, calls);
        assert_true(calls < 20 * workers);
    }
}

// Where hundreds have left, who stays finds the next coordinator soon.
void few_stay(void **) {
    constexpr int workers = 200, stay = 5;
    int told = 0;
    Network net(1, workers, 0, [&](int n, const wire::Message &message) {
        const auto *gone = std::get_if<wire::Gone>(&message);
        told += gone != nullptr && gone->left && n >= workers - stay;
        assert_false(std::holds_alternative<wire::Over>(message));
    });
    for (int n = 0; n < workers; n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
    net.run_until(second);
    for (int n = 0; n < workers - stay; n++) // nobody is left who could tell of the others
        net.at(second + (n == 0 ? 0 : 5 * ms), [&net, n] { net.leave(n); });
    net.run_until(second + timeout);
    assert_int_equal(told, stay * (workers - stay));
    assert_true(net.node(workers - stay).coordinates());
}

// A member that gets the answer to a shrink knows by then why another is not in the smaller group,
// though ends of a job are told together.
void a_leaver_is_known_when_others_shrink(void **) {
    for (uint32_t seed = 1; seed <= 200; seed++) {
        const std::vector<int32_t> all = {0, 1, 2, 3};
        std::set<int32_t> gone[4];
        int answers = 0;
        Network net(seed, 4, 0, [&](int n, const wire::Message &message) {
            if (const auto *end = std::get_if<wire::Gone>(&message)) gone[n].insert(end->member);
            const auto *reply = std::get_if<wire::GroupReply>(&message);
            if (reply == nullptr) return;
            answers++;
            assert_int_equal(reply->status, DTRAIN_OK);
            assert_true((reply->members == std::vector<int32_t>{0, 1}));
            assert_true((gone[n] == std::set<int32_t>{2, 3}));
        });
        for (const int32_t n : all) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
        net.run_until(second);
        net.at(second, [&net] { net.crash(3); });
        for (const int n : {0, 1})
            net.at(second + net.draw(5 * ms, 20 * ms), [&net, &all, n] {
                net.call(n, [&](Node &node) {
                    Actions actions;
                    uint32_t serial = 0;
                    wire::GroupRequest request;
                    request.group = 1;
                    request.members = all;
                    request.timeout_ns = second;
                    request.held = 7;
                    assert_int_equal(node.ask(request, serial, net.now(), actions), DTRAIN_OK);
                    return actions;
                });
            });
        net.at(second + net.draw(5 * ms, 20 * ms), [&net] { net.leave(2); });
        net.run_until(4 * second);
        assert_int_equal(answers, 2);
    }
}

// Where a call fails on all of many ranks, n reports must not become n * n. One that ends more
// calls than the last one is told.
void a_failure_is_told_once(void **) {
    constexpr int workers = 100;
    int told = 0;
    Network net(1, workers, 0, [&](int, const wire::Message &message) {
        const auto *failed = std::get_if<wire::GroupFailed>(&message);
        told += failed != nullptr && failed->group == 77;
    });
    std::vector<int32_t> all(workers);
    for (int n = 0; n < workers; n++) all[size_t(n)] = n;
    const auto report = [&](int n, uint64_t from) {
        net.at(net.now() + net.draw(0, 20 * ms), [&net, &all, n, from] {
            net.call(n, [&](Node &node) {
                Actions actions;
                const wire::GroupFailed failed{77, all, DTRAIN_ERR_PEER, "rank 3 lost", 3, from};
                assert_int_equal(node.post(failed, net.now(), actions), DTRAIN_OK);
                return actions;
            });
        });
    };
    for (int n = 0; n < workers; n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
    net.run_until(second);
    for (int n = 0; n < workers; n++) report(n, 10);
    net.run_until(2 * second);
    assert_int_equal(told, workers - 1);
    report(5, 9);
    report(6, 12);
    net.run_until(3 * second);
    assert_int_equal(told, 2 * (workers - 1));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(nobody_is_lost),
                                cmocka_unit_test(a_crowd_calls_on_few), cmocka_unit_test(few_stay),
                                cmocka_unit_test(a_leaver_is_known_when_others_shrink),
                                cmocka_unit_test(a_failure_is_told_once)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
