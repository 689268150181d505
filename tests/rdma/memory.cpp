// Registered memory over verbs, the libfabric transport's provider "verbs;ofi_rxm": what is copied,
// memory that is freed and mapped again, and the limit on locked memory.
// SPDX-License-Identifier: Apache-2.0
#include "transport/cases_memory.h"
#include "transport/loaded.h"

#include <sys/resource.h>

using namespace dtrain::test;

namespace {

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

int main() {
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "verbs;ofi_rxm";
    subject.copies_messages = false;
    const char *cache = getenv("DTRAIN_OFI_CACHE"); // MiB
    subject.options["ofi.cache"] = cache ? cache : "0";
    std::vector<CMUnitTest> cases(std::begin(memory_cases), std::end(memory_cases));
    cases.push_back(cmocka_unit_test(registrations_are_kept_with_the_cache_only));
    cases.push_back(cmocka_unit_test(a_message_beyond_the_lock_limit_fails_and_says_so));
    if (const char *only = getenv("DTRAIN_TEST_CASE")) cmocka_set_test_filter(only);
    return _cmocka_run_group_tests("memory", cases.data(), cases.size(), nullptr, nullptr);
}
