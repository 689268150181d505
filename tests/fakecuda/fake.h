// A CUDA driver for tests: host memory that the CPU cannot touch, streams that are threads.
// SPDX-License-Identifier: Apache-2.0
//
// The library is libcuda.so.1 in a folder of the build, which tests put into LD_LIBRARY_PATH. What
// it is stricter in than a real driver is printed, and counted by fakecuda_complaints(). Variables:
//   FAKECUDA_DEVICES    number of GPUs (1); 0: a driver that finds none
//   FAKECUDA_DELAY_US   streams wait up to so long before each piece of work, some of them 8 times
//                       longer; random by FAKECUDA_SEED
//   FAKECUDA_ONE_QUEUE  1: all streams share one hardware queue, as unrelated streams may
//   FAKECUDA_FAIL       "cuMemcpyAsync:3": its third call fails with CUDA_ERROR_UNKNOWN;
//                       "cuMemAlloc_v2:1:2": the first one with error 2
#pragma once
#include "devices/cuda/driver_types.h"
#include "devices/cuda/kernels/portable.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <unistd.h>

namespace fakecuda {
using namespace dtrain::cuda;

constexpr uintptr_t reserved = uintptr_t{8} << 30; // bytes of device addresses
constexpr int most_devices = 4;

enum class Kind { allocated, managed, pooled, imported };
struct Allocation {
    size_t bytes = 0;
    int fd = -1; // of the memory
    Kind kind = Kind::allocated;
    int device = 0;
    uint64_t id = 0;
};
struct Pinned {
    size_t bytes = 0;
    uint64_t id = 0;
};

struct Fake {
    std::recursive_mutex mutex; // of all that follows but atomics
    std::atomic<pid_t> owner{0};
    std::atomic<Result> sticky{success}; // after a fault everything fails
    std::atomic<int> complaints{0};
    uintptr_t base = 0; // device addresses; the memory itself lies at + reserved
    size_t used = 0;
    std::map<uintptr_t, Allocation> allocations;
    std::map<uintptr_t, Pinned> pinned;
    uint64_t last_id = 0;
    int devices = 1;
    std::atomic<int> retained[most_devices] = {};
    std::atomic<unsigned> flags[most_devices] = {}; // of contexts

    // Some functions wait until no stream of the context is held by a word, and all other calls in
    // the context wait for them.
    std::shared_mutex calls[most_devices];
    std::atomic<int> held[most_devices] = {}; // streams

    bool is_device(uintptr_t p) const { return base != 0 && p - base < reserved; }
};
Fake &fake(); // never destroyed: streams may run until the process ends

// A context is a number of a device.
inline Context context_of(int device) {
    return reinterpret_cast<Context>(uintptr_t(0xC0DE0000 + unsigned(device)));
}
bool is_context(Context context);
Context current_context(); // nullptr: none
inline int device_of(Context context) { return int(reinterpret_cast<uintptr_t>(context) & 0xff); }

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
// What each function does first: SUCCESS, or why the call fails. frees: it does so after a fault,
// too.
Result enter(const char *function, bool needs_context = false, bool frees = false);
void fault(Result result); // of the device: sticky
// What freeing memory and loading modules does first.
void wait_for_held_streams();

// The allocation or registration that holds `bytes` at p; nullptr: none does.
const Allocation *find_allocation(uintptr_t p, size_t bytes, uintptr_t *base = nullptr);
const Pinned *find_pinned(uintptr_t p, size_t bytes, uintptr_t *base = nullptr);
// Where the hardware accesses p; nullptr after a fault.
void *reach(uintptr_t p, size_t bytes, const char *what);
Result map_memory(int fd, size_t bytes, Kind kind, int device, Address *out);

// Runs work in a stream's order; work returns false until it is done.
Result submit(Stream stream, std::function<bool()> work);
struct StreamState;
StreamState &state_of(Stream stream);
void drain(Stream stream);

extern thread_local bool in_host_function;

} // namespace fakecuda

#define FAKE_API extern "C" __attribute__((visibility("default")))
#define ENTER(...)                                                                                 \
    do {                                                                                           \
        if (const fakecuda::Result entered = fakecuda::enter(__VA_ARGS__)) return entered;         \
    } while (0)
