// Connections that cannot be made at first, that cannot be made at all, and that break.
// SPDX-License-Identifier: Apache-2.0
#include "unit/processes.h"

#include "engine/tag.h"

#include <cstring>
#include <memory>
#include <vector>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

constexpr uint32_t peer = 1;
constexpr uint64_t tag = 42;

struct Watcher final : Mesh::Listener {
    void peer_broken(uint32_t member, Status, const char *t) override {
        assert_int_equal(member, peer);
        text = t;
        told++;
    }
    bool alive(uint32_t member) override {
        assert_int_equal(member, peer);
        return lives;
    }
    bool lives = true;
    int told = 0;
    std::string text;
};

struct Landing : Completion {
    Landing() {
        done = [](Completion *self, const dtrain_tp_done_t &event) {
            static_cast<Landing *>(self)->status = event.status;
        };
    }
    Status status = DTRAIN_IN_PROGRESS;
};

// Two processes; what the first one does goes wrong as `fault` says.
struct Pair {
    Pair(const char *network, const char *option, const char *value)
        : first(clock, {"fault"}, {{"plugin.sim.network", network}, {option, value}}),
          second(clock, {"fault"}, {{"plugin.sim.network", network}}) {
        connect({&first, &second}, &watcher);
    }
    Status send() {
        dtrain_tp_iov_t iov = {.addr = &out, .len = sizeof out, .mr = nullptr};
        Status s = DTRAIN_OK;
        first.agent.locked([&] { s = first.mesh.send(peer, tag, &iov, 1, &sent); });
        return s;
    }
    // Tries every millisecond until it is accepted, at most so long; how long it took.
    int64_t send_within(int64_t time) {
        int64_t begin = clock.now;
        for (; clock.now - begin <= time; clock.now += 1 * ms) {
            Status s = send();
            poll({&first, &second}, 3);
            if (s == DTRAIN_OK) break;
            assert_int_equal(s, DTRAIN_ERR_BUSY);
        }
        return clock.now - begin;
    }

    TestClock clock;
    Watcher watcher;
    Process first, second;
    Landing sent;
    uint64_t out = 0x0123456789abcdef;
};

void attempts_that_fail_are_repeated(void **) {
    Pair pair("refuse", "plugin.fault.refuse", "5");
    Landing received;
    uint64_t in = 0;
    dtrain_tp_iov_t iov = {.addr = &in, .len = sizeof in, .mr = nullptr};
    pair.second.agent.locked([&] {
        assert_int_equal(pair.second.mesh.recv(0, tag, exact, &iov, 1, &received), DTRAIN_OK);
    });
    int64_t took = pair.send_within(2 * second);
    // After 10, 20, 40, 80 and 160 ms.
    assert_in_range(took, 310 * ms, 350 * ms);
    poll({&pair.first, &pair.second});
    assert_int_equal(pair.sent.status, DTRAIN_OK);
    assert_int_equal(received.status, DTRAIN_OK);
    assert_true(in == pair.out);
    assert_int_equal(pair.watcher.told, 0);
    assert_string_equal(pair.first.mesh.trouble(peer).c_str(), "");
}

void a_member_that_is_gone_is_not_called_again(void **) {
    Pair pair("gone", "plugin.fault.refuse", "1000000");
    pair.watcher.lives = false;
    assert_int_equal(pair.send(), DTRAIN_ERR_BUSY);
    poll({&pair.first, &pair.second});
    assert_int_equal(pair.watcher.told, 1);
    assert_string_equal(pair.watcher.text.c_str(),
                        "no fault connection in 0.0 s (attempts: 1; peer failed)");
}

void attempts_are_given_up_in_the_end(void **) {
    Pair pair("never", "plugin.fault.refuse", "1000000");
    pair.send_within(5 * second);
    assert_int_equal(pair.watcher.told, 0);
    assert_non_null(std::strstr(pair.first.mesh.trouble(peer).c_str(), "in 5.0 s"));
    pair.send_within(12 * second);
    assert_int_equal(pair.watcher.told, 1);
    assert_non_null(std::strstr(pair.watcher.text.c_str(), "no fault connection in 15."));
    assert_int_equal(pair.sent.status, DTRAIN_IN_PROGRESS); // it never was the transport's
}

