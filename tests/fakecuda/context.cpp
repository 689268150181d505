// Starting, devices, contexts, errors.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace fakecuda {

thread_local bool in_host_function = false;

namespace {
thread_local std::vector<Context> stack;
}

Fake &fake() {
    static Fake &it = *new Fake;
    return it;
}

bool is_context(Context context) {
    for (int i = 0; i < fake().devices; i++)
        if (context == context_of(i) && fake().retained[i] > 0) return true;
    return false;
}

Context current_context() { return stack.empty() ? nullptr : stack.back(); }

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("fakecuda: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputs("\n", stderr);
    va_end(arguments);
    fake().complaints++;
}

void fault(Result result) {
    Result none = success;
    fake().sticky.compare_exchange_strong(none, result);
}

} // namespace fakecuda

using namespace fakecuda;

FAKE_API int fakecuda_complaints() { return fake().complaints; }
FAKE_API void fakecuda_fault(int result) { fault(result); }

FAKE_API Result cuInit(unsigned) {
    const std::lock_guard lock(fake().mutex);
    if (fake().owner == getpid()) return success;
    if (fake().owner != 0) return not_initialized; // a child of fork() has no driver
    const char *devices = std::getenv("FAKECUDA_DEVICES");
    fake().devices = devices != nullptr ? std::atoi(devices) : 1;
    if (fake().devices < 1 || fake().devices > most_devices) return no_device;
    void *at =
        mmap(nullptr, 2 * reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return out_of_memory;
    fake().base = reinterpret_cast<uintptr_t>(at);
    fake().owner = getpid();
    return success;
}

FAKE_API Result cuDriverGetVersion(int *version) {
    *version = 13000;
    return success;
}

FAKE_API Result cuGetErrorName(Result result, const char **name) {
    switch (result) {
    case success: *name = "CUDA_SUCCESS"; return success;
    case invalid_value: *name = "CUDA_ERROR_INVALID_VALUE"; return success;
    case out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return success;
    case not_initialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; return success;
    case no_device: *name = "CUDA_ERROR_NO_DEVICE"; return success;
    case illegal_address: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return success;
    case unknown_error: *name = "CUDA_ERROR_UNKNOWN"; return success;
    default: *name = "CUDA_ERROR"; return success;
    }
}
FAKE_API Result cuGetErrorString(Result, const char **text) {
    *text = "the fake driver says so";
    return success;
}

FAKE_API Result cuDeviceGetCount(int *count) {
    ENTER("cuDeviceGetCount");
    *count = fake().devices;
    return success;
}
FAKE_API Result cuDeviceGet(DeviceNumber *number, int ordinal) {
    ENTER("cuDeviceGet");
    if (ordinal < 0 || ordinal >= fake().devices) return invalid_device;
    *number = ordinal;
    return success;
}
FAKE_API Result cuDeviceGetName(char *name, int len, DeviceNumber number) {
    ENTER("cuDeviceGetName");
    std::snprintf(name, size_t(len), "Fake GPU %d", number);
    return success;
}
FAKE_API Result cuDeviceGetUuid(Uuid *uuid, DeviceNumber number) {
    ENTER("cuDeviceGetUuid");
    std::memset(uuid->bytes, 0xFA, sizeof uuid->bytes);
    uuid->bytes[15] = char(number);
    return success;
}
FAKE_API Result cuDeviceTotalMem_v2(size_t *bytes, DeviceNumber) {
    ENTER("cuDeviceTotalMem_v2");
    *bytes = reserved;
    return success;
}
FAKE_API Result cuDeviceGetAttribute(int *value, DeviceAttribute attribute, DeviceNumber number) {
    ENTER("cuDeviceGetAttribute");
    switch (attribute) {
    case multiprocessors: *value = 2; return success;
    case compute_major: *value = 9; return success;
    case compute_minor: *value = 0; return success;
    case memory_clock_khz: *value = 1'000'000; return success;
    case memory_bus_bits: *value = 64; return success;
    case pci_bus: *value = number + 1; return success;
    case pci_device:
    case pci_domain: *value = 0; return success;
    case concurrent_managed:
    case dma_buf_supported: *value = 1; return success;
    case host_numa_node: *value = -1; return success;
    default: return invalid_value;
    }
}

FAKE_API Result cuDevicePrimaryCtxRetain(Context *context, DeviceNumber number) {
    ENTER("cuDevicePrimaryCtxRetain");
    if (number < 0 || number >= fake().devices) return invalid_device;
    const std::lock_guard lock(fake().mutex);
    fake().retained[number]++;
    *context = context_of(number);
    return success;
}
FAKE_API Result cuDevicePrimaryCtxRelease_v2(DeviceNumber number) {
    ENTER("cuDevicePrimaryCtxRelease_v2", false, true);
    const std::lock_guard lock(fake().mutex);
    if (number < 0 || number >= fake().devices || fake().retained[number] == 0)
        return invalid_context;
    fake().retained[number]--;
    return success;
}
FAKE_API Result cuCtxPushCurrent_v2(Context context) {
    ENTER("cuCtxPushCurrent_v2", false, true);
    if (!is_context(context)) return invalid_context;
    stack.push_back(context);
    return success;
}
FAKE_API Result cuCtxPopCurrent_v2(Context *context) {
    ENTER("cuCtxPopCurrent_v2", false, true);
    if (stack.empty()) return invalid_context;
    *context = stack.back();
    stack.pop_back();
    return success;
}
FAKE_API Result cuCtxGetCurrent(Context *context) {
    ENTER("cuCtxGetCurrent");
    *context = current_context();
    return success;
}
FAKE_API Result cuCtxGetFlags(unsigned *flags) {
    ENTER("cuCtxGetFlags", true);
    *flags = fake().flags[device_of(current_context())];
    return success;
}
FAKE_API Result cuCtxSetFlags(unsigned flags) {
    ENTER("cuCtxSetFlags", true);
    fake().flags[device_of(current_context())] = flags;
    return success;
}
FAKE_API Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER("cuCtxGetStreamPriorityRange", true);
    *least = 0;
    *greatest = -5;
    return success;
}
