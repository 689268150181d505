// The driver's functions, memory that processes share, and a process for each fact.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "devices/cuda/driver_types.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace facts {

using namespace dtrain::cuda;

using Word = std::atomic<uint32_t>;

inline constexpr unsigned most_seconds = 25; // of a process

inline double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
inline double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}
inline double highest(const std::vector<double> &times) {
    return *std::max_element(times.begin(), times.end());
}

// Calls a function of the driver.
template <class... Types, class... Args> Result ask(const char *name, Args... args) {
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "bench_gpu_facts: %s\n", dlerror());
        std::exit(1);
    }
    auto *function = reinterpret_cast<Result (*)(Types...)>(dlsym(library, name));
    return function == nullptr ? not_found : function(args...);
}
template <class... Types, class... Args> void call(const char *name, Args... args) {
    const Result r = ask<Types...>(name, args...);
    if (r == success) return;
    std::printf("%s: error %d\n", name, r);
    std::fflush(stdout);
    std::_Exit(1);
}

inline void open_gpu() {
    call<unsigned>("cuInit", 0);
    Context context = nullptr;
    call<Context *, int>("cuDevicePrimaryCtxRetain", &context, 0);
    call<Context>("cuCtxPushCurrent_v2", context);
}
inline Stream make_stream() {
    int low = 0, high = 0;
    call<int *, int *>("cuCtxGetStreamPriorityRange", &low, &high);
    Stream stream = nullptr;
    call<Stream *, unsigned, int>("cuStreamCreateWithPriority", &stream, stream_non_blocking, high);
    return stream;
}
inline Address allocate(size_t bytes) {
    Address address = 0;
    call<Address *, size_t>("cuMemAlloc_v2", &address, bytes);
    return address;
}
inline void synchronize(Stream stream) { call<Stream>("cuStreamSynchronize", stream); }
inline void copy(Address to, Address from, size_t bytes, Stream stream) {
    call<Address, Address, size_t, Stream>("cuMemcpyAsync", to, from, bytes, stream);
}

// Host memory in a memfd, so that a forked process has it too.
class Shared {
  public:
    explicit Shared(size_t bytes) : bytes_(bytes) {
        const int file = memfd_create("dtrain-facts", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, off_t(bytes)) != 0) std::abort();
        data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        if (data_ == MAP_FAILED) std::abort();
        std::memset(data_, 0, bytes);
    }
    ~Shared() { munmap(data_, bytes_); }
    Shared(const Shared &) = delete;
    Result pin() {
        const Result r = ask<void *, size_t, unsigned>("cuMemHostRegister_v2", data_, bytes_,
                                                       register_portable | register_map);
        if (r == success)
            call<Address *, void *, unsigned>("cuMemHostGetDevicePointer_v2", &device_, data_, 0);
        return r;
    }
    void unpin() { call<void *>("cuMemHostUnregister", data_); }
    Word &word(size_t i) const { return static_cast<Word *>(data_)[16 * i]; }
    Address at(size_t i) const { return device_ + 64 * i; }
    Address device() const { return device_; }
    char *bytes() const { return static_cast<char *>(data_); }

  private:
    size_t bytes_;
    void *data_;
    Address device_ = 0;
};
inline void hold(Stream stream, Address word, uint32_t value) {
    call<Stream, Address, uint32_t, unsigned>("cuStreamWaitValue32_v2", stream, word, value,
                                              wait_at_least);
}
inline void signal(Stream stream, Address word, uint32_t value) {
    call<Stream, Address, uint32_t, unsigned>("cuStreamWriteValue32_v2", stream, word, value,
                                              write_default);
}
// False when the time has passed.
inline bool reaches(const Word &word, uint32_t value, double most_us = 1e7) {
    const double end = now_us() + most_us;
    while (word.load(std::memory_order_acquire) < value)
        if (now_us() > end) return false;
    return true;
}

// Runs f in a process of its own, which must not have opened the GPU before.
template <class F> pid_t in_process(F &&f) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(most_seconds); // a driver that never returns is a fact, too
        f();
        std::fflush(stdout);
        std::_Exit(0);
    }
    return child;
}
inline void end_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        std::printf("  (a process did not end in %u s)\n", most_seconds);
    else if (status != 0)
        std::printf("  (a process ended with status %#x)\n", unsigned(status));
}
template <class F> void alone(F &&f) { end_of(in_process(f)); }

// held.cpp
void held_streams(const char *connections); // nullptr: CUDA_DEVICE_MAX_CONNECTIONS is not set
void beside_held();

} // namespace facts
