// Memory that changes is told of, whatever changes it, before it can be used again.
// SPDX-License-Identifier: Apache-2.0
#include "cases_memory.h"
#include "check.h"
#include "child.h"
#include "common/memory_watch.h"

#include <thread>

using namespace dtrain::test;
using dtrain::tp::MemoryWatch;

namespace {

std::shared_ptr<MemoryWatch> need_watch() {
    std::string why;
    static std::shared_ptr<MemoryWatch> watch; // skip() runs no destructors
    watch = MemoryWatch::get(&why);
    if (!watch) {
        print_message("%s\n", why.c_str());
        skip();
    }
    return std::move(watch);
}

uint64_t number(const void *at) { return uint64_t(uintptr_t(at)); }

// Whether any of the memory has changed since *position.
bool changed(MemoryWatch &watch, uint64_t *position, const void *at, uint64_t length) {
    bool any = false;
    const auto look = [&](uint64_t start, uint64_t bytes) {
        any |= start < number(at) + length && (bytes == UINT64_MAX || number(at) < start + bytes);
    };
    while (!watch.settle(position, look)) sched_yield();
    return any;
}

void every_way_is_seen(void **) {
    const auto watch = need_watch();
    std::mt19937_64 random(choose_seed());
    ChangingPages pages, others;
    uint64_t position = watch->position();
    for (int round = 0; round < 300; round++) {
        assert_true(watch->watch(number(pages.at()), ChangingPages::bytes));
        assert_false(changed(*watch, &position, pages.at(), ChangingPages::bytes));
        if (random() % 2) others.change(uint32_t(random() % ChangingPages::ways));
        assert_false(changed(*watch, &position, pages.at(), ChangingPages::bytes));
        pages.at()[5] = 1; // page faults are nobody's business
        pages.change(uint32_t(random() % ChangingPages::ways));
        assert_true(changed(*watch, &position, pages.at(), ChangingPages::bytes));
    }
}

// Memory at this address and nowhere else. MAP_FAILED: there is some already.
void *map_at(uint8_t *at, size_t bytes) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

// One thread unmaps, another gets the memory at once: it must not see it unchanged.
void memory_of_another_thread_is_never_stale(void **) {
    const auto watch = need_watch();
    constexpr size_t bytes = 64 << 10;
    uint8_t *at = unused_addresses(bytes);
    for (int round = 0; round < 100; round++) {
        assert_ptr_equal(map_at(at, bytes), at);
        assert_true(watch->watch(number(at), bytes));
        uint64_t position = watch->position();
        std::thread thread([&] { munmap(at, bytes); });
        while (map_at(at, bytes) == MAP_FAILED) {
        }
        assert_true(changed(*watch, &position, at, bytes));
        thread.join();
        munmap(at, bytes);
    }
}

void what_cannot_be_watched_is_refused(void **) {
    const auto watch = need_watch();
    const int fd = memfd_create("memory", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    for (int kind : {MAP_SHARED, MAP_PRIVATE}) {
        void *at = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, kind, fd, 0);
        assert_false(watch->watch(number(at), 1 << 20));
        munmap(at, 1 << 20);
        assert_false(watch->watch(number(at), 4096)); // nothing
    }
    close(fd);
}

// As realloc() does it.
void watched_memory_can_grow_and_move(void **) {
    const auto watch = need_watch();
    auto *at = static_cast<uint8_t *>(
        mmap(nullptr, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    at[1 << 20] = 7;
    assert_true(watch->watch(number(at) + (1 << 20), 4096)); // in the middle
    auto *moved = static_cast<uint8_t *>(mremap(at, 2 << 20, 64 << 20, MREMAP_MAYMOVE));
    assert_true(moved != MAP_FAILED && moved[1 << 20] == 7);
    munmap(moved, 64 << 20);
}

void more_changes_than_it_remembers_are_one_big_one(void **) {
    const auto watch = need_watch();
    ChangingPages pages;
    uint64_t position = watch->position();
    for (int i = 0; i < 1100; i++) {
        assert_true(watch->watch(number(pages.at()), ChangingPages::bytes));
        pages.change(0);
    }
    const char elsewhere = 0;
    assert_true(changed(*watch, &position, &elsewhere, 1));
    assert_false(changed(*watch, &position, &elsewhere, 1));
}

void a_child_is_not_hindered(void **) {
    const auto watch = need_watch();
    ChangingPages pages;
    assert_true(watch->watch(number(pages.at()), ChangingPages::bytes));
    Child child([&](int) {
        for (uint32_t way = 0; way < ChangingPages::ways; way++) pages.change(way);
        std::string why;
        const auto own = MemoryWatch::get(&why);
        assert_true(own && own != watch);
        assert_true(own->watch(number(pages.at()), ChangingPages::bytes));
        uint64_t position = own->position();
        pages.change(0);
        assert_true(changed(*own, &position, pages.at(), ChangingPages::bytes));
    });
    child.join();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_way_is_seen),
        cmocka_unit_test(memory_of_another_thread_is_never_stale),
        cmocka_unit_test(what_cannot_be_watched_is_refused),
        cmocka_unit_test(watched_memory_can_grow_and_move),
        cmocka_unit_test(more_changes_than_it_remembers_are_one_big_one),
        cmocka_unit_test(a_child_is_not_hindered),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
