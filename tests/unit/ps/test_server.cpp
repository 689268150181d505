// What a server answers to requests that are wrong, repeated, too large or too early.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace dtrain::ps;

namespace {

TableParams floats(uint64_t length) {
    TableParams params;
    params.length = length;
    params.dtype = DTRAIN_F32;
    return params;
}

class Rig {
  public:
    explicit Rig(uint32_t workers, uint64_t limit = 0, bool copies_answers = false)
        : server({.index = 0,
                  .servers = 1,
                  .workers = workers,
                  .memory_limit = limit,
                  .copies_answers = copies_answers}) {}

    RequestHeader header(RequestKind kind, uint32_t worker, uint64_t sequence) const {
        RequestHeader h;
        h.kind = kind;
        h.worker = worker;
        h.sequence = sequence;
        return h;
    }
    // What the request brings about: its answer and those of others.
    Responses &send(const RequestHeader &h, const void *payload = nullptr, uint64_t bytes = 0) {
        out.clear();
        server.on_request(h.worker, h, payload, bytes, out);
        return out;
    }
    Responses &create(uint32_t worker, const TableParams &params, const std::string &name = "t",
                      uint32_t table = 0) {
        const std::string payload = encode_table(params, name);
        RequestHeader h = header(RequestKind::create, worker, 0);
        h.table = table;
        return send(h, payload.data(), payload.size());
    }
    Responses &push(uint32_t worker, uint64_t sequence, float value) {
        RequestHeader h = header(RequestKind::push, worker, sequence);
        h.count = 1;
        h.flags = begins_push;
        return send(h, &value, sizeof value);
    }
    float value() {
        RequestHeader h = header(RequestKind::pull, 0, next_pull++);
        h.count = 1;
        send(h);
        assert_int_equal(out.size(), 1);
        assert_int_equal(out[0].header.reason, Reason::none);
        float result;
        std::memcpy(&result, out[0].payload, sizeof result);
        return result;
    }
    void expect(Reason reason) const {
        assert_int_equal(out.size(), 1);
        assert_int_equal(out[0].header.reason, reason);
    }

