// Memory of another process, and for network cards.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_memory.h"
#include "rig.h"
#include "transport/child.h"

#include <sys/stat.h>

namespace dtrain::test {

// What passes through the socket pair: not more than `handle` is trusted.
struct Passed {
    uint8_t handle[96];
    uint64_t offset, bytes;
};

inline constexpr size_t shared_bytes = 100'000;

// The exporter is made before the driver is used here: a child of a process that has used it could
// not. It exports memory full of 3, waits for a byte, and expects 4 there.
inline void export_and_expect(int fd) {
    Rig rig;
    dtrain_dv_mem_t *mem = nullptr;
    rig.ok(ops().alloc(rig.dev, shared_bytes, DTRAIN_DV_EXPORTABLE, &mem));
    auto *address = static_cast<uint8_t *>(ops().address(mem));
    rig.ok(ops().fill(rig.queue, address, 3, shared_bytes));
    rig.finish();
    Passed passed{};
    rig.ok(ops().export_handle(rig.dev, address + 1000, passed.handle, &passed.offset));
    passed.bytes = classified(rig, address, 1).length;
    give(fd, &passed, sizeof passed);
    char byte = 0;
    take(fd, &byte, 1);
    Pinned seen(rig, shared_bytes);
    rig.ok(ops().copy(rig.queue, seen.device, address, shared_bytes));
    rig.finish();
    for (size_t i = 0; i < shared_bytes; i++) assert_int_equal(seen.memory[i], 4);
    ops().release(mem);
}

inline void import_and_change(int fd) {
    Rig rig;
    Passed passed{};
    take(fd, &passed, sizeof passed);
    assert_int_equal(passed.offset, 1000);
    dtrain_dv_mem_t *mem = nullptr;
    rig.refused(ops().import(rig.dev, passed.handle, passed.bytes + 1, &mem), DTRAIN_ERR_INVALID,
                "");
    uint8_t wrong[96];
    memset(wrong, 0x5a, sizeof wrong);
    assert_true(ops().import(rig.dev, wrong, passed.bytes, &mem) != DTRAIN_OK);
    assert_null(mem);
    rig.ok(ops().import(rig.dev, passed.handle, passed.bytes, &mem));
    auto *address = static_cast<uint8_t *>(ops().address(mem));
    Pinned seen(rig, shared_bytes);
    rig.ok(ops().copy(rig.queue, seen.device, address, shared_bytes));
    rig.finish();
    for (size_t i = 0; i < shared_bytes; i++) assert_int_equal(seen.memory[i], 3);
    rig.ok(ops().fill(rig.queue, address, 4, shared_bytes));
    rig.finish();
    ops().release(mem);
    give(fd, "x", 1);
}

// Both in fresh processes, as ranks are.
inline void processes_share_memory(void **) {
    if (ops().import == nullptr) return;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    Child exporter([&](int) { export_and_expect(ends[0]); });
    Child importer([&](int) { import_and_change(ends[1]); });
    importer.join();
    exporter.join();
    close(ends[0]);
    close(ends[1]);
}

inline void descriptors_are_opened(void **) {
    need(DTRAIN_DV_CAP_DMABUF);
    Rig rig;
    dtrain_dv_mem_t *mem = nullptr;
    rig.ok(ops().alloc(rig.dev, 1 << 20, 0, &mem));
    auto *address = static_cast<uint8_t *>(ops().address(mem));
    int32_t fd = -1;
    uint64_t offset = UINT64_MAX;
    rig.ok(ops().dmabuf(rig.dev, address + 100, 1000, &fd, &offset));
    assert_true(fd >= 0 && offset >= 100);
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    close(fd);
    ops().release(mem);
    static uint8_t ordinary[100];
    assert_true(ops().dmabuf(rig.dev, ordinary, sizeof ordinary, &fd, &offset) != DTRAIN_OK);
    if (ops().flush != nullptr) rig.ok(ops().flush(rig.dev));
}

inline constexpr CMUnitTest sharing_cases[] = {
    cmocka_unit_test(descriptors_are_opened),
};
// To be run by programs that have not used the driver yet.
inline constexpr CMUnitTest process_cases[] = {
    cmocka_unit_test(processes_share_memory),
};

} // namespace dtrain::test
