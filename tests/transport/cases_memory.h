// Cases: memory that is freed and mapped again between messages, and what of it is copied.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_remote.h"

#include <random>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace dtrain::test {

// Addresses where nothing is, nor will be: far below what the kernel gives to who names no address,
// as threads and sanitizers of this process do at any time.
inline uint8_t *unused_addresses(size_t bytes) {
    static uint8_t *next = [] {
        void *given = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(given != MAP_FAILED);
        munmap(given, 4096);
        return static_cast<uint8_t *>(given) - (uint64_t(64) << 30);
    }();
    return next -= bytes;
}

// Pages at one address, whose contents go and come back as others, in all the ways that Linux has.
class ChangingPages {
  public:
    static constexpr size_t bytes = 256 << 10;

    ChangingPages() : at_(map(unused_addresses(bytes))) {}
    ~ChangingPages() { munmap(at_, bytes); }
    ChangingPages(const ChangingPages &) = delete;
    uint8_t *at() const { return at_; }

    static constexpr uint32_t ways = 5;
    void change(uint32_t way) {
        switch (way) {
        case 0: assert_int_equal(munmap(at_, bytes), 0); break;
        case 1: // without the C library, as other languages' runtimes do it
            assert_int_equal(syscall(SYS_munmap, at_, bytes), 0);
            assert_true(syscall(SYS_mmap, at_, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != -1);
            return;
        case 2: break; // mapped over
        case 3: {      // by the kernel: UCX's mremap() forgets the address
            uint8_t *elsewhere = unused_addresses(bytes);
            assert_int_equal(
                syscall(SYS_mremap, at_, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere),
                intptr_t(elsewhere));
            munmap(elsewhere, bytes);
            break;
        }
        default: assert_int_equal(madvise(at_, bytes, MADV_DONTNEED), 0); return;
        }
        map(at_, MAP_FIXED);
    }

  private:
    static uint8_t *map(uint8_t *at, int flags = MAP_FIXED_NOREPLACE) {
        void *pages = mmap(at, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);
        assert_ptr_equal(pages, at);
        return at;
    }
    uint8_t *at_;
};

// Both sides take new pages between messages, at the old addresses.
inline void memory_may_be_freed_and_mapped_again(void **) {
    Pair pair;
    ChangingPages from, to;
    std::mt19937_64 random(choose_seed());
    for (uint64_t round = 1; round <= 40; round++) {
        const bool part = random() % 2; // of what was sent before
        const size_t at = part ? random() % 5000 : 0;
        const size_t len = ChangingPages::bytes - at - (part ? random() % 100'000 : 0);
        const Bytes content = pattern(len, random());
        memcpy(from.at() + at, content.data(), len);
        pair.b.recv(7, exact, to.at() + at, len, round);
        pair.a.send(pair.to_b, 7, from.at() + at, len, round);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, round);
        await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, round);
        const uint32_t way = uint32_t(random() % ChangingPages::ways);
        if (memcmp(to.at() + at, content.data(), len) != 0)
            fail_msg("round %llu: %zu bytes at %zu are wrong", (unsigned long long)round, len, at);
        from.change(way);
        to.change(uint32_t(random() % ChangingPages::ways));
    }
}

struct Traffic { // of both nodes, since it was made
    Pair &pair;
    dtrain_tp_counters_t before = now();

    dtrain_tp_counters_t now() const {
        dtrain_tp_counters_t sum{};
        for (Node *node : pair.both()) {
            dtrain_tp_counters_t one{};
            one.struct_size = sizeof one;
            assert_int_equal(ops().counters(node->dev, &one), DTRAIN_OK);
            sum.copied += one.copied;
            sum.in_place += one.in_place;
            sum.registrations += one.registrations;
            sum.registered += one.registered;
            sum.registered_bytes += one.registered_bytes;
            sum.kept += one.kept;
            sum.kept_bytes += one.kept_bytes;
            sum.hits += one.hits;
            sum.evictions += one.evictions;
        }
        return sum;
    }
    uint64_t copied() const { return now().copied - before.copied; }
    uint64_t registrations() const { return now().registrations - before.registrations; }
    uint64_t in_place() const { return now().in_place - before.in_place; }
};

