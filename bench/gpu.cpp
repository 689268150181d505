// All-reduce of ranks on one GPU, as threads of this process: by one kernel on their buffers
// (shared memory), and by copies through host memory, next to the GPU's own copies.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_gpu [most bytes (256 MiB)]. GB/s: what has to be moved at least (each buffer is read
// and written once), by the median time of a call on rank 0.
#include "dtrain.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int rounds = 20, warm_up = 3;

void must(bool good, const char *what) {
    if (good) return;
    char text[512];
    dtrain_last_error(text, sizeof text);
    std::fprintf(stderr, "bench_gpu: %s: %s\n", what, text);
    std::exit(1);
}
void ok(dtrain_status_t status, const char *what) { must(status == DTRAIN_OK, what); }

double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Of f(), each time after before().
template <class Before, class F> double median_us(Before &&before, F &&f) {
    std::vector<double> times;
    for (int round = 0; round < warm_up + rounds; round++) {
        before();
        const double begun = now_us();
        f();
        if (round >= warm_up) times.push_back(now_us() - begun);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

dtrain_context_t *make_context() {
    dtrain_options_t *options = nullptr;
    ok(dtrain_options_create(&options), "options");
    ok(dtrain_options_set(options, "accelerators", "cuda"), "accelerators");
    dtrain_context_t *context = nullptr;
    ok(dtrain_context_create(DTRAIN_API_VERSION, options, &context), "context");
    dtrain_options_destroy(options);
    return context;
}

dtrain_mem_t *make_memory(dtrain_context_t *context, uint64_t bytes, bool shared) {
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.mem_type = DTRAIN_MEM_CUDA;
    params.length = bytes;
    params.flags = shared ? DTRAIN_MEM_SHARED : 0;
    dtrain_mem_t *memory = nullptr;
    ok(dtrain_mem_create(context, &params, &memory), "memory of the GPU");
    return memory;
}

// The driver's own copies from one buffer to another, in GB/s, read and written together.
class Copies {
  public:
    Copies() {
        handle_ = dlopen("libcuda.so.1", RTLD_NOW);
        must(handle_ != nullptr, "libcuda.so.1");
        call<void **, int>("cuDevicePrimaryCtxRetain", &context_, 0);
        call<void *>("cuCtxPushCurrent_v2", context_);
        call<void **, unsigned, int>("cuStreamCreateWithPriority", &stream_, 1, 0);
    }
    double rate(const dtrain_mem_t *to, const dtrain_mem_t *from, uint64_t bytes) {
        const double us =
            median_us([] {},
                      [&] {
                          call<uint64_t, uint64_t, size_t, void *>("cuMemcpyAsync", address(to),
                                                                   address(from), bytes, stream_);
                          call<void *>("cuStreamSynchronize", stream_);
                      });
        return 2e-3 * double(bytes) / us;
    }

  private:
    static uint64_t address(const dtrain_mem_t *memory) {
        return reinterpret_cast<uint64_t>(dtrain_mem_address(memory));
    }
    template <class... Types, class... Args> void call(const char *name, Args... args) {
        auto *function = reinterpret_cast<int (*)(Types...)>(dlsym(handle_, name));
        must(function != nullptr && function(args...) == 0, name);
    }
    void *handle_ = nullptr, *context_ = nullptr, *stream_ = nullptr;
};

struct Row {
    int ranks;
    uint64_t bytes;
    bool shared;
    double us;
};

// One rank's part of a job that measures all rows for this number of ranks.
void run_rank(const std::string &place, int rank, int size, uint64_t most, std::vector<Row> &rows) {
    dtrain_context_t *context = make_context();
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = size;
    params.rank = rank;
    dtrain_comm_t *comm = nullptr;
    ok(dtrain_comm_create(context, place.c_str(), &params, &comm), "communicator");
    for (uint64_t bytes = 64 << 10; bytes <= most; bytes *= 8)
        for (bool shared : {true, false}) {
            dtrain_mem_t *memory = make_memory(context, bytes, shared);
            void *const at = dtrain_mem_address(memory);
            const double us =
                median_us([&] { ok(dtrain_barrier(comm, nullptr, nullptr), "barrier"); },
                          [&] {
                              ok(dtrain_allreduce(comm, at, at, bytes / 4, DTRAIN_F32, DTRAIN_MAX,
                                                  nullptr, nullptr),
                                 "all-reduce");
                          });
            if (rank == 0) rows.push_back({size, bytes, shared, us});
            ok(dtrain_mem_deregister(memory), "deregister");
        }
    ok(dtrain_comm_destroy(comm), "destroying the communicator");
    ok(dtrain_context_destroy(context), "destroying the context");
}

} // namespace

int main(int count, char **arguments) {
    const uint64_t most = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 256 << 20;
    dtrain_context_t *context = make_context();
    dtrain_mem_t *from = make_memory(context, most, false), *to = make_memory(context, most, false);
    const double copies = Copies().rate(to, from, most);
    ok(dtrain_mem_deregister(from), "deregister");
    ok(dtrain_mem_deregister(to), "deregister");
    ok(dtrain_context_destroy(context), "destroying the context");
    std::printf("copies of %llu bytes on the GPU: %.1f GB/s\n\n",
                static_cast<unsigned long long>(most), copies);
    std::printf(
        "| ranks | bytes | way | us | GB/s | of copies |\n|---:|---:|---|---:|---:|---:|\n");
    for (int size : {2, 4, 8}) {
        char folder[] = "/tmp/bench_gpu_XXXXXX";
        must(mkdtemp(folder) != nullptr, "a folder");
        const std::string file = std::string(folder) + "/job";
        std::vector<Row> rows;
        std::vector<std::thread> ranks;
        for (int rank = 0; rank < size; rank++)
            ranks.emplace_back([&, rank] { run_rank("file://" + file, rank, size, most, rows); });
        for (std::thread &rank : ranks) rank.join();
        unlink(file.c_str());
        rmdir(folder);
        for (const Row &row : rows) {
            const double rate = 2e-3 * double(row.bytes) * row.ranks / row.us;
            std::printf("| %d | %llu | %s | %.1f | %.1f | %.0f %% |\n", row.ranks,
                        static_cast<unsigned long long>(row.bytes),
                        row.shared ? "one kernel" : "copies", row.us, rate, 100 * rate / copies);
        }
    }
    return 0;
}
