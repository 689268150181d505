// Registered memory over verbs, by libfabric or UCX: what is copied and what the card is told,
// memory that is freed and mapped again, and the limit on locked memory.
// SPDX-License-Identifier: Apache-2.0
#include "rdma/card.h"
#include "transport/cases_memory.h"
#include "transport/loaded.h"

#include <algorithm>
#include <sys/resource.h>

using namespace dtrain::test;

namespace {

bool over_ucx() { return subject.plugin->name == std::string_view("ucx"); }

Range range(Registered &memory, size_t at, size_t len) { return {memory.at(at), len}; }

// The card has moved each byte of `from` once, into its place in `into`, and was not told of either
// memory again, but of what UCX 1.13 cannot be told is registered.
void expect_moved(const Told &told, const Range &from, const Range &into, const Range &again) {
    struct Move {
        Range from, into;
    };
    std::vector<Move> moves;
    for (const Piece &piece : told.read) moves.push_back({piece.remote, piece.local});
    for (const Piece &piece : told.written) moves.push_back({piece.local, piece.remote});
    std::ranges::sort(moves, {}, [](const Move &move) { return move.from.at; });
    uint64_t next = from.at;
    for (const Move &move : moves) {
        assert_int_equal(move.from.at, next);
        assert_int_equal(move.into.at - into.at, next - from.at);
        next = move.from.end();
    }
    assert_int_equal(next, from.end());
    assert_true(told.sent < 1000); // heads, grants
    assert_true(told.registered.size() <= (over_ucx() ? 1 : 0));
    for (const Range &registered : told.registered) assert_true(registered.within(again));
}

void the_card_moves_a_message_from_memory_to_memory(void **) {
    constexpr size_t at = 5, len = 3'000'000;
    Pair pair;
    Registered from(pair.a, pattern(at + len, 1)), into(pair.b, Bytes(at + len));
    for (int round = 0; round < 3; round++) {
        std::ranges::fill(into.bytes, uint8_t(0));
        take_told();
        exchange(pair, from, into, at, len);
        const Told told = take_told();
        const Range source = range(from, at, len), target = range(into, at, len);
        if (round > 0) expect_moved(told, source, target, target);
    }
}

void the_card_puts_and_gets_from_memory_to_memory(void **) {
    constexpr size_t at = 5, len = 3'000'000;
    Pair pair;
    Registered local(pair.a, pattern(at + len, 1)), remote(pair.b, Bytes(at + len));
    const dtrain_tp_iov_t iov{local.bytes.data() + at, len, local.mr};
    for (int round = 0; round < 3; round++) {
        take_told();
        assert_int_equal(ops().put(pair.to_b, &iov, 1, remote.at(at), remote.rkey.data(), 3, round),
                         DTRAIN_OK);
        await_ok(pair.both(), pair.a, DTRAIN_TP_PUT, round);
        const Told put = take_told();
        assert_memory_equal(remote.bytes.data() + at, local.bytes.data() + at, len);
        std::ranges::fill(local.bytes, uint8_t(0));
        take_told();
        assert_int_equal(ops().get(pair.to_b, &iov, 1, remote.at(at), remote.rkey.data(), round),
                         DTRAIN_OK);
        await_ok(pair.both(), pair.a, DTRAIN_TP_GET, round);
        const Told got = take_told();
        assert_memory_equal(remote.bytes.data() + at, local.bytes.data() + at, len);
        if (round == 0) continue;
        const Range here = range(local, at, len), there = range(remote, at, len);
        expect_moved(put, here, there, here);
        expect_moved(got, there, here, here);
    }
}

// The other side of it: what goes through buffers is seen.
void a_short_message_is_sent(void **) {
    Pair pair;
    Registered from(pair.a, pattern(3000, 1)), into(pair.b, Bytes(3000));
    exchange(pair, from, into, 0, 3000);
    take_told();
    exchange(pair, from, into, 0, 3000);
    const Told told = take_told();
    assert_true(told.sent >= 3000);
    assert_true(told.read.empty() && told.written.empty());
}

// Messages of memory that is not registered: what is made for them, and kept.
void registrations_are_kept_with_the_cache_only(void **) {
    Pair pair;
    const Bytes from = pattern(300'000, 1);
    Bytes into(from.size());
    const Traffic traffic{pair};
    for (uint64_t round = 1; round <= 10; round++) {
        std::fill(into.begin(), into.end(), uint8_t(0));
        const size_t at = round % 3 * 1000;
        pair.b.recv(7, exact, into.data(), into.size() - at, round);
        pair.a.send(pair.to_b, 7, from.data(), from.size() - at, round);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, round);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, round);
        assert_memory_equal(into.data(), from.data(), from.size() - at);
    }
    const uint64_t made = traffic.registrations();
    const dtrain_tp_counters_t now = traffic.now();
    print_message("%llu registrations, %llu hits\n", (unsigned long long)made,
                  (unsigned long long)now.hits);
    assert_int_equal(made + now.hits, 2 * 10);
    if (subject.options["ofi.cache"] == "0") {
        assert_int_equal(made, 2 * 10);
        assert_int_equal(now.kept + now.kept_bytes + now.evictions, 0);
    } else {
        assert_true(made <= 2 * 3);
        assert_int_equal(now.kept, 2);
        assert_int_equal(now.kept_bytes, 2 * from.size());
        assert_int_equal(now.evictions, made - now.kept); // of shorter ones
    }
}

