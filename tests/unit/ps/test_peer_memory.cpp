// What a worker makes a server hold, and its limit.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/table_wire.h"
#include "sim_job.h"

#include "check.h"

#include <iterator>

using namespace dtrain::ps;

namespace {

constexpr uint32_t workers = 2;
constexpr uint64_t chunk = 32 << 10; // that the answer to a small pull of rows takes

TableParams table_params(uint32_t consistency, bool sparse) {
    TableParams params;
    params.dtype = DTRAIN_F32;
    params.consistency = consistency;
    params.length = sparse ? 0 : 64;
    params.dim = sparse ? 2 : 0;
    if (sparse) params.placement.policy = DTRAIN_PLACE_HASH;
    return params;
}

// A server, whose answers are taken only when the test says so.
struct Rig {
    explicit Rig(const TableParams &params, uint64_t limit = 0)
        : server({.index = 0, .servers = 1, .workers = workers, .peer_limit = limit}) {
        const std::string payload = encode_table(params, "t");
        for (uint32_t worker = 0; worker < workers; ++worker) {
            RequestHeader h;
            h.worker = worker;
            server.on_request(worker, h, payload.data(), payload.size(), out);
        }
        out.clear();
    }
    // Whether it was answered, and why not as it should be.
    bool send(RequestKind kind, uint32_t worker, uint64_t sequence, uint64_t clock = 0,
              uint32_t pushes = 0) {
        RequestHeader h;
        h.kind = kind;
        h.worker = worker;
        h.sequence = sequence;
        h.clock = clock;
        h.pushes = pushes;
        h.count = has_trait(kind, Trait::ranged) ? 1 : 0;
        if (has_trait(kind, Trait::pushes)) h.flags = begins_push;
        struct {
            uint64_t key = 1;
            float row[2] = {1, 1};
        } sent;
        const bool rows = has_trait(kind, Trait::rows);
        const char *payload = reinterpret_cast<const char *>(&sent) + (rows ? 0 : sizeof sent.key);
        const uint64_t bytes = !has_trait(kind, Trait::sends)    ? 0
                               : !rows                           ? sizeof(float)
                               : has_trait(kind, Trait::carries) ? sizeof sent
                                                                 : sizeof sent.key;
        const size_t before = out.size();
        server.on_request(worker, h, payload, bytes, out);
        return out.size() > before;
    }
    void expect(Reason reason) {
        if (out.back().header.reason != reason) {
            char text[300];
            describe(out.back().header.reason, out.back().header.numbers, 0, text, sizeof text);
            fail_msg("%s", text);
        }
    }
    float value() { // of the row
        assert_true(send(RequestKind::pull_rows, 1, next++));
        expect(Reason::none);
        return *static_cast<const float *>(out.back().payload);
    }
    uint64_t held(uint32_t worker) { return server.peers()[worker].held(); }

