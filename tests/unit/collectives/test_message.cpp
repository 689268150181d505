// Point-to-point messages whose connection is not there yet: none is lost, they keep their order,
// and one that cannot leave says why.
// SPDX-License-Identifier: Apache-2.0
#include "unit/processes.h"

#include "collectives/call/message.h"
#include "engine/tag.h"

#include <cstring>
#include <random>
#include <thread>
#include <utility>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

struct Owner final : engine::OperationListener {
    bool operation_started(engine::Operation &) override { return true; }
    void operation_failed(engine::Operation &, const engine::Outcome &, const char *) override {}
    void operation_stalled(engine::Operation &) override {}
    void operation_ended(engine::Operation &) override {}
};

// The first process's first attempts to connect fail.
struct Pair {
    Pair(const char *network, const char *refused)
        : first(clock, {"fault"},
                {{"plugin.sim.network", network}, {"plugin.fault.refuse", refused}}),
          second(clock, {"fault"}, {{"plugin.sim.network", network}}) {
        connect({&first, &second});
    }
    MessageOperation::Params params_of(Process &process, MessageOperation::Direction direction,
                                       uint32_t member, uint32_t &value) {
        MessageOperation::Params params;
        params.direction = direction;
        params.mesh = &process.mesh;
        params.listener = &owner;
        params.rank = int32_t(member);
        params.member = member;
        params.tag = engine::make_tag(0, 0, engine::TagClass::point_to_point, 7);
        params.mask = engine::exact;
        params.buffer = &value;
        params.bytes = sizeof value;
        return params;
    }
    void post(Process &process, MessageOperation::Direction direction, uint32_t member,
              uint32_t &value, engine::Request &request, int64_t deadline_ns = INT64_MAX) {
        auto *message =
            new (request) MessageOperation(&request, params_of(process, direction, member, value));
        message->deadline_ns = deadline_ns;
        process.agent.post(message, true);
    }
    void run(const engine::Request &last) {
        for (int i = 0; i < 10000 && !last.done(); i++, clock.now += 1 * ms)
            poll({&first, &second}, 3);
        assert_true(last.done());
    }

    TestClock clock;
    Process first, second;
    Owner owner;
};

void messages_keep_their_order(void **) {
    constexpr uint32_t count = 9;
    Pair pair("order", "4");
    uint32_t sent[count], received[count] = {};
    engine::Request sends[count], receives[count];
    for (uint32_t i = 0; i < count; i++) {
        sent[i] = 100 + i;
        pair.post(pair.first, MessageOperation::Direction::send, 1, sent[i], sends[i]);
        pair.post(pair.second, MessageOperation::Direction::receive, 0, received[i], receives[i]);
    }
    pair.run(receives[count - 1]);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(sends[i].done() && receives[i].done());
        assert_int_equal(sends[i].outcome().status, DTRAIN_OK);
        assert_int_equal(received[i], 100 + i);
    }
}

// Posted while another thread holds the agent, so that all start at once.
void messages_that_start_together_keep_their_order(void **) {
    constexpr uint32_t count = 9;
    Pair pair("together", "0");
    uint32_t sent[count], received[count] = {};
    engine::Request sends[count], receives[count];
    auto post_all = [&] {
        for (uint32_t i = 0; i < count; i++) {
            sent[i] = 100 + i;
            pair.post(pair.first, MessageOperation::Direction::send, 1, sent[i], sends[i]);
        }
    };
    pair.first.agent.locked([&] { std::thread(post_all).join(); });
    for (uint32_t i = 0; i < count; i++)
        pair.post(pair.second, MessageOperation::Direction::receive, 0, received[i], receives[i]);
    pair.run(receives[count - 1]);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(received[i], 100 + i);
}

void a_message_that_is_there_needs_no_agent(void **) {
    Pair pair("there", "0");
    uint32_t sent = 7, received = 0;
    engine::Request send, receive;
    pair.post(pair.first, MessageOperation::Direction::send, 1, sent, send);
    pair.run(send);
    MessageOperation message(
        &receive, pair.params_of(pair.second, MessageOperation::Direction::receive, 0, received),
        true);
    bool done = false;
    for (int i = 0; i < 1000 && !done; i++, pair.clock.now += 1 * ms)
        done = message.run(pair.second.agent);
    assert_true(done && receive.done());
    assert_int_equal(receive.outcome().status, DTRAIN_OK);
    assert_int_equal(receive.outcome().bytes, sizeof received);
    assert_int_equal(received, 7);
}

void what_its_caller_could_not_finish_goes_on_when_posted(void **) {
    Pair pair("later", "0");
    uint32_t sent = 7, received = 0;
    engine::Request send, receive;
    MessageOperation message(
        &receive, pair.params_of(pair.second, MessageOperation::Direction::receive, 0, received),
        true);
    assert_false(message.run(pair.second.agent));
    pair.second.agent.post(&message, true);
    pair.post(pair.first, MessageOperation::Direction::send, 1, sent, send);
    pair.run(receive);
    assert_int_equal(receive.outcome().status, DTRAIN_OK);
    assert_int_equal(received, 7);
}

void nobody_runs_a_message_past_pending_operations(void **) {
    Pair pair("past", "0");
    uint32_t first = 1, second = 2, received[2] = {};
    engine::Request sends[2], receives[2];
    pair.post(pair.first, MessageOperation::Direction::send, 1, first, sends[0]);
    MessageOperation message(
        &sends[1], pair.params_of(pair.first, MessageOperation::Direction::send, 1, second), true);
    assert_true(pair.first.agent.pending());
    assert_false(message.run(pair.first.agent));
    pair.first.agent.post(&message, true);
    for (int i = 0; i < 2; i++)
        pair.post(pair.second, MessageOperation::Direction::receive, 0, received[i], receives[i]);
    pair.run(receives[1]);
    assert_true(received[0] == 1 && received[1] == 2);
    pair.run(sends[1]);
}

