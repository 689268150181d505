// Opens libcuda.so.1 and finds its functions.
// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <dlfcn.h>
#include <mutex>
#include <string>
#include <unistd.h>

namespace dtrain::cuda {
namespace {

constexpr const char *library = "libcuda.so.1"; // comes with the kernel's driver

struct Entry {
    const char *symbol;
    bool must;
    void **place;
};

// Fills in the table. Returns the symbol that is missing, or nullptr.
const char *find_functions(void *handle, Driver &driver) {
#define DTRAIN_CUDA_ENTRY(member, symbol, must, ...)                                               \
    {#symbol, must, reinterpret_cast<void **>(&driver.member)},
    const Entry entries[] = {DTRAIN_CUDA_FUNCTIONS(DTRAIN_CUDA_ENTRY)};
#undef DTRAIN_CUDA_ENTRY
    for (const Entry &entry : entries)
        if (*entry.place = dlsym(handle, entry.symbol); *entry.place == nullptr && entry.must)
            return entry.symbol;
    return nullptr;
}

Status load(const Host &host, Driver &driver) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr)
        return fail(host, DTRAIN_ERR_UNSUPPORTED,
                    "cuda: %s cannot be opened (%s); it comes with NVIDIA's driver, and containers "
                    "get it from the host",
                    library, dlerror());
    const char *missing = find_functions(handle, driver);
    if (missing != nullptr)
        return fail(host, DTRAIN_ERR_UNSUPPORTED,
                    "cuda: %s has no %s(); a driver for CUDA 12.1 (version 530) or later is needed",
                    library, missing);
    if (const Result r = driver.init(0); r != success) return driver.fail(host, r, "cuInit");
    driver.owner = getpid();
    if (const Result r = driver.get_version(&driver.version); r != success)
        return driver.fail(host, r, "cuDriverGetVersion");
    return DTRAIN_OK;
}

Status status_of(Result result) {
    switch (result) {
    case success: return DTRAIN_OK;
    case out_of_memory: return DTRAIN_ERR_NO_MEMORY;
    case not_initialized:
    case deinitialized:
    case capture_unsupported:
    case capture_invalidated:
    case capture_implicit: return DTRAIN_ERR_STATE;
    case invalid_value:
    case invalid_device:
    case invalid_context:
    case invalid_handle:
    case map_failed: return DTRAIN_ERR_INVALID;
    case no_device:
    case not_supported:
    case unsupported_ptx_version: return DTRAIN_ERR_UNSUPPORTED;
    case already_registered: return DTRAIN_ERR_BUSY;
    default: return DTRAIN_ERR_DEVICE;
    }
}

} // namespace

Status Driver::fail(const Host &host, Result result, const char *format, ...) const {
    va_list words;
    va_start(words, format);
    const Status s = fail_with(host, result, format, words);
    va_end(words);
    return s;
}

Status Driver::fail_with(const Host &host, Result result, const char *format, va_list words) const {
    char what[256];
    // The callers have started the list, which the analyzer overlooks.
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(what, sizeof what, format, words);
    const char *name = nullptr, *text = nullptr;
    if (error_name(result, &name) != success || name == nullptr) name = "an unknown error";
    if (error_text(result, &text) != success || text == nullptr) text = "no text";
    return cuda::fail(host, status_of(result), "cuda: %s: %s, %d (%s)", what, name, result, text);
}

Status open_driver(const Host &host, const Driver *&out) {
    static std::mutex mutex;
    static Driver driver;
    const std::lock_guard lock(mutex);
    if (driver.owner == 0) {
        Driver fresh;
        if (const Status s = load(host, fresh); s != DTRAIN_OK) return s;
        driver = fresh;
    }
    if (driver.owner != getpid())
        return fail(host, DTRAIN_ERR_STATE,
                    "cuda: the process that has initialized the driver has forked; a child can use "
                    "GPUs only if its parent has not, or after exec()");
    out = &driver;
    return DTRAIN_OK;
}

} // namespace dtrain::cuda