    Server server;
    Responses out;
    uint64_t next_pull = 10;
};

void a_table_is_made_when_all_have_asked(void **) {
    Rig rig(3);
    assert_int_equal(rig.create(0, floats(8)).size(), 0);
    assert_int_equal(rig.create(0, floats(8)).size(), 0); // sent again
    assert_int_equal(rig.create(2, floats(8)).size(), 0);
    Responses &out = rig.create(1, floats(8));
    assert_int_equal(out.size(), 3);
    for (const Response &response : out) assert_int_equal(response.header.reason, Reason::none);
    assert_int_equal(rig.create(2, floats(8)).size(), 1); // its answer was lost
    rig.expect(Reason::none);
}

void different_parameters_are_named(void **) {
    TableParams second = floats(8);
    second.learning_rate = 0.5;
    Rig rig(3);
    rig.create(0, floats(8));
    Responses &out = rig.create(1, second);
    assert_int_equal(out.size(), 2);
    for (const Response &response : out) {
        assert_int_equal(status_of(response.header.reason), DTRAIN_ERR_MISMATCH);
        char text[200];
        describe(response.header.reason, response.header.numbers, 0, text, sizeof text);
        assert_string_equal(text, "learning_rate differs from what worker 0 gave");
    }
    rig.create(2, floats(8));
    rig.expect(Reason::mismatch);
    rig.push(2, 1, 1);
    rig.expect(Reason::unknown_table);
    rig.create(0, floats(8), "one", 1);
    assert_int_equal(rig.create(1, floats(8), "two", 1).size(), 2);
    assert_string_equal(field_name(rig.out[0].header.numbers[0]), "name");
    assert_int_equal(rig.server.memory_used(), 0);
}

// It costs its sender an error; the clock is over for all the same.
void a_clock_with_a_bad_weight_ends(void **) {
    TableParams params = floats(8);
    params.consistency = DTRAIN_BSP;
    params.aggregate = DTRAIN_AVG;
    for (double weight : {-1.0, 1e308, double(NAN)}) {
        Rig rig(2);
        for (uint32_t w = 0; w < 2; ++w) rig.create(w, params);
        rig.push(0, 1, 6);
        RequestHeader clock = rig.header(RequestKind::clock, 0, 2);
        clock.pushes = 1;
        clock.argument = std::bit_cast<uint64_t>(2.0);
        clock.flags = weighted;
        rig.send(clock);
        rig.expect(Reason::none);
        clock = rig.header(RequestKind::clock, 1, 1);
        clock.argument = std::bit_cast<uint64_t>(weight);
        clock.flags = weighted;
        rig.send(clock);
        rig.expect(Reason::bad_weight);
        RequestHeader pull = rig.header(RequestKind::pull, 0, 3);
        pull.count = 1;
        pull.clock = 1;
        rig.send(pull);
        rig.expect(Reason::none);
        float value;
        std::memcpy(&value, rig.out[0].payload, sizeof value);
        assert_true(value == 3); // nobody else counts
    }
}

void a_push_is_applied_once(void **) {
    Rig rig(1);
    rig.create(0, floats(8));
    for (int repetition = 0; repetition < 3; ++repetition) {
        rig.push(0, 1, 1.5f);
        rig.expect(Reason::none);
        assert_int_equal(rig.out[0].header.table_version, 1);
    }
    assert_true(rig.value() == 1.5f);
    rig.push(0, 40, 1);
    rig.expect(Reason::none);
    rig.push(0, 1, 1.5f);
    rig.expect(Reason::forgotten);
    rig.push(0, 40 + request_window + 1, 1);
    rig.expect(Reason::window);
    assert_true((rig.next_pull = 41, rig.value()) == 2.5f);
}

void every_bad_header_is_refused(void **) {
    Rig rig(2);
    rig.create(0, floats(8));
    rig.create(1, floats(8));
    struct Case {
        Reason reason;
        void (*spoil)(RequestHeader &);
    };
    const Case cases[] = {
        {Reason::bad_header, [](RequestHeader &h) { h.magic ^= 1; }},
        {Reason::bad_version, [](RequestHeader &h) { ++h.version; }},
        {Reason::bad_version, [](RequestHeader &h) { h.version = 0; }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind(0); }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind(20); }},
        {Reason::bad_header, [](RequestHeader &h) { h.flags = known_request_flags + 1; }},
        {Reason::bad_weight, [](RequestHeader &h) { h.argument = 1; }},
        {Reason::bad_header, [](RequestHeader &h) { h.sequence = 0; }},
        {Reason::bad_header, [](RequestHeader &h) { h.count = 0; }},
        {Reason::bad_header, [](RequestHeader &h) { h.first = UINT64_MAX; }},
        {Reason::bad_header, [](RequestHeader &h) { h.pushes = 1; }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind::clock; }},
        {Reason::wrong_worker, [](RequestHeader &h) { h.worker = 1; }},
        {Reason::wrong_worker, [](RequestHeader &h) { h.worker = 2; }},
        {Reason::unknown_table, [](RequestHeader &h) { h.table = 7; }},
        {Reason::wrong_partition, [](RequestHeader &h) { h.partition = 1; }},
        {Reason::bad_range, [](RequestHeader &h) { h.first = 8; }},
        {Reason::bad_range, [](RequestHeader &h) { h.count = 9; }},
        {Reason::bad_size, [](RequestHeader &h) { h.count = 2; }},
        {Reason::bad_size, [](RequestHeader &h) { h.kind = RequestKind::pull; }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind::set_rate; }},
        {Reason::unknown_state, [](RequestHeader &h) { h.kind = RequestKind::set_state; }},
        {Reason::window, [](RequestHeader &h) { h.sequence = UINT64_MAX - 40; }},
        {Reason::clock_ahead, [](RequestHeader &h) { h.clock = request_window; }},
    };
    uint64_t sequence = 1;
    for (const Case &c : cases) {
        RequestHeader h = rig.header(RequestKind::push, 0, sequence++);
        h.count = 1;
        c.spoil(h);
        float value = 1;
        rig.out.clear();
        rig.server.on_request(0, h, &value, sizeof value, rig.out);
        rig.expect(c.reason);
        assert_true(status_of(c.reason) < 0);
    }
    rig.next_pull = 30;
    assert_true(rig.value() == 0);
    // Of another version nothing else is looked at, and the text tells both.
    RequestHeader old = rig.header(RequestKind::create, 0, 0);
    old.version = protocol_version - 1;
    old.flags = 0xffff;
    rig.out.clear();
    rig.server.on_request(0, old, "", 0, rig.out);
    rig.expect(Reason::bad_version);
    char text[200];
    describe(Reason::bad_version, rig.out[0].header.numbers, 0, text, sizeof text);
    char due[80];
    std::snprintf(due, sizeof due,
                  "speaks version %d of the table protocol, the server's version %d",
                  protocol_version - 1, protocol_version);
    assert_non_null(strstr(text, due));
    assert_int_equal(status_of(Reason::bad_version), DTRAIN_ERR_VERSION);
}