void a_connection_that_breaks_is_an_error_at_once(void **) {
    Pair pair("breaks", "plugin.fault.reset", "1000");
    pair.send_within(1 * second);
    poll({&pair.first, &pair.second});
    assert_int_equal(pair.watcher.told, 1);
    assert_string_equal(pair.watcher.text.c_str(), "fault connection broke");
}

// Whoever sends again until it succeeds does not connect as fast as both sides can.
void connections_that_soon_break_are_made_after_pauses(void **) {
    Pair pair("soon", "plugin.fault.reset", "1000");
    for (const int64_t end = pair.clock.now + 2 * second; pair.clock.now < end;) {
        const Status s = pair.send();
        assert_true(s == DTRAIN_OK || s == DTRAIN_ERR_BUSY || engine::connection_lost(s));
        poll({&pair.first, &pair.second}, 3);
        pair.clock.now += 1 * ms;
    }
    // After 10, 20, 40, 80, 160, 320 and 640 ms.
    assert_in_range(pair.watcher.told, 7, 8);
}

void one_that_has_lasted_is_made_again_at_once(void **) {
    Pair pair("lasted", "plugin.fault.reset", "1000");
    const auto comes_up = [&] {
        bool up = false;
        for (int i = 0; i < 10 && !up; i++) {
            pair.first.agent.locked([&] { up = pair.first.mesh.is_up(peer, 0); });
            poll({&pair.first, &pair.second}, 3);
        }
        return up;
    };
    assert_true(comes_up());
    pair.clock.now += 2 * second;
    pair.send_within(0);
    poll({&pair.first, &pair.second}, 3);
    assert_int_equal(pair.watcher.told, 1);
    assert_true(comes_up());
}

// Its devices report the end of connections that it was still making, or that have just broken, to
// nobody that is gone.
void a_mesh_may_end_while_it_connects(void **) {
    TestClock clock;
    Process first(clock, {"sim"}, {{"plugin.sim.network", "ends"}});
    Process second(clock, {"sim"}, {{"plugin.sim.network", "ends"}});
    const auto &there = second.agent.devices().front();
    const std::vector<std::vector<PeerAddress>> addresses(8, {{there->name(), there->address()}});
    for (int i = 0; i < 3; i++) {
        auto mesh = std::make_unique<Mesh>(first.agent);
        assert_int_equal(mesh->prepare(addresses, nullptr), DTRAIN_OK);
        first.agent.locked([&] {
            for (uint32_t member = 0; member < addresses.size(); member++)
                assert_false(mesh->is_up(member, 0));
        });
        mesh.reset();
        // Whoever is told now is told in memory that is used for something else.
        std::vector<std::vector<uint64_t>> others(64, std::vector<uint64_t>(32, 3));
        poll({&first, &second});
    }
}

void what_waits_keeps_its_order(void **) {
    MessageOrder order;
    int a = 0, b = 0, c = 0;
    order.hold(peer, tag, &a);
    order.hold(peer, tag, &b);
    order.hold(peer, tag, &a);
    assert_true(order.is_next(peer, tag, &a));
    assert_false(order.is_next(peer, tag, &b));
    assert_false(order.is_next(peer, tag, &c));
    assert_true(order.is_next(peer, tag + 1, &c) && order.is_next(0, tag, &c));
    order.release(&a);
    assert_true(order.is_next(peer, tag, &b));
    order.release(&b);
    assert_true(order.is_next(peer, tag, &c));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(attempts_that_fail_are_repeated),
        cmocka_unit_test(a_member_that_is_gone_is_not_called_again),
        cmocka_unit_test(attempts_are_given_up_in_the_end),
        cmocka_unit_test(a_connection_that_breaks_is_an_error_at_once),
        cmocka_unit_test(connections_that_soon_break_are_made_after_pauses),
        cmocka_unit_test(one_that_has_lasted_is_made_again_at_once),
        cmocka_unit_test(a_mesh_may_end_while_it_connects),
        cmocka_unit_test(what_waits_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