// Run it as a user who may not exceed it.
void a_message_beyond_the_lock_limit_fails_and_says_so(void **) {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        print_message("no limit is set\n");
        skip();
    }
    Pair pair;
    for (Node *node : pair.both())
        assert_non_null(strstr(node->host.text().c_str(), "larger messages will fail"));
    const size_t len = limit.rlim_cur + (1 << 20);
    void *from = mmap(nullptr, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *to = mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t round = 1; round <= 3; round++) {
        pair.b.recv(7, exact, to, len, round);
        pair.a.send(pair.to_b, 7, from, len, round);
        assert_int_equal(await(pair.both(), pair.b, DTRAIN_TP_RECV, round).status,
                         DTRAIN_ERR_NO_MEMORY);
        assert_non_null(strstr(pair.b.host.text().c_str(), "LimitMEMLOCK"));
        await(pair.both(), pair.a, DTRAIN_TP_SEND, round);
        Bytes got(100'000); // others are not harmed
        pair.b.recv(8, got, round);
        pair.a.send(pair.to_b, 8, pattern(got.size(), round), round);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, round);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, round);
        assert_true(got == pattern(got.size(), round));
    }
    munmap(from, len);
    munmap(to, len);
}

} // namespace

// usage: rdma_memory ofi|ucx
int main(int argc, char **argv) {
    subject.plugin = load(argc > 1 ? argv[1] : "ofi");
    if (!subject.plugin) return 1;
    subject.copies_messages = false;
    std::vector<CMUnitTest> cases(std::begin(memory_cases), std::end(memory_cases));
    cases.push_back(cmocka_unit_test(the_card_moves_a_message_from_memory_to_memory));
    cases.push_back(cmocka_unit_test(the_card_puts_and_gets_from_memory_to_memory));
    cases.push_back(cmocka_unit_test(a_short_message_is_sent));
    if (over_ucx()) {
        subject.options["ucx.tls"] = "rc,ud";
    } else {
        subject.options["ofi.provider"] = "verbs;ofi_rxm";
        const char *cache = getenv("DTRAIN_OFI_CACHE"); // MiB
        subject.options["ofi.cache"] = cache ? cache : "0";
        cases.push_back(cmocka_unit_test(registrations_are_kept_with_the_cache_only));
        cases.push_back(cmocka_unit_test(a_message_beyond_the_lock_limit_fails_and_says_so));
    }
    if (const char *only = getenv("DTRAIN_TEST_CASE")) cmocka_set_test_filter(only);
    return _cmocka_run_group_tests("memory", cases.data(), cases.size(), nullptr, nullptr);
}