void random_headers_harm_nobody(void **) {
    std::mt19937_64 random(20240817);
    print_message("seed 20240817\n");
    Rig rig(3);
    for (uint32_t w = 0; w < 3; ++w) rig.create(w, floats(64));
    std::vector<float> payload(64, 1);
    for (int i = 0; i < 200000; ++i) {
        RequestHeader h = rig.header(RequestKind(random() % 20), 1 + uint32_t(random() % 2), 0);
        h.sequence = random() % 64 + uint64_t(i) / 1000;
        h.flags = uint16_t(random() % 4);
        h.first = random() % 70;
        h.count = random() % 70;
        h.clock = random() % 40;
        h.table = random() % 50 == 0;
        if (random() % 4 == 0) { // any field, anything
            auto *words = reinterpret_cast<uint64_t *>(&h);
            words[random() % 8] ^= uint64_t{1} << random() % 64;
        }
        if (h.kind == RequestKind::destroy) continue;
        rig.out.clear();
        uint64_t bytes = random() % 2 == 0 ? h.count * 4 : random() % 257;
        rig.server.on_request(1 + uint32_t(random() % 2), h, payload.data(),
                              bytes > 256 ? 256 : bytes, rig.out);
        for (const Response &response : rig.out) assert_true(response.worker < 3);
    }
    rig.push(0, 1, 1); // the other worker is served
    rig.expect(Reason::none);
}

void the_memory_limit_is_an_error_of_that_table_only(void **) {
    Rig rig(1, 100 * sizeof(float));
    rig.create(0, floats(60), "a", 0);
    rig.expect(Reason::none);
    rig.create(0, floats(60), "b", 1);
    rig.expect(Reason::memory_limit);
    assert_int_equal(rig.out[0].header.numbers[0], 240);
    assert_int_equal(rig.out[0].header.numbers[1], 160);
    rig.push(0, 1, 1);
    rig.expect(Reason::none);
    rig.send(rig.header(RequestKind::destroy, 0, 2));
    rig.expect(Reason::none);
    assert_int_equal(rig.server.memory_used(), 0);
    rig.create(0, floats(100), "c", 2);
    rig.expect(Reason::none);
}

void a_dropped_table_does_not_come_back(void **) {
    Rig rig(2);
    rig.create(0, floats(8));
    rig.create(1, floats(8));
    rig.send(rig.header(RequestKind::destroy, 0, 1));
    rig.push(0, 2, 1);
    rig.expect(Reason::unknown_table);
    rig.push(1, 1, 1);
    rig.expect(Reason::none);
    rig.server.on_worker_left(1, rig.out);
    rig.send(rig.header(RequestKind::destroy, 0, 1)); // sent again
    rig.expect(Reason::none);
    rig.create(0, floats(8)); // a late copy
    rig.expect(Reason::unknown_table);
    assert_false(rig.server.deserted());
    rig.out.clear();
    rig.server.on_worker_lost(0, rig.out);
    assert_true(rig.server.deserted());
}

