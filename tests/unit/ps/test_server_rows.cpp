// What a server answers to requests for rows that are wrong, repeated, too large or too early.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 2;
using Row = float[dim];

TableParams row_params(uint32_t consistency = DTRAIN_ASYNC) {
    TableParams params;
    params.dim = dim;
    params.dtype = DTRAIN_F32;
    params.consistency = consistency;
    params.placement.policy = DTRAIN_PLACE_HASH;
    return params;
}

class Rig {
  public:
    Rig(uint32_t workers, uint32_t servers, uint64_t limit = 0)
        : workers_(workers),
          server({.index = 0, .servers = servers, .workers = workers, .memory_limit = limit}) {}

    void create(const TableParams &params, uint32_t table = 0) {
        const std::string payload = encode_table(params, "t");
        for (uint32_t worker = 0; worker < workers_; worker++) {
            RequestHeader h;
            h.worker = worker;
            h.table = table;
            out.clear();
            server.on_request(worker, h, payload.data(), payload.size(), out);
        }
    }
    RequestHeader header(RequestKind kind, uint64_t sequence, uint64_t count) const {
        RequestHeader h;
        h.kind = kind;
        h.sequence = sequence;
        h.count = count;
        return h;
    }
    Responses &send(const RequestHeader &h, const std::vector<uint64_t> &payload) {
        out.clear();
        for (const bool rows : {false, true}) // as for requests that come in a pack
            server.prefetch(h, payload.data(), payload.size() * 8, rows);
        server.on_request(h.worker, h, payload.data(), payload.size() * 8, out);
        return out;
    }
    // Adds 1 to the rows.
    Responses &push(uint64_t sequence, std::vector<uint64_t> keys) {
        const uint64_t count = keys.size();
        const Row ones = {1, 1};
        uint64_t word;
        static_assert(sizeof word == sizeof ones);
        std::memcpy(&word, ones, sizeof word);
        keys.resize(2 * count, word);
        return send(header(RequestKind::push_rows, sequence, count), keys);
    }
    float value(uint64_t sequence, uint64_t key) {
        send(header(RequestKind::pull_rows, sequence, 1), {key});
        expect(Reason::none);
        assert_int_equal(out[0].bytes, sizeof(Row));
        return *static_cast<const float *>(out[0].payload);
    }
    void expect(Reason reason) const {
        assert_int_equal(out.size(), 1);
        assert_int_equal(out[0].header.reason, reason);
    }

    const uint32_t workers_;
    Server server;
    Responses out;
};

void rows_are_pushed_once(void **) {
    Rig rig(1, 1);
    rig.create(row_params());
    assert_true(rig.value(1, 5) == 0);
    for (int repetition = 0; repetition < 3; repetition++) {
        rig.push(2, {5, 6});
        rig.expect(Reason::none);
    }
    assert_true(rig.value(3, 5) == 1);
    rig.push(4, {5});
    assert_true(rig.value(3, 5) == 2); // asked again: what is there now
    assert_true(rig.value(5, 7) == 0);
}

void every_rule_is_served(void **) {
    for (uint32_t rule : builtin_rules()) {
        if (rule_info(rule).is(RuleInfo::backs_up)) continue; // dense tables only
        TableParams params = row_params();
        params.rule = rule;
        Rig rig(1, 1);
        rig.create(params);
        rig.expect(Reason::none);
        rig.push(1, {5});
        rig.expect(Reason::none);
        assert_true(rig.value(2, 5) != 0 || rule == DTRAIN_RULE_MIN);
    }
}

