// Memory of GPUs for tests over the public API: by the driver that the process finds, which is the
// one for tests (tests/fakecuda) unless the machine's own is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "devices/cuda/driver_types.h"
#include "require.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gpu {

using dtrain::cuda::Address;
using dtrain::cuda::Context;

inline void *library() {
    static void *const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    REQUIRE(handle != nullptr);
    return handle;
}
template <class F> F *function(const char *name) {
    void *symbol = dlsym(library(), name);
    if (symbol == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    REQUIRE(symbol != nullptr);
    return reinterpret_cast<F *>(symbol);
}
// Calls a function of the driver, which must succeed.
template <class... Types, class... Args> void call(const char *name, Args... args) {
    const int result = function<int(Types...)>(name)(args...);
    if (result != 0) std::fprintf(stderr, "%s: %d\n", name, result);
    REQUIRE(result == 0);
}

template <class... Types, class... Args> void call_void(const char *name, Args... args) {
    function<void(Types...)>(name)(args...);
}

// Leaves a test out that needs the driver for tests: its failures, its stalls, or its two GPUs.
inline void needs_fake() {
    if (dlsym(library(), "fakecuda_stall") == nullptr) skip();
}

// The program's context on a device, which is current while this lives.
class Current {
  public:
    explicit Current(int device) {
        static const bool started = (call<unsigned>("cuInit", 0), true);
        (void)started;
        static Context contexts[16] = {}; // kept until the process ends
        static std::mutex mutex;
        const std::lock_guard lock(mutex);
        if (contexts[device] == nullptr)
            call<Context *, int>("cuDevicePrimaryCtxRetain", &contexts[device], device);
        call<Context>("cuCtxPushCurrent_v2", contexts[device]);
    }
    ~Current() {
        Context popped;
        call<Context *>("cuCtxPopCurrent_v2", &popped);
    }
    Current(const Current &) = delete;
};

inline int devices() {
    const Current current(0);
    int count = 0;
    call<int *>("cuDeviceGetCount", &count);
    return count;
}

// A machine's only GPU stands for each that a test wants.
inline int present(int device) { return device % devices(); }
// Leaves a test out that needs two GPUs.
inline void needs_two() {
    if (devices() < 2) skip();
}

// An allocation, with a filling at first.
class Buffer {
  public:
    explicit Buffer(size_t bytes, int device = 0) : bytes_(bytes), device_(present(device)) {
        const Current current(device_);
        call<Address *, size_t>("cuMemAlloc_v2", &address_, bytes_ > 0 ? bytes_ : 1);
    }
    Buffer(Buffer &&other) noexcept
        : bytes_(other.bytes_), device_(other.device_), address_(std::exchange(other.address_, 0)) {
    }
    ~Buffer() { free(); }
    void free() {
        if (address_ == 0) return;
        const Current current(device_);
        // After a fault the driver frees nothing.
        (void)function<int(Address)>("cuMemFree_v2")(std::exchange(address_, 0));
    }

    uint8_t *address() const { return reinterpret_cast<uint8_t *>(address_); }
    size_t bytes() const { return bytes_; }
    template <class T> T *as() const { return reinterpret_cast<T *>(address_); }
    void write(const void *data) { write(data, bytes_); }
    void write(const void *data, size_t bytes) {
        const Current current(device_);
        if (bytes > 0)
            call<Address, const void *, size_t>("cuMemcpyHtoD_v2", address_, data, bytes);
    }
    void read(void *data) const {
        const Current current(device_);
        if (bytes_ > 0) call<void *, Address, size_t>("cuMemcpyDtoH_v2", data, address_, bytes_);
    }
    template <class T> std::vector<T> values() const {
        std::vector<T> all(bytes_ / sizeof(T));
        read(all.data());
        return all;
    }

  private:
    size_t bytes_;
    int device_;
    Address address_ = 0;
};
// Before a stream of a test's own reads what write() has copied: only default streams wait for it.
inline void finish_copies() {
    const Current current(0);
    call<dtrain::cuda::Stream>("cuStreamSynchronize",
                               reinterpret_cast<dtrain::cuda::Stream>(dtrain::cuda::stream_legacy));
}
template <class T> Buffer copy_of(const std::vector<T> &data, int device = 0) {
    Buffer made(data.size() * sizeof(T), device);
    made.write(data.data());
    return made;
}

// DTRAIN_TEST_GPU: tests that can put their buffers on GPUs do so, each at random.
inline bool is_on() { return std::getenv("DTRAIN_TEST_GPU") != nullptr; }

// Stand for host buffers on GPUs, or stay what they are.
class Images {
  public:
    // choice: a random number.
    uint8_t *place(uint8_t *data, size_t bytes, uint64_t choice) {
        const int count = devices();
        const int device = int(choice % (uint64_t(count) + 1)) - 1; // -1: the host
        if (device < 0) return data;
        images_.push_back({data, Buffer(bytes, device)});
        images_.back().buffer.write(data);
        return images_.back().buffer.address();
    }
    void take_back() {
        for (Image &image : images_) image.buffer.read(image.data);
    }

  private:
    struct Image {
        uint8_t *data;
        Buffer buffer;
    };
    std::vector<Image> images_;
};

} // namespace gpu