void a_lost_worker_ends_a_create(void **) {
    Rig rig(3);
    rig.create(0, floats(8));
    rig.create(1, floats(8));
    rig.out.clear();
    rig.server.on_worker_lost(2, rig.out);
    assert_int_equal(rig.out.size(), 2);
    for (const Response &response : rig.out)
        assert_int_equal(status_of(response.header.reason), DTRAIN_ERR_PEER);
}

// A worker that did not run while the others waited for its answer has the table, they have not.
void who_gives_up_a_table_that_others_have_is_lost_to_it(void **) {
    for (const bool failed : {true, false}) {
        Rig rig(3);
        TableParams params = floats(1);
        params.consistency = DTRAIN_BSP;
        for (uint32_t worker : {0u, 1u, 2u}) rig.create(worker, params);
        for (uint32_t worker : {1u, 2u}) {
            RequestHeader h = rig.header(RequestKind::destroy, worker, 1);
            h.flags = failed ? gives_up : 0;
            rig.send(h);
            rig.expect(Reason::none);
        }
        rig.push(0, 1, 1);
        rig.expect(failed ? Reason::gave_up : Reason::none);
        RequestHeader clock = rig.header(RequestKind::clock, 0, 2);
        clock.pushes = 1;
        rig.send(clock);
        RequestHeader pull = rig.header(RequestKind::pull, 0, 3);
        pull.count = pull.clock = 1;
        rig.send(pull);
        rig.expect(failed ? Reason::gave_up : Reason::none);
        if (failed) {
            char text[200];
            describe(Reason::gave_up, rig.out[0].header.numbers, 0, text, sizeof text);
            assert_non_null(strstr(text, "worker 1 gave up creating the table"));
            assert_int_equal(status_of(Reason::gave_up), DTRAIN_ERR_PEER);
        }
        rig.server.on_worker_left(0, rig.out);
        assert_int_equal(rig.server.memory_used(), 0);
    }
}

// Nobody has the table then, and who still asks for it hears from that worker why.
void who_gives_up_before_all_have_asked_only_leaves(void **) {
    Rig rig(2);
    rig.create(0, floats(8));
    RequestHeader h = rig.header(RequestKind::destroy, 0, 1);
    h.flags = gives_up;
    rig.send(h);
    rig.create(1, floats(8));
    rig.expect(Reason::none);
}

// With the option verify: a card reads the values of an answer whenever the peer has a place.
void answers_do_not_change_on_their_way(void **) {
    for (const bool copies : {false, true}) {
        Rig rig(1, 0, copies);
        TableParams params = floats(2);
        params.rule = DTRAIN_RULE_MOMENTUM;
        params.momentum = 0.5;
        rig.create(0, params);
        rig.push(0, 1, 1);
        RequestHeader pull = rig.header(RequestKind::pull, 0, 2);
        pull.count = 2;
        Responses values = std::move(rig.send(pull));
        RequestHeader state = rig.header(RequestKind::pull_state, 0, 3);
        state.count = 2;
        Responses states = std::move(rig.send(state));
        assert_int_equal(values[0].header.reason, Reason::none);
        assert_int_equal(states[0].header.reason, Reason::none);
        assert_int_equal(values[0].bytes, 2 * sizeof(float));
        float before[2][2], after[2][2];
        std::memcpy(before[0], values[0].payload, sizeof before[0]);
        std::memcpy(before[1], states[0].payload, sizeof before[1]);
        rig.push(0, 4, 1);
        std::memcpy(after[0], values[0].payload, sizeof after[0]);
        std::memcpy(after[1], states[0].payload, sizeof after[1]);
        assert_int_equal(std::memcmp(before, after, sizeof before) == 0, copies);
    }
}