void the_deadline_holds_while_connecting(void **) {
    Pair pair("deadline", "1000000");
    uint32_t value = 1;
    engine::Request request;
    pair.post(pair.first, MessageOperation::Direction::send, 1, value, request,
              pair.clock.now + 2 * second);
    pair.run(request);
    assert_int_equal(request.outcome().status, DTRAIN_ERR_TIMEOUT);
    assert_non_null(std::strstr(request.error(), "send to rank 1: timed out; no fault connection "
                                                 "in 2.0 s (attempts: "));
    assert_in_range(pair.clock.now, 3 * second, 4 * second);
}

// Rank 0 reaches the others by different transports.
struct Mixed {
    explicit Mixed(const char *network)
        : zero(clock, {"sim", "fault"}, {{"plugin.sim.network", network}}),
          one(clock, {"sim", "tcp"}, {{"plugin.sim.network", network}}),
          two(clock, {"fault", "tcp"}, {{"plugin.sim.network", network}}) {
        connect({&zero, &one, &two});
        assert_ptr_not_equal(zero.mesh.device(1), zero.mesh.device(2));
    }
    // A receive of rank 0; source -1: from anybody.
    void receive(int32_t source, uint32_t &value, engine::Request &request,
                 int64_t deadline_ns = INT64_MAX) {
        bool any = source < 0;
        MessageOperation::Params params;
        params.direction = MessageOperation::Direction::receive;
        params.mesh = &zero.mesh;
        params.rank = source;
        params.member = any ? 1 : uint32_t(source);
        if (any) params.elsewhere = {2};
        params.tag = tag_of(any ? 0 : uint32_t(source));
        params.mask = any ? engine::exact & ~engine::source_mask : engine::exact;
        post(zero, std::move(params), value, request, deadline_ns);
    }
    void send(uint32_t from, uint32_t &value, engine::Request &request) {
        MessageOperation::Params params;
        params.mesh = from == 1 ? &one.mesh : &two.mesh;
        params.tag = tag_of(from);
        post(from == 1 ? one : two, std::move(params), value, request, INT64_MAX);
    }
    static uint64_t tag_of(uint32_t source) {
        return engine::make_tag(0, source, engine::TagClass::point_to_point, 7);
    }
    void post(Process &process, MessageOperation::Params &&params, uint32_t &value,
              engine::Request &request, int64_t deadline_ns) {
        params.listener = &owner;
        params.buffer = &value;
        params.bytes = sizeof value;
        auto *message = new (request) MessageOperation(&request, std::move(params));
        message->deadline_ns = deadline_ns;
        process.agent.post(message, true);
    }
    void pass(int rounds) {
        for (; rounds > 0; rounds--, clock.now += 100 * us) poll({&zero, &one, &two}, 1);
    }

    TestClock clock;
    Process zero, one, two;
    Owner owner;
};

// Messages come from both sides at random moments; each is received once, those of one sender in
// order, by receives in the order of their posting.
void from_anybody_wherever_they_are(void **) {
    constexpr uint32_t count = 80;
    std::mt19937 random(20261121);
    Mixed job("anybody");
    uint32_t sent[count], received[count] = {};
    engine::Request sends[count], receives[count];
    for (uint32_t i = 0; i < count; i++) job.receive(-1, received[i], receives[i]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = 1 + random() % 2;
        sent[i] = from << 16 | i;
        job.send(from, sent[i], sends[i]);
        job.pass(int(random() % 300));
    }
    job.pass(20000);
    uint32_t last[3] = {};
    uint64_t sum = 0, expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(sends[i].done() && receives[i].done());
        assert_int_equal(receives[i].outcome().status, DTRAIN_OK);
        uint32_t from = received[i] >> 16;
        assert_int_equal(receives[i].outcome().peer, from);
        assert_true(last[from] == 0 || received[i] > last[from]);
        last[from] = received[i];
        sum += received[i];
        expected += sent[i];
    }
    assert_true(sum == expected);
}

void a_later_receive_does_not_overtake(void **) {
    Mixed job("overtake");
    uint32_t any = 0, exact = 0, first = 11, second = 12;
    engine::Request any_done, exact_done, sends[2];
    job.receive(-1, any, any_done);
    job.receive(1, exact, exact_done);
    job.pass(100);
    job.send(1, first, sends[0]);
    job.pass(2000);
    assert_true(any_done.done() && !exact_done.done());
    assert_int_equal(any, 11);
    job.send(1, second, sends[1]);
    job.pass(2000);
    assert_true(exact_done.done());
    assert_int_equal(exact, 12);
}

void from_nobody_is_a_timeout(void **) {
    Mixed job("nobody");
    uint32_t value = 5;
    engine::Request request;
    job.receive(-1, value, request, job.clock.now + 100 * ms);
    job.pass(3000);
    assert_true(request.done());
    assert_int_equal(request.outcome().status, DTRAIN_ERR_TIMEOUT);
    assert_int_equal(value, 5);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(messages_that_start_together_keep_their_order),
        cmocka_unit_test(a_message_that_is_there_needs_no_agent),
        cmocka_unit_test(what_its_caller_could_not_finish_goes_on_when_posted),
        cmocka_unit_test(nobody_runs_a_message_past_pending_operations),
        cmocka_unit_test(the_deadline_holds_while_connecting),
        cmocka_unit_test(from_anybody_wherever_they_are),
        cmocka_unit_test(a_later_receive_does_not_overtake),
        cmocka_unit_test(from_nobody_is_a_timeout),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
