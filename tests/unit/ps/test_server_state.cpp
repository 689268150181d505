// Rates and rule state as a server sees them: repeated, early, late, and malformed.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace dtrain::ps;

namespace {

class Rig {
  public:
    Rig(uint32_t workers, const TableParams &params) : server({.workers = workers}) {
        const std::string payload = encode_table(params, "t");
        for (uint32_t w = 0; w < workers; ++w)
            send(header(RequestKind::create, w, 0), payload.data(), payload.size());
        assert_int_equal(out.size(), workers);
    }

    static RequestHeader header(RequestKind kind, uint32_t worker, uint64_t sequence) {
        RequestHeader h;
        h.kind = kind;
        h.worker = worker;
        h.sequence = sequence;
        return h;
    }
    Responses &send(const RequestHeader &h, const void *payload = nullptr, uint64_t bytes = 0) {
        out.clear();
        server.on_request(h.worker, h, payload, bytes, out);
        return out;
    }
    void expect(Reason reason) const {
        assert_int_equal(out.size(), 1);
        assert_int_equal(out[0].header.reason, reason);
    }
    RequestHeader rate(uint64_t sequence, double value, uint64_t clock = 0) const {
        RequestHeader h = header(RequestKind::set_rate, 0, sequence);
        h.argument = std::bit_cast<uint64_t>(value);
        h.clock = clock;
        return h;
    }

    Server server;
    Responses out;
};

TableParams params_of(uint32_t rule, uint32_t consistency = DTRAIN_ASYNC) {
    TableParams params;
    params.length = 8;
    params.dtype = DTRAIN_F32;
    params.rule = rule;
    params.consistency = consistency;
    return params;
}

void a_repeated_rate_does_not_come_back(void **) {
    Rig rig(1, params_of(DTRAIN_RULE_SGD));
    for (const RequestHeader &h : {rig.rate(1, 0.5), rig.rate(2, 0.25), rig.rate(1, 0.5)}) {
        rig.send(h);
        rig.expect(Reason::none);
    }
    RequestHeader push = Rig::header(RequestKind::push_pull, 0, 3);
    push.count = 1;
    float g = 1, w = 0;
    rig.send(push, &g, sizeof g);
    rig.expect(Reason::none);
    std::memcpy(&w, rig.out[0].payload, sizeof w);
    assert_true(w == -0.25f);
}

void an_early_rate_is_asked_for_again(void **) {
    Rig rig(2, params_of(DTRAIN_RULE_SGD, DTRAIN_BSP));
    for (uint64_t clock = 0; clock < 2; ++clock) {
        RequestHeader h = Rig::header(RequestKind::clock, 0, clock + 1);
        h.clock = clock;
        rig.send(h);
    }
    rig.send(rig.rate(3, 0.5, 2));
    assert_int_equal(rig.out.size(), 0); // the other worker is at clock 0
    rig.send(Rig::header(RequestKind::clock, 1, 1));
    assert_int_equal(rig.out.size(), 2); // its answer, and the wish
    assert_int_equal(rig.out[1].header.reason, Reason::resend);
    rig.send(rig.rate(3, 0.5, 2));
    rig.expect(Reason::none);
    rig.send(rig.rate(4, 0.5, 1)); // of a clock that this worker has ended
    rig.expect(Reason::clock_passed);
}

void rates_suit_the_rule(void **) {
    Rig sum(1, params_of(DTRAIN_RULE_ADD)), ftrl(1, params_of(DTRAIN_RULE_FTRL)),
        sgd(1, params_of(DTRAIN_RULE_SGD));
    sum.send(sum.rate(1, 1));
    sum.expect(Reason::bad_rate);
    ftrl.send(ftrl.rate(1, 0));
    ftrl.expect(Reason::bad_rate);
    sgd.send(sgd.rate(1, std::nan("")));
    sgd.expect(Reason::bad_rate);
    sgd.send(sgd.rate(2, 0));
    sgd.expect(Reason::none);
}

void state_is_asked_for_by_whole_items(void **) {
    TableParams params = params_of(DTRAIN_RULE_LAMB);
    params.row_length = 4;
    Rig rig(1, params);
    struct Case {
        uint64_t array, first, count, bytes; // of the payload
        Reason reason;
    };
    const Case cases[] = {
        {0, 0, 8, 32, Reason::none},          {0, 3, 2, 8, Reason::none},
        {0, 3, 2, 4, Reason::bad_size},       {0, 7, 2, 8, Reason::bad_range},
        {2, 4, 4, 8, Reason::none}, // steps: one per row
        {2, 4, 4, 16, Reason::bad_size},      {2, 2, 4, 8, Reason::bad_range},
        {3, 0, 4, 16, Reason::unknown_state}, {UINT64_MAX, 0, 4, 16, Reason::unknown_state},
    };
    const std::vector<uint64_t> numbers(8, 5);
    uint64_t sequence = 1;
    for (const Case &c : cases) {
        RequestHeader h = Rig::header(RequestKind::set_state, 0, sequence++);
        h.argument = c.array;
        h.first = c.first;
        h.count = c.count;
        rig.send(h, numbers.data(), c.bytes);
        rig.expect(c.reason);
        h.kind = RequestKind::pull_state;
        h.sequence = sequence++;
        rig.send(h);
        if (c.reason == Reason::bad_size) continue; // of the other's payload
        rig.expect(c.reason);
        assert_int_equal(rig.out[0].bytes, c.reason == Reason::none ? c.bytes : 0);
        if (c.reason != Reason::none) continue;
        assert_memory_equal(rig.out[0].payload, numbers.data(), c.bytes);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_rate_does_not_come_back),
        cmocka_unit_test(an_early_rate_is_asked_for_again),
        cmocka_unit_test(rates_suit_the_rule),
        cmocka_unit_test(state_is_asked_for_by_whole_items),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