    Server server;
    Responses out;
    uint64_t next = 1;
};

void what_is_done_at_once_takes_nothing(void **) {
    Rig rig(table_params(DTRAIN_ASYNC, false));
    for (uint64_t i = 1; i < 100; i += 2) {
        assert_true(rig.send(RequestKind::push, 0, i));
        assert_true(rig.send(RequestKind::pull, 0, i + 1)); // from the shard's memory
    }
    assert_int_equal(rig.server.peers()[0].most_held(), 0);
}

void answers_count_until_they_are_gone(void **) {
    Rig rig(table_params(DTRAIN_ASYNC, true));
    for (uint64_t i = 1; i <= 8; ++i) {
        assert_true(rig.send(RequestKind::pull_rows, 0, i));
        assert_in_range(rig.held(0), i * chunk, i * (chunk + 64));
    }
    assert_int_equal(rig.held(1), 0);
    rig.out.erase(rig.out.begin(), rig.out.begin() + 6);
    assert_in_range(rig.held(0), 2 * chunk, 2 * (chunk + 64));
    rig.out.clear();
    assert_int_equal(rig.held(0), 0);
    assert_in_range(rig.server.peers()[0].most_held(), 8 * chunk, 8 * (chunk + 64));
}

void too_many_answers_are_an_error_of_that_worker_only(void **) {
    Rig rig(table_params(DTRAIN_ASYNC, true), 3 * chunk);
    assert_true(rig.send(RequestKind::push_rows, 0, 1));
    assert_true(rig.send(RequestKind::pull_rows, 0, 2));
    assert_true(rig.send(RequestKind::pull_rows, 0, 3));
    for (RequestKind kind : {RequestKind::pull_rows, RequestKind::push_pull_rows}) {
        const bool pushes = kind != RequestKind::pull_rows;
        assert_true(rig.send(kind, 0, pushes ? 5 : 4));
        rig.expect(Reason::peer_limit);
        const auto *numbers = rig.out.back().header.numbers;
        assert_int_equal(numbers[0], rig.held(0));
        assert_int_equal(numbers[1], 3 * chunk);
        char text[300];
        describe(Reason::peer_limit, numbers, 0, text, sizeof text);
        const std::string held = "of worker 0 take " + std::to_string(rig.held(0)) + " bytes";
        assert_non_null(std::strstr(text, held.c_str()));
        assert_non_null(std::strstr(text, "of at most 98304"));
        assert_non_null(std::strstr(text, "ps.peer_memory"));
        assert_int_equal(status_of(Reason::peer_limit), DTRAIN_ERR_LIMIT);
    }
    assert_true(rig.value() == 1);                        // and what was refused has not pushed
    assert_false(rig.send(RequestKind::pull_rows, 0, 2)); // again: its answer is on its way
    rig.out.clear();
    assert_true(rig.send(RequestKind::pull_rows, 0, 2)); // it was lost
    rig.expect(Reason::none);
    assert_true(rig.send(RequestKind::push_pull_rows, 0, 6));
    rig.expect(Reason::none);
    assert_true(rig.value() == 2);
    assert_true(rig.send(RequestKind::pull_rows, 0, 4)); // an answer stays what it was
    rig.expect(Reason::peer_limit);
}

// Without room for what waits, the worker asks again; what ends the waiting is never refused.
void what_waits_may_take_half(void **) {
    const uint64_t limit = 1600;
    Rig rig(table_params(DTRAIN_BSP, false), limit);
    assert_true(rig.send(RequestKind::clock, 0, 1));
    uint64_t last = 2;
    for (; last < 30; ++last) {
        const uint64_t before = rig.held(0);
        assert_false(rig.send(RequestKind::pull, 0, last, 1));
        if (rig.held(0) == before) break;
        assert_true(rig.held(0) <= limit / 2);
    }
    assert_in_range(last, 2 + limit / 2 / 128, 2 + limit / 2 / 64);
    assert_false(rig.send(RequestKind::pull, 0, last, 1));
    assert_true(rig.send(RequestKind::push, 1, 1));
    assert_true(rig.send(RequestKind::clock, 1, 2, 0, 1));
    assert_int_equal(rig.out.size(), 1 + 2 + last - 2);
    for (const Response &response : rig.out)
        assert_int_equal(int(response.header.reason), int(Reason::none));
    assert_int_equal(rig.held(0), 0);
    assert_true(rig.send(RequestKind::pull, 0, last, 1)); // as it does after ps.retry
    rig.expect(Reason::none);
}

void who_does_not_take_answers_is_not_served(void **) {
    Rig rig(table_params(DTRAIN_ASYNC, false), 1000);
    {
        const Charge answers(rig.server.peers()[0], 1000 + chunk_bytes);
        assert_false(rig.send(RequestKind::push, 0, 1));
        assert_true(rig.send(RequestKind::push, 1, 1));
    }
    assert_true(rig.send(RequestKind::push, 0, 1));
    rig.expect(Reason::none);
    assert_int_equal(rig.out.back().header.table_version, 2);
}

void texts_count_while_they_may_be_told_again(void **) {
    for (uint64_t limit : {uint64_t{0}, uint64_t{64}}) { // there is no room for one
        Rig rig(table_params(DTRAIN_ASYNC, false), limit);
        for (uint64_t i = 1; i <= 100; ++i) {
            assert_true(rig.send(RequestKind::save, 0, i)); // there is no folder
            rig.expect(Reason::told);
        }
        const uint64_t held = rig.held(0);
        assert_in_range(held, limit == 0 ? request_window * 64 : 0, limit == 0 ? 16384 : 0);
        assert_true(rig.send(RequestKind::save, 0, 100)); // again
        rig.expect(limit == 0 ? Reason::told : Reason::peer_limit);
        assert_int_equal(rig.held(0), held);
        rig.server.on_worker_lost(0, rig.out);
        assert_int_equal(rig.held(0), 0);
    }
}

void what_a_worker_waits_for_goes_with_it(void **) {
    for (bool lost : {false, true}) {
        Rig rig(table_params(DTRAIN_BSP, true));
        assert_true(rig.send(RequestKind::clock, 0, 1));
        assert_false(rig.send(RequestKind::pull_rows, 0, 2, 1)); // will be asked for
        assert_false(rig.send(RequestKind::wait_ready, 0, 3));   // is parked
        assert_int_not_equal(rig.held(0), 0);
        if (lost)
            rig.server.on_worker_lost(0, rig.out);
        else
            rig.server.on_worker_left(0, rig.out);
        assert_int_equal(rig.held(0), 0);
    }
}

// Runs schedules whose limit is met often: no hang, no wrong value, and nothing is left. Returns
// how many workers have held more than that; enforced: by the servers.
uint32_t count_over(bool enforced) {
    const Definition modes[] = {
        {DTRAIN_ASYNC}, {DTRAIN_BSP}, {DTRAIN_SSP, 1}, {DTRAIN_QUORUM, 0, 1}};
    uint32_t refused = 0, over = 0;
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + 300; ++seed) {
        Scenario scenario = random_scenario(seed, modes[seed % std::size(modes)]);
        scenario.sparse = seed / 4 % 2 == 0;
        if (seed / 8 % 2 == 0) scenario.added_by = AddedBy::function;
        const uint64_t limit = scenario.sparse ? 40'000 : 1000;
        if (enforced) scenario.peer_limit = limit;
        SimJob job(scenario);
        const std::string error = job.run();
        if (!error.empty())
            fail_msg("seed %llu: %s", static_cast<unsigned long long>(seed), error.c_str());
        refused += job.refused();
        for (uint32_t s = 0; s < scenario.servers; ++s)
            for (uint32_t w = 0; w < scenario.workers; ++w) {
                const PeerMemory &memory = job.network().server(s)->peers()[w];
                over += memory.most_held() > limit + 64; // what an answer is rounded up by
                assert_int_equal(memory.held(), 0);
            }
    }
    print_message("%u operations were refused\n", refused);
    assert_int_equal(refused > 100, enforced);
    return over;
}

void schedules_keep_to_the_limit(void **) {
    assert_int_equal(count_over(true), 0);
    assert_in_range(count_over(false), 100, UINT32_MAX); // so the limit is what does it
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_at_once_takes_nothing),
        cmocka_unit_test(answers_count_until_they_are_gone),
        cmocka_unit_test(too_many_answers_are_an_error_of_that_worker_only),
        cmocka_unit_test(what_waits_may_take_half),
        cmocka_unit_test(who_does_not_take_answers_is_not_served),
        cmocka_unit_test(texts_count_while_they_may_be_told_again),
        cmocka_unit_test(what_a_worker_waits_for_goes_with_it),
        cmocka_unit_test(schedules_keep_to_the_limit),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