inline void need_counters() {
    if (DTRAIN_TP_HAS(&ops(), counters)) return;
    print_message("this transport does not count copied bytes\n");
    skip();
}

// One message from `from` to `into`, from `at` on.
inline void exchange(Pair &pair, Registered &from, Registered &into, size_t at, size_t len) {
    const dtrain_tp_iov_t out{from.bytes.data() + at, len, from.mr};
    const dtrain_tp_iov_t in{into.bytes.data() + at, len, into.mr};
    assert_int_equal(ops().recv(pair.b.dev, 7, exact, &in, 1, 1), DTRAIN_OK);
    assert_int_equal(ops().send(pair.to_b, 7, &out, 1, 1), DTRAIN_OK);
    await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 1);
    await_ok(pair.both(), pair.a, DTRAIN_TP_SEND, 1);
    assert_memory_equal(into.bytes.data() + at, from.bytes.data() + at, len);
}

inline void long_messages_of_registered_memory_are_not_copied(void **) {
    need_counters();
    if (subject.copies_messages) {
        print_message("this transport copies them\n");
        skip();
    }
    constexpr size_t len = 1'000'000;
    Pair pair;
    Registered from(pair.a, pattern(len + 5, 1)), into(pair.b, Bytes(len + 5));
    const Traffic traffic{pair};
    for (int i = 0; i < 3; i++) exchange(pair, from, into, 5, len);
    assert_int_equal(traffic.in_place(), 2 * 3 * len);
    assert_int_equal(traffic.copied(), 0);
}

// The counter's other side: what is known to be copied counts.
inline void short_messages_count_as_copied(void **) {
    need_counters();
    Pair pair;
    Registered from(pair.a, pattern(1000, 1)), into(pair.b, Bytes(1000));
    const Traffic traffic{pair};
    exchange(pair, from, into, 0, 1000);
    assert_int_equal(traffic.copied(), 2 * 1000);
    assert_int_equal(traffic.in_place(), 0);
}

inline void put_and_get_of_registered_memory_copy_nothing(void **) {
    need_caps(DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET);
    need_counters();
    constexpr size_t len = 500'000;
    Pair pair;
    Registered remote(pair.b, Bytes(len)), local(pair.a, pattern(len, 1)), back(pair.a, Bytes(len));
    const dtrain_tp_iov_t from{local.bytes.data(), len, local.mr};
    const dtrain_tp_iov_t into{back.bytes.data(), len, back.mr};
    const Traffic traffic{pair};
    assert_int_equal(ops().put(pair.to_b, &from, 1, remote.at(0), remote.rkey.data(), 3, 1),
                     DTRAIN_OK);
    await_ok(pair.both(), pair.a, DTRAIN_TP_PUT, 1);
    assert_int_equal(ops().get(pair.to_b, &into, 1, remote.at(0), remote.rkey.data(), 1),
                     DTRAIN_OK);
    await_ok(pair.both(), pair.a, DTRAIN_TP_GET, 1);
    assert_true(back.bytes == local.bytes);
    assert_int_equal(traffic.in_place(), 2 * len);
    assert_int_equal(traffic.copied(), 0);
}

inline void registrations_are_counted(void **) {
    need_caps(DTRAIN_TP_CAP_PUT);
    need_counters();
    Pair pair;
    const Traffic traffic{pair};
    assert_int_equal(traffic.now().registered, 0);
    {
        const Registered one(pair.a, Bytes(70'000)), other(pair.b, Bytes(5));
        assert_int_equal(traffic.now().registered, 2);
        assert_int_equal(traffic.now().registered_bytes, 70'005);
    }
    assert_int_equal(traffic.now().registered, 0);
    assert_int_equal(traffic.now().registered_bytes, 0);
}

inline const CMUnitTest memory_cases[] = {
    cmocka_unit_test(memory_may_be_freed_and_mapped_again),
    cmocka_unit_test(long_messages_of_registered_memory_are_not_copied),
    cmocka_unit_test(short_messages_count_as_copied),
    cmocka_unit_test(put_and_get_of_registered_memory_copy_nothing),
    cmocka_unit_test(registrations_are_counted),
};

} // namespace dtrain::test
