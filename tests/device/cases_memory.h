// Allocating, pinning, and what addresses are.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

inline dtrain_dv_range_t classified(Rig &rig, const void *address, uint64_t bytes) {
    dtrain_dv_range_t range{};
    range.struct_size = sizeof range;
    rig.ok(ops().classify(rig.host.table(), address, bytes, &range));
    return range;
}

inline void memory_of_the_device_is_known(void **) {
    Rig rig;
    OnDevice memory(rig, 10000);
    const dtrain_dv_range_t range = classified(rig, memory.address + 100, 9900);
    const auto base = reinterpret_cast<uint64_t>(ops().address(memory.mem));
    assert_int_equal(range.kind, DTRAIN_DV_DEVICE);
    assert_int_equal(range.ordinal, rig.attr.ordinal);
    assert_int_equal(range.base, base);
    assert_int_equal(range.address, reinterpret_cast<uint64_t>(memory.address + 100));
    assert_true(range.length >= 10000 + 2 * OnDevice::margin);
    assert_int_equal(base % 256, 0);
}

inline void host_memory_is_known(void **) {
    Rig rig;
    static char ordinary[100];
    assert_int_equal(classified(rig, ordinary, sizeof ordinary).kind, DTRAIN_DV_HOST);
    assert_int_equal(classified(rig, nullptr, 0).kind, DTRAIN_DV_HOST);
    int local = 0;
    assert_int_equal(classified(rig, &local, sizeof local).kind, DTRAIN_DV_HOST);
    Pinned pinned(rig, 5000);
    const dtrain_dv_range_t range = classified(rig, pinned.memory + 1000, 4000);
    assert_int_equal(range.kind, DTRAIN_DV_PINNED);
    assert_int_equal(range.ordinal, -1);
}

inline void ends_outside_are_refused(void **) {
    Rig rig;
    OnDevice memory(rig, 4000);
    dtrain_dv_range_t range{};
    range.struct_size = sizeof range;
    const uint64_t length = classified(rig, memory.address, 1).length;
    const void *base = ops().address(memory.mem);
    rig.ok(ops().classify(rig.host.table(), base, length, &range));
    rig.refused(ops().classify(rig.host.table(), base, length + 1, &range), DTRAIN_ERR_INVALID,
                "outside");
    rig.refused(ops().classify(rig.host.table(), base, UINT64_MAX, &range), DTRAIN_ERR_INVALID,
                "outside");
}

// What lies at an address later is something else.
inline void released_memory_is_forgotten(void **) {
    Rig rig;
    uint64_t last = 0;
    for (int round = 0; round < 20; round++) {
        OnDevice memory(rig, 4096);
        const dtrain_dv_range_t range = classified(rig, memory.address, 1);
        assert_true(range.id != last);
        last = range.id;
    }
    auto *page = static_cast<uint8_t *>(aligned_alloc(Rig::page, Rig::page));
    dtrain_dv_mem_t *mem = nullptr;
    rig.ok(ops().pin(rig.dev, page, Rig::page, &mem));
    ops().release(mem);
    assert_int_equal(classified(rig, page, 1).kind, DTRAIN_DV_HOST);
    rig.ok(ops().pin(rig.dev, page, Rig::page, &mem)); // again
    ops().release(mem);
    free(page);
}

inline void wrong_allocations_are_refused(void **) {
    Rig rig;
    dtrain_dv_mem_t *mem = nullptr;
    rig.refused(ops().alloc(rig.dev, 0, 0, &mem), DTRAIN_ERR_INVALID, "");
    rig.refused(ops().pin(rig.dev, nullptr, 100, &mem), DTRAIN_ERR_INVALID, "");
    rig.refused(ops().pin(rig.dev, rig.words, 0, &mem), DTRAIN_ERR_INVALID, "");
    rig.refused(ops().pin(rig.dev, rig.words, Rig::page, &mem), DTRAIN_ERR_BUSY, "");
    assert_true(ops().alloc(rig.dev, UINT64_MAX / 2, 0, &mem) != DTRAIN_OK);
    assert_null(mem);
    rig.finish(); // the device still works
}

inline void copies_reach_all_places(void **) {
    Rig rig;
    for (const size_t bytes : {size_t{1}, size_t{13}, size_t{4096}, size_t{1000003}}) {
        OnDevice a(rig, bytes), b(rig, bytes, 3);
        const Bytes data = random_bytes(bytes);
        a.write(data.data());
        rig.ok(ops().copy(rig.queue, b.address, a.address, bytes));
        assert_true(b.read() == data);
        rig.ok(ops().fill(rig.queue, a.address, 0x42, bytes));
        assert_true(a.read() == Bytes(bytes, 0x42));
    }
    OnDevice none(rig, 16);
    const Bytes before = none.read();
    rig.ok(ops().copy(rig.queue, none.address, none.address, 0));
    rig.ok(ops().fill(rig.queue, none.address, 1, 0));
    assert_true(none.read() == before);
}

inline constexpr CMUnitTest memory_cases[] = {
    cmocka_unit_test(memory_of_the_device_is_known), cmocka_unit_test(host_memory_is_known),
    cmocka_unit_test(ends_outside_are_refused),      cmocka_unit_test(released_memory_is_forgotten),
    cmocka_unit_test(wrong_allocations_are_refused), cmocka_unit_test(copies_reach_all_places),
};

} // namespace dtrain::test