void a_push_too_early_is_asked_for_again(void **) {
    Rig rig(2);
    TableParams params = floats(1);
    params.consistency = DTRAIN_BSP;
    rig.create(0, params);
    rig.create(1, params);
    RequestHeader push = rig.header(RequestKind::push, 0, 1);
    push.count = 1;
    push.clock = open_clocks;
    float value = 1;
    assert_int_equal(rig.send(push, &value, sizeof value).size(), 0);
    assert_int_equal(rig.send(push, &value, sizeof value).size(), 0);
    for (uint32_t worker = 0; worker < 2; ++worker)
        rig.send(rig.header(RequestKind::clock, worker, 9));
    assert_int_equal(rig.out.size(), 2);
    assert_int_equal(rig.out[1].header.reason, Reason::resend);
    assert_int_equal(rig.out[1].header.sequence, 1);
    rig.send(push, &value, sizeof value);
    rig.expect(Reason::none);
}

// Only a repetition is told so.
void a_late_worker_is_named(void **) {
    Rig rig(3);
    TableParams params = floats(1);
    params.consistency = DTRAIN_BSP;
    for (uint32_t worker = 0; worker < 3; ++worker) rig.create(worker, params);
    rig.send(rig.header(RequestKind::clock, 0, 1));
    RequestHeader pull = rig.header(RequestKind::pull, 0, 2);
    pull.count = pull.clock = 1;
    assert_int_equal(rig.send(pull).size(), 0);
    for (uint32_t late : {1u, 2u}) {
        rig.send(pull);
        rig.expect(Reason::waits);
        assert_int_equal(rig.out[0].header.sequence, 2);
        assert_int_equal(rig.out[0].header.numbers[0], late);
        assert_int_equal(rig.out[0].header.numbers[1], 0);
        rig.send(rig.header(RequestKind::clock, late, 1));
    }
    assert_int_equal(rig.out.size(), 2); // the answers to the last clock, and to the pull
    assert_int_equal(rig.out[1].header.reason, Reason::none);
}

void bad_parameters_are_named(void **) {
    Rig rig(1);
    TableParams params = floats(8);
    params.rule = 99;
    rig.create(0, params);
    rig.expect(Reason::bad_parameter);
    assert_string_equal(field_name(rig.out[0].header.numbers[0]), "rule");
    params = floats(UINT64_MAX);
    rig.create(0, params);
    rig.expect(Reason::bad_parameter);
    params = floats(8);
    params.dtype = DTRAIN_U8;
    params.initial = 256;
    rig.create(0, params);
    rig.expect(Reason::bad_parameter);
    params.initial = 255;
    rig.create(0, params);
    rig.expect(Reason::none);
    rig.create(0, floats(8), "", 1);
    rig.expect(Reason::bad_size);
    rig.create(0, floats(8), std::string(max_name + 1, 'x'), 1);
    rig.expect(Reason::bad_size);
    rig.create(0, floats(8), "t", max_tables);
    rig.expect(Reason::too_many_tables);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_made_when_all_have_asked),
        cmocka_unit_test(different_parameters_are_named),
        cmocka_unit_test(a_push_is_applied_once),
        cmocka_unit_test(a_clock_with_a_bad_weight_ends),
        cmocka_unit_test(every_bad_header_is_refused),
        cmocka_unit_test(random_headers_harm_nobody),
        cmocka_unit_test(the_memory_limit_is_an_error_of_that_table_only),
        cmocka_unit_test(a_dropped_table_does_not_come_back),
        cmocka_unit_test(answers_do_not_change_on_their_way),
        cmocka_unit_test(a_lost_worker_ends_a_create),
        cmocka_unit_test(who_gives_up_a_table_that_others_have_is_lost_to_it),
        cmocka_unit_test(who_gives_up_before_all_have_asked_only_leaves),
        cmocka_unit_test(a_push_too_early_is_asked_for_again),
        cmocka_unit_test(a_late_worker_is_named),
        cmocka_unit_test(bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