void every_bad_request_is_refused(void **) {
    Rig rig(1, 2);
    const KeyPartition partition(2);
    uint64_t mine = 0, other = 0;
    while (partition.server_of(mine) != 0) mine++;
    while (partition.server_of(other) != 1) other++;
    rig.create(row_params());
    TableParams dense;
    dense.length = 100;
    dense.dtype = DTRAIN_F32;
    rig.create(dense, 1);
    struct Case {
        Reason reason;
        void (*spoil)(RequestHeader &);
    };
    const Case cases[] = {
        {Reason::bad_header, [](RequestHeader &h) { h.first = 1; }},
        {Reason::bad_header, [](RequestHeader &h) { h.count = 0; }},
        {Reason::bad_header, [](RequestHeader &h) { h.pushes = 1; }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind(20); }},
        {Reason::bad_size, [](RequestHeader &h) { h.count = 2; }},
        {Reason::bad_size, [](RequestHeader &h) { h.count = UINT64_MAX; }},
        {Reason::bad_size, [](RequestHeader &h) { h.count = UINT64_MAX / 16 + 2; }}, // 16 of them
        {Reason::bad_size, [](RequestHeader &h) { h.count = chunk_bytes / 16 + 1; }},
        {Reason::bad_size, [](RequestHeader &h) { h.kind = RequestKind::pull_rows; }},
        {Reason::wrong_kind, [](RequestHeader &h) { h.table = 1; }},
        {Reason::wrong_kind, [](RequestHeader &h) { h.kind = RequestKind::push; }},
        {Reason::wrong_kind, [](RequestHeader &h) { h.kind = RequestKind::push_pull; }},
        {Reason::wrong_kind, [](RequestHeader &h) { h.kind = RequestKind::set; }},
        {Reason::wrong_kind,
         [](RequestHeader &h) {
             h.kind = RequestKind::set_rows;
             h.table = 1;
         }},
        {Reason::bad_size, [](RequestHeader &h) { h.kind = RequestKind::erase_rows; }},
        {Reason::bad_header, [](RequestHeader &h) { h.kind = RequestKind::count_rows; }},
        {Reason::unknown_state, [](RequestHeader &h) { h.kind = RequestKind::set_state_rows; }},
        {Reason::unknown_state, [](RequestHeader &h) { h.kind = RequestKind::pull_state_rows; }},
        {Reason::wrong_partition, [](RequestHeader &h) { h.partition = 1; }},
    };
    uint64_t sequence = 1;
    for (const Case &c : cases) {
        RequestHeader h = rig.header(RequestKind::push_rows, sequence++, 1);
        c.spoil(h);
        rig.send(h, {mine, 0});
        rig.expect(c.reason);
        assert_true(status_of(c.reason) < 0);
    }
    rig.push(20, {mine, other});
    rig.expect(Reason::wrong_server);
    char text[200];
    describe(Reason::wrong_server, rig.out[0].header.numbers, 0, text, sizeof text);
    assert_string_equal(text, ("key " + std::to_string(other) + " belongs to server 1").c_str());
    rig.send(rig.header(RequestKind::pull_rows, 21, 1), {other});
    rig.expect(Reason::wrong_server);
    assert_true(rig.value(22, mine) == 0); // nothing of the push was applied
    assert_int_equal(rig.server.memory_used(), 100 / 2 / 16 * 16 * 4 + 16 * 4);
}

void random_requests_harm_nobody(void **) {
    print_message("seed 20240818\n");
    std::mt19937_64 random(20240818);
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP}) {
        Rig rig(2, 1, 1 << 20);
        rig.create(row_params(consistency));
        std::vector<uint64_t> payload(64);
        for (int i = 0; i < 60000; i++) {
            RequestHeader h = rig.header(RequestKind(3 + random() % 18), 0, random() % 34);
            h.worker = 1;
            h.sequence = 1 + random() % 64 + uint64_t(i) / 1000;
            h.flags = uint16_t(random() % 4);
            h.clock = random() % 40;
            for (uint64_t &word : payload) word = random();
            if (random() % 4 == 0) { // any field, anything
                auto *words = reinterpret_cast<uint64_t *>(&h);
                words[random() % 8] ^= uint64_t{1} << random() % 64;
            }
            if (h.kind == RequestKind::destroy) continue;
            uint64_t bytes = random() % 3 > 0 ? h.count * (8u << random() % 2) : random() % 513;
            rig.out.clear();
            rig.server.on_request(1, h, payload.data(), bytes > 512 ? 512 : bytes, rig.out);
            for (const Response &response : rig.out) assert_true(response.worker < 2);
            assert_true(rig.server.memory_used() <= 1 << 20);
        }
        rig.push(1, {UINT64_MAX}); // the other worker is served
        assert_int_equal(rig.out.size(), 1);
        assert_true(rig.out[0].header.reason == Reason::none ||
                    rig.out[0].header.reason == Reason::rows_limit);
    }
}

