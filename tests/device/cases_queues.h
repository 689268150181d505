// Queues do their work in order; words order queues and the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <atomic>
#include <thread>

namespace dtrain::test {

// Many pieces of work on one memory: each sees what the one before has done.
inline void work_runs_in_order(void **) {
    Rig rig;
    constexpr size_t bytes = 5000;
    OnDevice a(rig, bytes), b(rig, bytes);
    for (int i = 0; i < 200; i++) {
        rig.ok(ops().fill(rig.queue, a.address, uint8_t(i), bytes));
        rig.ok(ops().copy(rig.queue, b.address, a.address, bytes));
    }
    assert_true(b.read() == Bytes(bytes, 199));
}

inline void words_are_checked(void **) {
    Rig rig;
    OnDevice memory(rig, 100);
    rig.refused(ops().signal(rig.queue, memory.mem, 0, 1), DTRAIN_ERR_INVALID, "word");
    rig.refused(ops().signal(rig.queue, rig.word_page, 2, 1), DTRAIN_ERR_INVALID, "word");
    for (const uint64_t offset : {uint64_t{Rig::page}, uint64_t{Rig::page - 3}, UINT64_MAX - 3})
        rig.refused(ops().signal(rig.queue, rig.word_page, offset, 1), DTRAIN_ERR_INVALID, "word");
    rig.ok(ops().signal(rig.queue, rig.word_page, Rig::page - 4, 77));
    rig.await(Rig::page / 4 - 1, 77);
}

inline void done_is_said(void **) {
    Rig rig;
    rig.finish();
    const int64_t end = now_ns() + 60'000'000'000;
    dtrain_status_t status;
    while ((status = ops().queue_done(rig.queue)) == DTRAIN_IN_PROGRESS)
        assert_true(now_ns() < end);
    rig.ok(status);
}

// A held queue does nothing, others go on, and the host releases it by a store.
inline void held_queues_wait_for_the_host(void **) {
    need(DTRAIN_DV_CAP_HOLD);
    Rig rig;
    dtrain_dv_queue_t *held = nullptr;
    rig.ok(ops().queue_own(rig.dev, 0, &held));
    rig.ok(ops().hold(held, rig.word_page, 4, 5));
    rig.ok(ops().signal(held, rig.word_page, 8, 1));
    usleep(20'000);
    assert_int_equal(rig.word(2), 0);
    assert_int_equal(ops().queue_done(held), DTRAIN_IN_PROGRESS);
    rig.store(1, 4); // not enough
    usleep(20'000);
    assert_int_equal(rig.word(2), 0);
    rig.store(1, 6);
    rig.await(2, 1);
    ops().queue_free(held);
}

// Counters wrap: what counts is the difference.
inline void words_may_wrap(void **) {
    need(DTRAIN_DV_CAP_HOLD);
    Rig rig;
    rig.store(1, 0xfffffffe);
    rig.ok(ops().hold(rig.queue, rig.word_page, 4, 1));
    rig.ok(ops().signal(rig.queue, rig.word_page, 8, 1));
    usleep(20'000);
    assert_int_equal(rig.word(2), 0);
    rig.store(1, 1);
    rig.await(2, 1);
}

// A chain over queues: each holds for the one before, and the data arrives with the words. All is
// submitted in the order in which it can run, as rule W wants: it works in one hardware queue, too.
inline void queues_order_each_other(void **) {
    need(DTRAIN_DV_CAP_HOLD);
    Rig rig;
    constexpr uint32_t queues = 4, rounds = 25;
    constexpr size_t bytes = 3000;
    std::vector<dtrain_dv_queue_t *> all(queues);
    for (auto &queue : all) rig.ok(ops().queue_own(rig.dev, 0, &queue));
    OnDevice memory(rig, bytes), copy(rig, bytes);
    uint32_t n = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (dtrain_dv_queue_t *queue : all) {
            rig.ok(ops().hold(queue, rig.word_page, 4, n));
            rig.ok(ops().fill(queue, memory.address, uint8_t(n), bytes));
            rig.ok(ops().copy(queue, copy.address, memory.address, bytes));
            rig.ok(ops().signal(queue, rig.word_page, 4, ++n));
        }
    rig.await(1, n);
    assert_true(copy.read() == Bytes(bytes, uint8_t(n - 1)));
    for (dtrain_dv_queue_t *queue : all) ops().queue_free(queue);
}

inline void functions_are_called(void **) {
    if (ops().call == nullptr) return;
    Rig rig;
    std::atomic<int> called{0};
    for (int i = 0; i < 10; i++)
        rig.ok(ops().call(
            rig.queue, [](void *arg) { (*static_cast<std::atomic<int> *>(arg))++; }, &called));
    rig.finish();
    assert_int_equal(called.load(), 10);
}

inline void default_stream_is_adopted(void **) {
    Rig rig;
    dtrain_dv_queue_t *queue = nullptr;
    rig.ok(ops().queue_adopt(rig.dev, nullptr, &queue));
    rig.finish(queue);
    if (ops().capturing != nullptr) rig.ok(ops().capturing(queue));
    ops().queue_free(queue);
}

// Threads with queues of their own.
inline void threads_submit_at_once(void **) {
    Rig rig;
    constexpr size_t threads = 4, bytes = 2000;
    std::vector<std::thread> all;
    std::atomic<int> failed{0};
    OnDevice memory(rig, threads * bytes);
    for (size_t t = 0; t < threads; t++)
        all.emplace_back([&, t] {
            dtrain_dv_queue_t *queue = nullptr;
            if (ops().queue_own(rig.dev, 0, &queue) != DTRAIN_OK) {
                failed++;
                return;
            }
            for (uint32_t i = 0; i < 50; i++)
                failed += ops().fill(queue, memory.address + t * bytes, uint8_t(i), bytes) != 0;
            failed += ops().fill(queue, memory.address + t * bytes, uint8_t(t), bytes) != 0;
            failed += ops().signal(queue, rig.word_page, 64 + 4 * t, 1) != 0;
            const int64_t end = now_ns() + 60'000'000'000;
            while (rig.word(16 + t) != 1 && now_ns() < end) usleep(50);
            failed += rig.word(16 + t) != 1;
            ops().queue_free(queue);
        });
    for (std::thread &thread : all) thread.join();
    assert_int_equal(failed.load(), 0);
    const Bytes got = memory.read();
    for (size_t i = 0; i < got.size(); i++) assert_int_equal(got[i], i / bytes);
}

inline constexpr CMUnitTest queue_cases[] = {
    cmocka_unit_test(work_runs_in_order),     cmocka_unit_test(words_are_checked),
    cmocka_unit_test(done_is_said),           cmocka_unit_test(held_queues_wait_for_the_host),
    cmocka_unit_test(words_may_wrap),         cmocka_unit_test(queues_order_each_other),
    cmocka_unit_test(functions_are_called),   cmocka_unit_test(default_stream_is_adopted),
    cmocka_unit_test(threads_submit_at_once),
};

} // namespace dtrain::test
