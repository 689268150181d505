// Point-to-point messages whose connection is not there yet: none is lost, they keep their order,
// and one that cannot leave says why.
// SPDX-License-Identifier: Apache-2.0
#include "unit/processes.h"

#include "collectives/message.h"
#include "engine/tag.h"

#include <cstring>
#include <thread>

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
    void post(Process &process, MessageOperation::Direction direction, uint32_t member,
              uint32_t &value, engine::Request &request, int64_t deadline_ns = INT64_MAX) {
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
        auto *message = new MessageOperation(&request, params);
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

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(messages_that_start_together_keep_their_order),
        cmocka_unit_test(the_deadline_holds_while_connecting),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
