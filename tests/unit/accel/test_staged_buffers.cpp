// Copies to host memory and back, of what an operation reads and writes and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <vector>

using namespace dtrain;
using namespace dtrain::accel;
using dtrain::test::Memory;
using dtrain::test::Rig;

namespace {

int64_t soon() { return monotonic_clock().now_ns() + 60 * second; }

Where find(Rig &rig, const void *address, uint64_t bytes) {
    Where where;
    assert_int_equal(rig.domains.find(address, bytes, where), DTRAIN_OK);
    assert_non_null(where.domain);
    return where;
}

// Gaps between the parts keep their bytes on both sides.
void test_extents(void **) {
    Rig rig;
    assert_int_equal(rig.open(), DTRAIN_OK);
    Memory memory(rig, 100);
    uint8_t *at = memory.address();
    for (int i = 0; i < 100; i++) at[i] = uint8_t(i);
    assert_false(rig.domains.in_use());
    {
        StagedBuffers staged(rig.domains);
        assert_true(rig.domains.in_use());
        uint8_t *host = nullptr;
        assert_int_equal(
            staged.add(find(rig, at, 100), 100, {{0, 10}, {50, 10}}, {{20, 5}, {90, 10}}, host),
            DTRAIN_OK);
        std::memset(host, 0xEE, 100);
        assert_int_equal(staged.begin_fetch(), DTRAIN_OK);
        assert_int_equal(staged.await_fetched(soon()), DTRAIN_OK);
        assert_true(staged.is_fetched());
        for (int i = 0; i < 100; i++)
            assert_int_equal(host[i], i < 10 || (i >= 50 && i < 60) ? i : 0xEE);
        assert_true(staged.has_outputs());
        assert_int_equal(staged.begin_store(UINT64_MAX), DTRAIN_OK);
        assert_int_equal(staged.await_stored(soon()), DTRAIN_OK);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(at[i], (i >= 20 && i < 25) || i >= 90 ? 0xEE : i);
    assert_false(rig.domains.in_use());
}

// Of a message that is shorter than its buffer.
void test_first_bytes_only(void **) {
    Rig rig;
    assert_int_equal(rig.open(), DTRAIN_OK);
    Memory memory(rig, 100);
    std::memset(memory.address(), 1, 100);
    StagedBuffers staged(rig.domains);
    uint8_t *host = nullptr;
    assert_int_equal(staged.add(find(rig, memory.address(), 100), 100, {}, {{0, 100}}, host),
                     DTRAIN_OK);
    std::memset(host, 2, 100);
    assert_int_equal(staged.begin_store(30), DTRAIN_OK);
    assert_int_equal(staged.await_stored(soon()), DTRAIN_OK);
    for (int i = 0; i < 100; i++) assert_int_equal(memory.address()[i], i < 30 ? 2 : 1);
}

void test_blocks_are_used_again(void **) {
    Rig rig;
    assert_int_equal(rig.options.set("accelerators.pinned", "256K"), DTRAIN_OK);
    assert_int_equal(rig.open(), DTRAIN_OK);
    Memory memory(rig, 1 << 20);
    const Where where = find(rig, memory.address(), 1 << 20);
    PinnedPool &pool = where.domain->pinned();
    std::unique_ptr<PinnedBlock> first, second, third;
    assert_int_equal(pool.take(100'000, first), DTRAIN_OK);
    assert_int_equal(first->bytes(), 128 << 10); // whole granules
    const uint8_t *address = first->host();
    pool.give_back(std::move(first));
    assert_int_equal(pool.take(1, second), DTRAIN_OK); // it is at most four times as large
    assert_ptr_equal(second->host(), address);
    pool.give_back(std::move(second));
    assert_int_equal(pool.take(120'000, first), DTRAIN_OK);
    assert_ptr_equal(first->host(), address);
    pool.give_back(std::move(first));
    assert_int_equal(pool.take(1 << 20, third), DTRAIN_OK);
    pool.give_back(std::move(third)); // more than is kept: the least recently used go
    assert_int_equal(pool.take(UINT64_MAX, third), DTRAIN_ERR_NO_MEMORY);
    assert_int_equal(pool.take(uint64_t{1} << 60, third), DTRAIN_ERR_NO_MEMORY);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_extents),
        cmocka_unit_test(test_first_bytes_only),
        cmocka_unit_test(test_blocks_are_used_again),
    };
    return cmocka_run_group_tests_name("staged buffers", tests, nullptr, nullptr);
}
