// What only CUDA has: its kinds of memory, streams of programs, captures; and faults of the driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_memory.h"
#include "devices/cuda/driver_types.h"
#include "fake_driver.h"

namespace dtrain::test {

using cuda::Address;
using cuda::Context;
using cuda::Stream;

inline int complaints() { return driver_function<int (*)()>("fakecuda_complaints")(); }
inline void fail_at(const char *text) {
    driver_function<void (*)(const char *)>("fakecuda_fail")(text);
}

// The program's own use of the driver: a context that is current.
class Program {
  public:
    Program() {
        assert_int_equal(driver_function<int (*)(unsigned)>("cuInit")(0), 0);
        assert_int_equal(
            driver_function<int (*)(Context *, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
        assert_int_equal(driver_function<int (*)(Context)>("cuCtxPushCurrent_v2")(context), 0);
    }
    ~Program() {
        driver_function<int (*)(Context *)>("cuCtxPopCurrent_v2")(&context);
        driver_function<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(0);
    }
    Address allocate(const char *function) {
        Address address = 0;
        assert_int_equal((driver_function<int (*)(Address *, size_t, void *)>(function)(
                             &address, 4096, nullptr)),
                         0);
        return address;
    }
    void free(Address address) { driver_function<int (*)(Address)>("cuMemFree_v2")(address); }
    Context context = nullptr;
};

inline void kinds_of_memory(void **) {
    Rig rig;
    Program program;
    const auto pool = program.allocate("cuMemAllocAsync");
    const auto managed = program.allocate("cuMemAllocManaged");
    const auto plain = program.allocate("cuMemAlloc_v2");
    const auto range = [&](Address address) {
        return classified(rig, reinterpret_cast<void *>(address), 4096);
    };
    assert_int_equal(range(plain).kind, DTRAIN_DV_DEVICE);
    assert_int_equal(range(plain).flags & DTRAIN_DV_RANGE_EXPORT, DTRAIN_DV_RANGE_EXPORT);
    assert_int_equal(range(pool).kind, DTRAIN_DV_DEVICE);
    assert_int_equal(range(pool).flags & DTRAIN_DV_RANGE_EXPORT, 0);
    assert_int_equal(range(managed).kind, DTRAIN_DV_MANAGED);
    uint8_t handle[96];
    uint64_t offset = 0;
    rig.refused(ops().export_handle(rig.dev, reinterpret_cast<void *>(pool), handle, &offset),
                DTRAIN_ERR_UNSUPPORTED, "of a pool");
    for (const Address address : {pool, managed, plain}) program.free(address);
}

// The calling thread's current context is what it was, and threads without one can call all.
inline void current_context_stays(void **) {
    const auto current = [] {
        Context context = nullptr;
        assert_int_equal(driver_function<int (*)(Context *)>("cuCtxGetCurrent")(&context), 0);
        return context;
    };
    Rig rig;
    assert_null(current());
    Program program;
    rig.finish();
    OnDevice memory(rig, 100);
    assert_true(current() == program.context);
}

inline void streams_of_programs(void **) {
    Rig rig;
    Program program;
    Stream stream = nullptr;
    assert_int_equal((driver_function<int (*)(Stream *, unsigned, int)>(
                         "cuStreamCreateWithPriority")(&stream, 1, 0)),
                     0);
    dtrain_dv_queue_t *queue = nullptr;
    rig.ok(ops().queue_adopt(rig.dev, stream, &queue));
    rig.finish(queue);
    // A capture is named, and ends as the program wishes.
    assert_int_equal((driver_function<int (*)(Stream, int)>("cuStreamBeginCapture_v2")(stream, 0)),
                     0);
    rig.refused(ops().capturing(queue), DTRAIN_ERR_STATE, "captured");
    void *graph = nullptr;
    assert_int_equal(
        (driver_function<int (*)(Stream, void **)>("cuStreamEndCapture")(stream, &graph)), 0);
    rig.ok(ops().capturing(queue));
    ops().queue_free(queue);
    for (const uintptr_t special : {0, 1, 2}) {
        rig.ok(ops().queue_adopt(rig.dev, reinterpret_cast<void *>(special), &queue));
        rig.finish(queue);
        ops().queue_free(queue);
    }
    assert_int_equal(driver_function<int (*)(Stream)>("cuStreamDestroy_v2")(stream), 0);
}

inline void two_devices(void **) {
    Rig rig;
    dtrain_dv_dev_t *second = nullptr;
    rig.ok(ops().open(rig.host.table(), "cuda1", &second));
    dtrain_dv_mem_t *mem = nullptr;
    rig.ok(ops().alloc(second, 4096, 0, &mem));
    assert_int_equal(classified(rig, ops().address(mem), 4096).ordinal, 1);
    // A stream of one device is none of the other's.
    const auto create =
        driver_function<int (*)(Stream *, unsigned, int)>("cuStreamCreateWithPriority");
    Stream stream = nullptr;
    Program program; // on the first device
    assert_int_equal(create(&stream, 1, 0), 0);
    dtrain_dv_queue_t *queue = nullptr;
    rig.refused(ops().queue_adopt(second, stream, &queue), DTRAIN_ERR_INVALID, "cuda1");
    assert_int_equal(driver_function<int (*)(Stream)>("cuStreamDestroy_v2")(stream), 0);
    ops().release(mem);
    ops().close(second);
}

// Each call of the driver that opening a device, or working with it, makes fails once: the error
// names it, nothing is left behind, and the next attempt works.
inline void driver_calls_fail(void **) {
    static constexpr const char *functions[] = {"cuDeviceGetCount",
                                                "cuDeviceGet",
                                                "cuDevicePrimaryCtxRetain",
                                                "cuCtxGetStreamPriorityRange",
                                                "cuModuleLoadData",
                                                "cuModuleGetFunction",
                                                "cuFuncLoad"};
    FakeHost host;
    for (const char *function : functions) {
        fail_at(function);
        dtrain_dv_dev_t *dev = nullptr;
        assert_int_equal(ops().open(host.table(), "cuda0", &dev), DTRAIN_ERR_DEVICE);
        assert_non_null(strstr(host.text().c_str(), "CUDA_ERROR_UNKNOWN"));
    }
    Rig rig;
    OnDevice memory(rig, 1000);
    dtrain_dv_mem_t *mem = nullptr;
    dtrain_dv_queue_t *queue = nullptr;
    static uint8_t page[8192];
    fail_at("cuMemAlloc_v2:1:2");
    rig.refused(ops().alloc(rig.dev, 100, 0, &mem), DTRAIN_ERR_NO_MEMORY, "OUT_OF_MEMORY");
    fail_at("cuMemHostGetDevicePointer_v2");
    rig.refused(ops().pin(rig.dev, page, sizeof page, &mem), DTRAIN_ERR_DEVICE, "UNKNOWN");
    rig.ok(ops().pin(rig.dev, page, sizeof page, &mem)); // it was unpinned again
    ops().release(mem);
    fail_at("cuStreamCreateWithPriority");
    rig.refused(ops().queue_own(rig.dev, 0, &queue), DTRAIN_ERR_DEVICE, "a stream");
    fail_at("cuMemcpyAsync");
    rig.refused(ops().copy(rig.queue, memory.address, memory.address, 10), DTRAIN_ERR_DEVICE,
                "copying 10 bytes");
    fail_at("cuCtxPushCurrent_v2");
    rig.refused(ops().fill(rig.queue, memory.address, 0, 10), DTRAIN_ERR_DEVICE, "filling");
    fail_at("");
    rig.finish();
}

inline void strange_addresses_stay_harmless(void **) {
    Rig rig;
    dtrain_dv_range_t range{};
    range.struct_size = sizeof range;
    for (const uintptr_t p : {uintptr_t{1}, uintptr_t{1} << 47, UINTPTR_MAX, UINTPTR_MAX - 4095})
        rig.ok(ops().classify(rig.host.table(), reinterpret_cast<void *>(p), 1, &range));
}

inline void nothing_was_complained_of(void **) { assert_int_equal(complaints(), 0); }

// The last: nothing of the driver works after it.
inline void faults_stick(void **) {
    FakeHost host;
    dtrain_dv_dev_t *dev = nullptr;
    dtrain_dv_queue_t *queue = nullptr;
    dtrain_dv_mem_t *mem = nullptr;
    assert_int_equal(ops().open(host.table(), "cuda0", &dev), DTRAIN_OK);
    assert_int_equal(ops().queue_own(dev, 0, &queue), DTRAIN_OK);
    driver_function<void (*)(int)>("fakecuda_fault")(cuda::illegal_address);
    assert_int_equal(ops().queue_done(queue), DTRAIN_ERR_DEVICE);
    assert_non_null(strstr(host.text().c_str(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_int_equal(ops().alloc(dev, 100, 0, &mem), DTRAIN_ERR_DEVICE);
    assert_int_equal(ops().fill(queue, dev, 0, 100), DTRAIN_ERR_DEVICE);
    ops().queue_free(queue);
    ops().close(dev);
}

inline constexpr CMUnitTest cuda_cases[] = {
    cmocka_unit_test(kinds_of_memory),           cmocka_unit_test(current_context_stays),
    cmocka_unit_test(streams_of_programs),       cmocka_unit_test(two_devices),
    cmocka_unit_test(driver_calls_fail),         cmocka_unit_test(strange_addresses_stay_harmless),
    cmocka_unit_test(nothing_was_complained_of), cmocka_unit_test(faults_stick),
};

} // namespace dtrain::test