// Two tables share the limit; what one gives up the other may have.
void the_limit_is_the_servers(void **) {
    Rig rig(1, 1, 200'000);
    rig.create(row_params(), 0);
    rig.create(row_params(), 1);
    uint64_t sequences[] = {1, 1}, key = 0;
    auto fill = [&](uint32_t table) {
        uint64_t &sequence = sequences[table];
        for (;; sequence++) {
            RequestHeader h = rig.header(RequestKind::push_rows, sequence, 16);
            h.table = table;
            std::vector<uint64_t> payload(32);
            for (int i = 0; i < 16; i++) payload[i] = key++;
            rig.send(h, payload);
            if (rig.out[0].header.reason != Reason::none) break;
        }
        rig.expect(Reason::rows_limit);
        sequence++;
        assert_true(rig.server.memory_used() <= 200'000);
        assert_true(rig.server.memory_used() > 150'000);
    };
    fill(0);
    const uint64_t before = rig.server.memory_used();
    fill(1);
    assert_true(rig.server.memory_used() - before < 50'000);
    char text[200];
    describe(Reason::rows_limit, rig.out[0].header.numbers, 0, text, sizeof text);
    assert_non_null(std::strstr(text, "memory limit of the server"));
    rig.push(sequences[0]++, {0}); // a row that is there needs nothing
    rig.expect(Reason::none);
    rig.send(rig.header(RequestKind::destroy, sequences[0], 0), {});
    RequestHeader h = rig.header(RequestKind::push_rows, sequences[1], 1);
    h.table = 1;
    rig.send(h, {1'000'000'000, 0});
    rig.expect(Reason::none);
}

// Keys of a pull that waits are not kept: it is asked for when its clock has come.
void a_pull_too_early_is_asked_for_again(void **) {
    Rig rig(2, 1);
    rig.create(row_params(DTRAIN_SSP));
    RequestHeader pull = rig.header(RequestKind::pull_rows, 1, 1);
    pull.clock = 1;
    assert_int_equal(rig.send(pull, {3}).size(), 0);
    assert_int_equal(rig.send(pull, {3}).size(), 0);
    for (uint32_t worker = 0; worker < 2; worker++) {
        RequestHeader clock = rig.header(RequestKind::clock, 9, 0);
        clock.worker = worker;
        rig.send(clock, {});
    }
    assert_int_equal(rig.out.size(), 2);
    assert_int_equal(rig.out[1].header.reason, Reason::resend);
    assert_int_equal(rig.out[1].header.sequence, 1);
    rig.send(pull, {3});
    rig.expect(Reason::none);
    assert_int_equal(rig.out[0].header.count, 1);
}

// The same with what is pushed at once, which is taken when it comes and not again.
void a_push_and_pull_too_early_is_pushed_once(void **) {
    for (bool canceled : {false, true}) {
        Rig rig(2, 1);
        rig.create(row_params(DTRAIN_SSP));
        RequestHeader fused = rig.header(RequestKind::push_pull_rows, 1, 1);
        fused.clock = 1;
        const float ones[2] = {1, 1};
        std::vector<uint64_t> payload = {3, 0};
        std::memcpy(&payload[1], ones, sizeof ones);
        assert_int_equal(rig.send(fused, payload).size(), 0);
        assert_int_equal(rig.send(fused, payload).size(), 0);
        if (canceled) {
            RequestHeader cancel = rig.header(RequestKind::cancel, 1, 0);
            cancel.clock = 1;
            cancel.flags = counted_push;
            rig.send(cancel, {});
            rig.expect(Reason::canceled);
        }
        for (uint32_t worker = 0; worker < 2; worker++) {
            RequestHeader clock = rig.header(RequestKind::clock, 9, 0);
            clock.worker = worker;
            const Responses &out = rig.send(clock, {});
            assert_int_equal(out[0].header.reason, Reason::none);
            assert_int_equal(out.size(), worker == 1 && !canceled ? 2 : 1);
            if (out.size() == 2) assert_int_equal(out[1].header.reason, Reason::resend);
        }
        rig.send(fused, payload);
        rig.expect(canceled ? Reason::canceled : Reason::none);
        assert_true(rig.value(10, 3) == 1);
        // The push was counted, once: so the clock that has it can end.
        RequestHeader clock = rig.header(RequestKind::clock, 11, 0);
        clock.clock = clock.pushes = 1;
        rig.send(clock, {});
        rig.expect(Reason::none);
    }
}

// What was pushed in an open clock for a row that is erased goes with it.
void erased_rows_leave_no_sums(void **) {
    Rig rig(1, 1);
    rig.create(row_params(DTRAIN_BSP));
    rig.push(1, {5, 6});
    rig.send(rig.header(RequestKind::erase_rows, 2, 2), {5, 7});
    rig.expect(Reason::none);
    RequestHeader clock = rig.header(RequestKind::clock, 3, 0);
    clock.pushes = 1;
    rig.send(clock, {});
    rig.expect(Reason::none);
    rig.send(rig.header(RequestKind::count_rows, 4, 0), {});
    rig.expect(Reason::none);
    assert_int_equal(rig.out[0].header.numbers[0], 1);
    for (uint64_t key : {5, 6}) {
        RequestHeader pull = rig.header(RequestKind::pull_rows, key, 1);
        pull.clock = 1;
        rig.send(pull, {key});
        rig.expect(Reason::none);
        assert_true(*static_cast<const float *>(rig.out[0].payload) == (key == 6 ? 1 : 0));
    }
}

void a_table_has_a_limit_of_its_own(void **) {
    TableParams params = row_params();
    params.max_bytes = 100'000;
    for (uint64_t server_limit : {uint64_t{0}, uint64_t{10'000'000}, uint64_t{50'000}}) {
        Rig rig(1, 1, server_limit);
        rig.create(params);
        uint64_t sequence = 1, key = 0;
        while (rig.push(sequence++, {key, key + 1})[0].header.reason == Reason::none) key += 2;
        const bool own = server_limit != 50'000;
        rig.expect(own ? Reason::table_limit : Reason::rows_limit);
        assert_true(rig.server.memory_used() <= (own ? params.max_bytes : server_limit));
        assert_true(rig.server.memory_used() > (own ? params.max_bytes : server_limit) * 3 / 4);
        rig.push(sequence++, {0, 1});
        rig.expect(Reason::none);
    }
    params.dim = 0;
    params.length = 5;
    assert_string_equal(field_name(first_bad_field(params)), "max_bytes");
}

void steps_are_kept_in_32_bits(void **) {
    Rig rig(1, 1);
    TableParams params = row_params();
    params.rule = DTRAIN_RULE_ADAM;
    rig.create(params);
    RequestHeader set = rig.header(RequestKind::set_state_rows, 1, 2);
    set.argument = 2;
    rig.send(set, {8, 9, uint64_t{1} << 40, 12});
    rig.expect(Reason::none);
    rig.push(2, {8, 9});
    RequestHeader pull = rig.header(RequestKind::pull_state_rows, 3, 3);
    pull.argument = 2;
    rig.send(pull, {9, 8, 7});
    rig.expect(Reason::none);
    assert_int_equal(rig.out[0].bytes, 24);
    const auto *steps = static_cast<const uint64_t *>(rig.out[0].payload);
    assert_int_equal(steps[0], 13);
    assert_int_equal(steps[1], UINT32_MAX);
    assert_int_equal(steps[2], 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_pushed_once),
        cmocka_unit_test(every_rule_is_served),
        cmocka_unit_test(every_bad_request_is_refused),
        cmocka_unit_test(random_requests_harm_nobody),
        cmocka_unit_test(the_limit_is_the_servers),
        cmocka_unit_test(a_pull_too_early_is_asked_for_again),
        cmocka_unit_test(a_push_and_pull_too_early_is_pushed_once),
        cmocka_unit_test(erased_rows_leave_no_sums),
        cmocka_unit_test(a_table_has_a_limit_of_its_own),
        cmocka_unit_test(steps_are_kept_in_32_bits),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
